"""Which cells lead from a word to those that it is related to by a gold dependency edge.

As Clark et al. 2019, section 4, merge pieces: attention to a word is the sum of that to its pieces, attention from it
the mean over its pieces. A word that has a relation counts where all of its pieces see what it is related to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from attention_models.protocol.roles import RELATIONS
from attention_models.protocol.values import Token
from attention_models.roles.probe import ProbeText

NAMES = tuple(f"{name}-to-{end}" for name in RELATIONS for end in ("head", "dependent"))


class Distances:
    """How far apart, in words, what was counted of each relation is."""

    def __init__(self) -> None:
        self.counted = [0] * len(NAMES)
        self._at = [Counter[int]() for _ in NAMES]

    def add(self, relation: int, source: int, targets: Sequence[int]) -> None:
        self.counted[relation] += 1
        self._at[relation].update({target - source for target in targets})

    def best_share(self, relation: int) -> float:
        """What a head would score that always attends to the word that is so many words away; NaN without any."""
        counted = self.counted[relation]
        return max(self._at[relation].values(), default=0) / counted if counted else float("nan")


def pieces_of_words(tokens: Sequence[Token], text: ProbeText) -> list[list[int]]:
    """Of each word of `text` the places of the tokens that cover it."""
    found: list[list[int]] = [[] for _ in text.words]
    for place, token in enumerate(tokens):
        if token.padding or token.special or token.start >= token.end:
            continue
        start = token.start + len(token.text) - len(token.text.lstrip())
        for word, (first, last) in enumerate(text.words):
            if first <= start < last:
                found[word].append(place)
    return found


class Related:
    """Every relation of some texts, both ways, as questions in the order of `NAMES`: few cells of their maps."""

    def __init__(
        self, texts: Sequence[ProbeText], tokens: Sequence[Sequence[Token]], visible: Tensor, far: Distances
    ) -> None:
        """`visible` is (texts, heads or 1, queries, keys); how far apart what counts is, is added to `far`."""
        seen = visible[:, 0].cpu().numpy()  # relations are asked of models as they are: heads of a layer see alike
        self.counts, self.even = np.zeros(len(NAMES)), np.zeros(len(NAMES))
        cells: list[tuple[int, int, int, int]] = []  # relation, text, query, key
        factors: list[float] = []
        for row, (text, of_text) in enumerate(zip(texts, tokens, strict=True)):
            pieces = pieces_of_words(of_text, text)
            for relation, source, targets in grouped(text):
                sources = pieces[source]
                keys = [k for target in targets for k in pieces[target] if sources and seen[row, sources, k].all()]
                if not keys:
                    continue
                far.add(
                    relation, source, [target for target in targets if pieces[target] and pieces[target][0] in keys]
                )
                self.counts[relation] += 1
                self.even[relation] += np.mean(len(keys) / seen[row, sources].sum(axis=-1))
                cells += [(relation, row, q, k) for q in sources for k in keys]
                factors += [1 / len(sources)] * (len(sources) * len(keys))
        self._places = torch.tensor(cells, dtype=torch.long, device=visible.device).reshape(-1, 4).mT
        self._factors = torch.tensor(factors, device=visible.device)

    def sums(self, w: Tensor, rows: slice) -> np.ndarray:
        """Of the weights of some rows, (texts, heads, rows, keys): (questions, heads) float64."""
        relation, text, query, key = self._places
        here = (query >= rows.start) & (query < rows.stop)
        taken = w[text[here], :, query[here] - rows.start, key[here]] * self._factors[here, None]  # (cells, heads)
        sums = torch.zeros(len(NAMES), w.shape[1], device=w.device).index_add_(0, relation[here], taken)
        return sums.double().cpu().numpy()


def grouped(text: ProbeText) -> list[tuple[int, int, list[int]]]:
    """(place in `NAMES`, the word that has it, all that it is related to so)."""
    found: dict[tuple[int, int], list[int]] = {}
    names = list(RELATIONS)
    for edge in text.edges:
        place = 2 * names.index(edge.relation)
        found.setdefault((place, edge.dependent), []).append(edge.head)
        found.setdefault((place + 1, edge.head), []).append(edge.dependent)
    return [(relation, source, targets) for (relation, source), targets in found.items()]
