"""What a map shows: values under the names of their queries and keys."""

from __future__ import annotations

from dataclasses import dataclass

from attention_explorer.widgets.heat_map.picture import Source
from attention_explorer.widgets.heat_map.readout import Piece, Wording
from attention_explorer.widgets.heat_map.tiled_values import TiledValues
from attention_explorer.widgets.heat_map.view import NOWHERE, MapView

Cell = tuple[int, int]  # query, key; NOWHERE for none


@dataclass(frozen=True, eq=False)
class NamedValues:
    """Values, a name a query and a name a key; before there are values, the names alone."""

    source: Source | None = None
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of the queries, and of the keys."""
        return self.rows, self.columns

    @property
    def shape(self) -> tuple[int, int] | None:
        """(queries, keys); None while there are no values."""
        return None if self.source is None else self.source.shape

    @property
    def tiled(self) -> TiledValues | None:
        """The values, where they come in tiles."""
        return self.source if isinstance(self.source, TiledValues) else None

    def within(self, cell: Cell) -> Cell:
        """`cell`, or NOWHERE where there is no such cell."""
        if self.shape is None:
            return NOWHERE
        rows, columns = self.shape
        return cell if 0 <= cell[0] < rows and 0 <= cell[1] < columns else NOWHERE

    def crossing(self, query: int, key: int) -> Cell:
        """The lines of a crosshair; -1 for one that would be off the map."""
        return (
            query if 0 <= query < len(self.rows) else -1,
            key if 0 <= key < len(self.columns) else -1,
        )

    def value_at(self, cell: Cell, view: MapView, ratio: float) -> tuple[float, int] | None:
        """Of values in tiles, a cell's value and 1, or the value of a square and its side. None: nothing yet."""
        if self.tiled is None or self.within(cell) == NOWHERE:
            return None
        return self.tiled.value_at(*cell, view, ratio)

    def pieces(self, cell: Cell, words: Wording, view: MapView, ratio: float) -> list[Piece]:
        """What the readout says of a cell that there is."""
        if isinstance(self.source, TiledValues):
            return self.source.pieces(self.value_at(cell, view, ratio), words)
        return [] if self.source is None else self.source.pieces(*cell, words)

    def label(self, side: str, index: int) -> str:
        """The whole name along one side, "row" or "column", and its number; "" for any other."""
        if side == "row":
            return f"query {index}: {self.rows[index]}"
        return f"key {index}: {self.columns[index]}" if side == "column" else ""
