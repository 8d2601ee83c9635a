"""Attention rows of one head, kept as the tokens ran: where it looked in any text written so far needs no new pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models import attention
from models.attention import AttentionInputs
from models.values import SiteRef

MOST_BYTES = 1 << 26
"""Rows beyond it are not kept, and those before them forgotten; the next picture is then of a whole pass."""

_SHUT = -1.0  # in place of the weight of what may not be looked at


class KeptRows:
    """Rows of one head at a time, of all branches, beams and samples that went on from one prompt.

    A row is known by the written tokens up to and including the one that looks.
    """

    def __init__(self, prompt: int) -> None:
        self.prompt = prompt  # tokens that were given
        self._head: tuple[SiteRef, int] | None = None
        self._given: list[np.ndarray] = []  # the prompt's rows, each (keys,)
        self._rows: dict[tuple[int, ...], np.ndarray] = {}
        self._bytes = 0

    def look_at(self, site: SiteRef, head: int) -> None:
        """From now on this head's. Another one's are forgotten."""
        if self._head != (site, head) or self._bytes > MOST_BYTES:
            self._head, self._given, self._rows, self._bytes = (site, head), [], {}, 0

    def keep_step(self, x: AttentionInputs, written: Sequence[tuple[int, ...]]) -> None:
        """The rows of the tokens that a step ran.

        Args:
            x: what the site was given: its queries are these tokens, of each sequence.
            written: of each sequence, all tokens after the prompt.
        """
        assert self._head is not None
        if 4 * x.query.shape[0] * x.queries * x.keys > MOST_BYTES:
            return
        heads = [self._head[1]]
        rows = attention.weights(x, heads)  # (sequences, 1, new tokens, keys)
        shut = attention.blocked(x, heads)
        rows = rows if shut is None else rows.masked_fill(shut, _SHUT)
        for of_sequence, ids in zip(rows[:, 0].float().cpu().numpy(), written, strict=True):
            tokens = self.prompt + len(ids)
            if self._head[0].stack == "decoder":  # a sliding window has forgotten its first keys
                of_sequence = np.pad(of_sequence, ((0, 0), (tokens - x.keys, 0)), constant_values=_SHUT)
            self._keep(of_sequence, tokens - len(of_sequence), ids)

    def keep_pass(self, weights: np.ndarray, masked: np.ndarray | None, ids: tuple[int, ...]) -> None:
        """All rows of a pass over prompt and `ids`, (queries, keys), and what its mask hides."""
        if weights.nbytes > MOST_BYTES:
            return
        self._keep(weights if masked is None else np.where(masked, np.float32(_SHUT), weights), 0, ids)

    def triangle(self, site: SiteRef, head: int, ids: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Rows of prompt and `ids` as one array, (queries, keys), and which of its cells may not be looked at.

        None where one of them was not kept.
        """
        if self._head != (site, head) or not self._given:
            return None
        rows = [self._rows.get(ids[: i + 1]) for i in range(len(ids))]
        kept = [row for row in rows if row is not None]
        return _whole([*self._given, *kept]) if len(kept) == len(ids) else None

    def _keep(self, rows: np.ndarray, first: int, ids: tuple[int, ...]) -> None:
        """Rows (queries, keys) of the tokens from place `first` of prompt and `ids` on."""
        kept = [row[: np.flatnonzero(row != _SHUT).max(initial=0) + 1].copy() for row in rows]
        if first == 0:
            self._given = kept[: self.prompt]
        for place, row in enumerate(kept, first - self.prompt + 1):
            if place > 0:
                self._rows[ids[:place]] = row
                self._bytes += row.nbytes


def _whole(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    array = np.full((len(rows), max(len(row) for row in rows)), _SHUT, np.float32)
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    masked = array == _SHUT
    array[masked] = 0
    return array, masked if masked.any() else None
