"""Attention rows of one head, kept as the tokens ran: where it looked in any text written so far needs no new pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.protocol.values import LARGEST_WHOLE, SiteRef, is_long

MOST_BYTES = 1 << 26
"""Rows beyond it are not kept, and those before them forgotten; the next picture is then of a whole pass."""

_MASKED = -1.0  # in place of the weight of what is masked


def most_rows(queries: int, keys: int) -> int:
    """How many rows of a map of so many are shown at once: all, or of a long text as many as may be held."""
    return max(1, LARGEST_WHOLE**2 // keys) if is_long(queries, keys) else queries


class KeptRows:
    """Rows of one head at a time, of all branches, beams and samples that went on from one prompt.

    Of a long prompt only the last are kept, see `most_rows`.

    A row is known by the written tokens up to and including the one that looks.
    """

    def __init__(self, prompt: int) -> None:
        self.prompt = prompt  # tokens that were given
        self._head: tuple[SiteRef, int] | None = None
        self._given: list[np.ndarray] = []  # the prompt's last rows, each (keys,)
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
        tokens = self.prompt + len(written[0])
        many = min(x.queries, most_rows(tokens, max(x.keys, tokens)))
        if 4 * x.query.shape[0] * many * x.keys > MOST_BYTES:
            return
        heads, last = [self._head[1]], slice(x.queries - many, x.queries)
        rows = attention.weights(x, Part(heads, last))  # (sequences, 1, rows, keys)
        masked = attention.masked_cells(x, Part(heads, last))
        rows = rows if masked is None else rows.masked_fill(masked, _MASKED)
        for of_sequence, ids in zip(rows[:, 0].float().cpu().numpy(), written, strict=True):
            if self._head[0].stack == "decoder":  # a sliding window has forgotten its first keys
                of_sequence = np.pad(of_sequence, ((0, 0), (tokens - x.keys, 0)), constant_values=_MASKED)
            self._keep(of_sequence, tokens - many, ids)

    def keep_pass(self, weights: np.ndarray, masked: np.ndarray | None, first: int, ids: tuple[int, ...]) -> None:
        """The rows from place `first` on of a pass over prompt and `ids`, (rows, keys), and what its mask hides."""
        if weights.nbytes > MOST_BYTES:
            return
        self._keep(weights if masked is None else np.where(masked, np.float32(_MASKED), weights), first, ids)

    def last_rows(
        self, site: SiteRef, head: int, ids: tuple[int, ...], keys: int
    ) -> tuple[np.ndarray, np.ndarray | None] | None:
        """The last rows of prompt and `ids` as one array, (rows, keys), and which of its cells are masked.

        As many as `most_rows` says; None where one of them was not kept.
        """
        many = most_rows(self.prompt + len(ids), keys)
        if self._head != (site, head) or len(self._given) + len(ids) < many:
            return None
        rows = [self._rows.get(ids[: i + 1]) for i in range(len(ids))]
        kept = [row for row in rows if row is not None]
        return _whole([*self._given, *kept][-many:], keys) if len(kept) == len(ids) else None

    def _keep(self, rows: np.ndarray, first: int, ids: tuple[int, ...]) -> None:
        """Rows (rows, keys) of the tokens from place `first` of prompt and `ids` on."""
        kept = [row[: np.flatnonzero(row != _MASKED).max(initial=0) + 1].copy() for row in rows]
        if first < self.prompt:
            self._given = kept[: self.prompt - first]
        for place, row in enumerate(kept, first - self.prompt + 1):
            if place > 0:
                self._rows[ids[:place]] = row
                self._bytes += row.nbytes


def _whole(rows: list[np.ndarray], keys: int) -> tuple[np.ndarray, np.ndarray | None]:
    array = np.full((len(rows), keys), _MASKED, np.float32)
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    masked = array == _MASKED
    array[masked] = 0
    return array, masked if masked.any() else None
