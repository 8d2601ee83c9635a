"""A map that is held whole: a value a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attention_explorer.widgets import cell_image
from attention_explorer.widgets.heat_map.readout import Piece, Wording, cell_pieces
from attention_explorer.widgets.heat_map.view import MapView


@dataclass(frozen=True, eq=False)
class WholeValues:
    """Values (queries, keys), coloured over `span`; a masked cell, and one that is NaN, has no colour."""

    values: NDArray[np.float32]  # (queries, keys)
    masked: NDArray[np.bool_] | None  # (queries, keys)
    span: tuple[float, float]
    codes: cell_image.Codes  # (queries, keys)
    has_gaps: bool

    @classmethod
    def of(
        cls,
        values: NDArray[np.float32],
        masked: NDArray[np.bool_] | None,
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        span: tuple[float, float],
    ) -> WholeValues | None:
        """None where there is no cell. Raises ValueError when the shapes do not agree."""
        values = np.asarray(values, dtype=np.float32)
        if values.ndim != 2 or values.shape != (len(row_labels), len(column_labels)):
            raise ValueError(
                f"The map has shape {values.shape}, its labels name "
                f"{len(row_labels)} queries and {len(column_labels)} keys."
            )
        if masked is not None and masked.shape != values.shape:
            raise ValueError(f"The mask has shape {masked.shape}, the map has shape {values.shape}.")
        if values.size == 0:
            return None
        codes = cell_image.encode(values, *span, masked)
        return cls(values, masked, span, codes, not bool(codes.all()))

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, keys)"""
        queries, keys = self.values.shape
        return queries, keys

    def pixels(self, view: MapView, ratio: float) -> cell_image.Codes:
        """One code a device pixel of the visible cells, (down, across)."""
        pixels = self.codes
        for index, axis in enumerate((view.rows, view.columns)):
            length = max(1, round(axis.extent * ratio))
            pixels = cell_image.stretch(pixels, index, axis.offset, axis.size * ratio, length)
        return pixels

    def value_of(self, query: int, key: int, view: MapView, ratio: float) -> float | None:
        """The value of a cell; None of one that has no colour."""
        is_masked = self.masked is not None and bool(self.masked[query, key])
        value = float(self.values[query, key])
        return None if is_masked or not math.isfinite(value) else value

    def pieces(self, query: int, key: int, words: Wording) -> list[Piece]:
        """What the readout says of a cell."""
        is_masked = self.masked is not None and bool(self.masked[query, key])
        return cell_pieces(words, None if is_masked else float(self.values[query, key]))
