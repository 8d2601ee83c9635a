"""Cells of a map of words, and the cells of pieces that each stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product

import numpy as np

from attention_models.protocol.mask_kinds import Cell
from attention_models.protocol.word_spans import Words


@dataclass(frozen=True, eq=False)
class WordCells:
    """`weights` are those between pieces, (queries, keys); `query_names` and `key_names` what the pieces are called."""

    queries: Words
    keys: Words
    weights: np.ndarray
    query_names: Sequence[str]
    key_names: Sequence[str]

    def cell_of(self, query: int, key: int) -> tuple[int, int]:
        """The (query word, key word) of two pieces; -1 for a piece that there is not."""
        return self.queries.word(query), self.keys.word(key)

    def strongest(self, query: int, key: int) -> tuple[int, int]:
        """The pieces of two words with the largest weight between them: what is selected with the cell."""
        rows, columns = self.queries.tokens(query), self.keys.tokens(key)
        block = self.weights[rows.start : rows.stop, columns.start : columns.stop]
        row, column = np.unravel_index(int(block.argmax()), block.shape)
        return rows[int(row)], columns[int(column)]

    def words_of(self, queries: Sequence[int], keys: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The words that some pieces are in, rising."""
        rows = dict.fromkeys(self.queries.word(query) for query in queries)
        return tuple(rows), tuple(dict.fromkeys(self.keys.word(key) for key in keys))

    def note(self, query: int, key: int) -> str:
        """ ", most from “un” to “able”": which pieces are selected; "" where both words are one piece."""
        if len(self.queries.tokens(query)) == len(self.keys.tokens(key)) == 1:
            return ""
        row, column = self.strongest(query, key)
        return f", most from “{self.query_names[row]}” to “{self.key_names[column]}”"

    def pieces(self, cells: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Every (query, key) of pieces in these cells."""
        blocks = (product(self.queries.tokens(query), self.keys.tokens(key)) for query, key in cells)
        return tuple(chain.from_iterable(blocks))

    def painted(self, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        """The cells all of whose pieces are painted alike."""
        counts: dict[Cell, int] = {}
        for query, key, allowed in cells:
            cell = (*self.cell_of(query, key), allowed)
            counts[cell] = counts.get(cell, 0) + 1
        return tuple(
            cell
            for cell, count in counts.items()
            if count == len(self.queries.tokens(cell[0])) * len(self.keys.tokens(cell[1]))
        )
