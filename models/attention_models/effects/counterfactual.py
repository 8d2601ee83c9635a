"""The least change of a row of attention weights after which another answer is the likeliest.

Every key blocked in turn; and for every two keys all weight of one moved to the other. Of the moves that change the
likeliest answer the least part that still does is found by halving, for all of them at once: those that fail at half of
the least known are left behind while another succeeds. So the least is of moves between two keys, and exact to a
thousandth where more weight moved never undoes what less did.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_models.effects.row_edits import Rows
from attention_models.protocol.work import ShouldStop, never

MOST_MOVES = 1024
"""Of longer rows: the moves from the keys with the most weight."""

_HALVINGS = 10

Change = tuple[int, int | None, float]
"""From which key, to which (None: to all others in proportion), and what share of its weight."""


@dataclass(frozen=True, slots=True)
class _Flip:
    source: int
    target: int
    mass: float  # all of it


class Counterfactual:
    """Found a batch at a time."""

    def __init__(self, rows: Rows, likeliest: int) -> None:
        self._rows, self._likeliest = rows, likeliest
        sources = sorted(rows.sources(), key=lambda key: -float(rows.masses[key]))
        targets = rows.targets()
        pairs = [(source, target) for source in sources for target in targets if source != target]
        self._sources, self._pairs, self.moves = sources, pairs[:MOST_MOVES], len(pairs)
        self._blocks, self.tried = 0, 0
        self._flips: list[_Flip] = []
        self.blocked: Change | None = None
        self.moved: Change | None = None
        self._low, self._high, self._halved = 0.0, 0.0, 0
        self._at, self._left = 0, list[tuple[_Flip, float]]()  # of the halving under way: how many were tried, what did

    @property
    def blocks_done(self) -> bool:
        return self._blocks == len(self._sources)

    @property
    def is_whole(self) -> bool:
        return self.blocks_done and self.tried == len(self._pairs) and (not self._flips or self._halved == _HALVINGS)

    @property
    def done(self) -> float:
        if self.is_whole:
            return 1.0
        tried = self._blocks + self.tried
        return 0.8 * tried / max(1, len(self._sources) + len(self._pairs)) + 0.2 * self._halved / _HALVINGS

    def advance(self, should_stop: ShouldStop = never) -> None:
        """One batch more.

        Raises:
            Cancelled: `should_stop()` was true between two blocks; what was done before stays.
        """
        at_once = self._rows.copies.at_once
        if not self.blocks_done:
            self._block(self._sources[self._blocks : self._blocks + at_once], should_stop)
        elif self.tried < len(self._pairs):
            self._move(self._pairs[self.tried : self.tried + at_once], should_stop)
        elif not self.is_whole:
            self._halve(should_stop)

    def _block(self, keys: list[int], should_stop: ShouldStop) -> None:
        """Sources come with the largest weight first, so the last that changes the answer is the least."""
        flips = self._are_flipped([self._rows.moved(key, None, 1.0) for key in keys], should_stop)
        for key, flipped in zip(keys, flips, strict=True):
            if flipped:
                self.blocked = key, None, 1.0
        self._blocks += len(keys)

    def _move(self, pairs: list[tuple[int, int]], should_stop: ShouldStop) -> None:
        flips = self._are_flipped([self._rows.moved(source, target, 1.0) for source, target in pairs], should_stop)
        masses = self._rows.masses
        self._flips += [
            _Flip(source, target, float(masses[source]))
            for (source, target), flipped in zip(pairs, flips, strict=True)
            if flipped
        ]
        self.tried += len(pairs)
        least = min(self._flips, key=lambda flip: flip.mass, default=None)
        if least is not None:
            self.moved, self._high = (least.source, least.target, 1.0), least.mass

    def _halve(self, should_stop: ShouldStop) -> None:
        """Some more of the moves that are left, at half of the least weight that is known to do."""
        middle = (self._low + self._high) / 2
        tried = self._flips[self._at : self._at + self._rows.copies.at_once]
        shares = [min(1.0, middle / flip.mass) for flip in tried]
        rows = [self._rows.moved(f.source, f.target, s) for f, s in zip(tried, shares, strict=True)]
        flipped = self._are_flipped(rows, should_stop)
        self._left += [(flip, share) for flip, share, yes in zip(tried, shares, flipped, strict=True) if yes]
        self._at += len(tried)
        if self._at < len(self._flips):
            return
        if self._left:
            self._flips = [flip for flip, _ in self._left]
            first, share = self._left[0]
            self.moved, self._high = (first.source, first.target, share), middle
        else:
            self._low = middle
        self._at, self._left = 0, []
        self._halved += 1

    def _are_flipped(self, rows: list[Tensor], should_stop: ShouldStop) -> list[bool]:
        """Of a batch of rows, each (heads, keys)."""
        with torch.no_grad():
            said = self._rows.answers(torch.stack(rows), should_stop)  # (rows, answers)
        flipped: list[bool] = (said.argmax(dim=-1) != self._likeliest).tolist()
        return flipped
