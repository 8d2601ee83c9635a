"""Beam search over log-probabilities, as transformers' `generate` does it; every beam it looked at stays visible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_models.protocol.decoding import Beam

BEAMS, MOST_WRITTEN = 4, 96
"""Of a translation that the model writes by itself: continuations looked at side by side, and tokens."""


@dataclass(frozen=True, slots=True)
class _Running:
    node: int
    ids: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Finished:
    ids: tuple[int, ...]
    score: float  # log-probability / length ** length_penalty
    log_probability: float


class BeamSearch:
    """Keeps the `width` best running hypotheses and the `width` best finished ones.

    Each step looks at the best (1 + ends) * width continuations. Those among the first `width` that end the text are
    finished, the best of the others run on. It is over when no running one can beat the worst finished one, reckoning
    with its present length (`early_stopping=False` of `generate`), or at `steps`.
    """

    def __init__(self, width: int, length_penalty: float, ends: tuple[int, ...], steps: int) -> None:
        self.width, self.length_penalty, self.ends, self.steps = width, length_penalty, ends, steps
        self.finished: list[Finished] = []
        self.is_over = False
        self._running = [_Running(-1, (), 0.0)]
        self._step = 0
        self._nodes = 0
        self._sources: list[int] = []

    def advance(
        self, log_probabilities: Tensor, label: Callable[[int], str], text: Callable[[tuple[int, ...]], str]
    ) -> tuple[Beam, ...]:
        """One step from the next token's log-probabilities, (running, vocabulary). All looked at, the best first.

        `label` and `text` say how a token is drawn, and what several of them spell.
        """
        self._step += 1
        vocabulary = log_probabilities.shape[1]
        before = torch.tensor([running.score for running in self._running], device=log_probabilities.device)
        total = (log_probabilities + before[:, None]).flatten()
        keep = max(2, 1 + len(self.ends)) * self.width
        best = torch.topk(total, min(keep, len(total)))
        at_end = self._step >= self.steps
        looked_at: list[Beam] = []
        running: list[_Running] = []
        self._sources = []
        new: list[Finished] = []
        for rank, (score, index) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
            source, token = divmod(index, vocabulary)
            if score == float("-inf"):
                continue
            parent = self._running[source]
            ids = (*parent.ids, token)
            ends = token in self.ends or at_end
            finishes = ends and rank < self.width
            goes_on = not ends and len(running) < self.width
            node = self._nodes
            self._nodes += 1
            looked_at.append(Beam(node, parent.node, token, label(token), ids, score, finishes, goes_on, text(ids)))
            if finishes:
                new.append(Finished(ids, score / self._step**self.length_penalty, score))
            if goes_on:
                running.append(_Running(node, ids, score))
                self._sources.append(source)
        # a stable sort keeps the earlier of equals first, as topk over the merged list does
        self.finished = sorted([*self.finished, *new], key=lambda f: -f.score)[: self.width]
        self._running = running
        self.is_over = at_end or not running or not self._can_improve()
        return tuple(looked_at)

    def next_tokens(self) -> tuple[Tensor, Tensor]:
        """The last token of each running hypothesis, and which sequence of the step before it goes on from."""
        if not self._running:
            return torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)
        tokens = torch.tensor([running.ids[-1] for running in self._running])
        return tokens, torch.tensor(self._sources)

    def best(self) -> Finished:
        """The best finished hypothesis once the search is over, until then the best of all."""
        candidates = list(self.finished)
        if not self.is_over or not candidates:
            candidates += [Finished(r.ids, r.score / self._step**self.length_penalty, r.score) for r in self._running]
        return max(candidates, key=lambda f: f.score)

    def _can_improve(self) -> bool:
        if len(self.finished) < self.width:
            return True
        best_running = max(running.score for running in self._running) / self._step**self.length_penalty
        worst_finished = min(finished.score for finished in self.finished)
        return bool(best_running > worst_finished)
