"""The rows of each head that attend most to what is asked about, over any number of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_models.forward.model import Encoded
from attention_models.protocol.corpus import Hit
from attention_models.protocol.values import Site, site_tokens

_WORDS_BEFORE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """A text of the file, as the model takes it."""

    line: int
    text: str
    second: str | None  # of a pair; of a translator what its decoder says
    encoded: Encoded


class BestRows:
    """The best few of each head: (heads, most) each, filled from the best on; a score of -1 stands for none."""

    def __init__(self, heads: int, most: int) -> None:
        self._most = most
        self._scores = torch.full((heads, most), -1.0)
        self._weights = torch.zeros(heads, most)  # of that key alone
        self._listed: tuple[tuple[Hit, ...], ...] | None = None  # what `hits` said last, while it holds
        self._places = torch.zeros(heads, most, 3, dtype=torch.long)  # text, query, key

    def add(self, w: Tensor, cells: Tensor, first_row: int, first_text: int) -> None:
        """Weights (texts, heads, rows, keys) and which of them count, (texts, heads or 1, rows, keys) float.

        `first_row` is the place of the first row in its text, `first_text` the number of the first text.
        """
        counted = w * cells
        score = counted.sum(dim=-1).transpose(0, 1).flatten(1)  # (heads, texts * rows)
        rows = w.shape[2]
        best, found = score.topk(min(self._most, score.shape[1]), dim=1)
        best, found = best.cpu(), found.cpu()
        if not bool((best[:, 0] > self._scores[:, -1]).any()):
            return
        text, row = found // rows, found % rows
        heads = torch.arange(len(best))[:, None].expand_as(found)
        self._listed = None
        weight, key = counted.cpu()[text, heads, row].max(dim=-1)
        places = torch.stack([text + first_text, row + first_row, key], dim=-1)
        best = torch.where(best > 0, best, -1.0)  # a row without any cell of these is none
        self._weights = torch.cat([self._weights, weight], dim=1)
        scores = torch.cat([self._scores, best], dim=1)
        self._scores, order = scores.topk(self._most, dim=1)
        self._weights = self._weights.gather(1, order)
        every = torch.cat([self._places, places], dim=1)
        self._places = every.gather(1, order[..., None].expand(-1, -1, 3))

    def texts(self) -> set[int]:
        """The numbers of the texts that are listed."""
        return set(self._places[..., 0][self._scores > 0].tolist())

    def hits(self, site: Site, texts: Mapping[int, Read]) -> tuple[tuple[Hit, ...], ...]:
        """Of each head, the highest score first."""
        if self._listed is not None:
            return self._listed
        scores, places = self._scores.numpy().astype(np.float64), self._places.tolist()
        weights = self._weights.tolist()
        self._listed = tuple(
            tuple(
                _hit(site, texts[text], query, key, weight, float(score))
                for score, weight, (text, query, key) in zip(of_head, weights[head], places[head], strict=True)
                if score > 0
            )
            for head, of_head in enumerate(scores)
        )
        return self._listed


def _hit(site: Site, read: Read, query: int, key: int, weight: float, score: float) -> Hit:
    queries, keys = site_tokens(read.encoded, site)
    before = queries[max(0, query - _WORDS_BEFORE) : query]
    return Hit(
        line=read.line,
        text=read.text,
        second=read.second,
        query=query,
        key=key,
        weight=weight,
        score=score,
        before=" ".join(token.word for token in before if not token.special),
        query_word=queries[query].word,
        key_word=keys[key].word,
    )
