"""The parts of the widget around the map: room for labels, titles and the readout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QFont, QFontMetricsF

from explorer.widgets.heat_map.view import MapView
from explorer.widgets.token_text import ARROW

GAP = 6.0
SLANT = math.sqrt(0.5)  # column labels rise at 45 degrees
LEAN = 0.2  # how far right of its cell's middle a column label starts, in lines

_LONGEST_LABEL = 112.0
_LONGEST_PAIR = 168.0  # "El → gato"
_FEW_LINES = 11  # a widget of fewer lines of text leaves the names of its axes to the readout
_MOST_OVERHANG = 28.0  # the last column labels are elided rather than cost the map more than this


@dataclass(frozen=True)
class Frame:
    """Where the parts lie, in logical pixels, and the fonts they are measured in."""

    font: QFont
    bold: QFont
    room: QRectF  # what the map may take up
    strip: QRectF  # the readout
    label_limit: float  # pixels a column's label may take before it is elided
    row_label_width: float
    line: float  # height of a line of text
    titled: bool = True  # whether there is room for the names of the axes

    def fitted_view(self, rows: int, columns: int, pixel: float, block: tuple[range, range]) -> MapView:
        """A `block` of a map in its room, on whole pixels of size `pixel`; of an empty map, a single cell."""
        room = self.room
        shape = max(1, rows), max(1, columns)
        return MapView.fit(*shape, room.x(), room.y(), room.width(), room.height(), pixel, block)


def frame_for(font: QFont, bold: QFont, size: QSize, rows: Sequence[str], columns: Sequence[str]) -> Frame:
    """Divide a widget of `size` between labels, titles, readout and map."""
    metrics = QFontMetricsF(bold)  # any label may turn bold, and must not move the map when it does
    line = metrics.height()
    share = 0.3 if size.height() >= _FEW_LINES * line else 0.22  # of a low widget the map needs more
    limit = min(_LONGEST_LABEL, 0.2 * size.width(), share * size.height())
    row_limit = min(_LONGEST_PAIR, 0.28 * size.width()) if any(ARROW in label for label in rows) else limit
    widths = {label: metrics.horizontalAdvance(label) for label in {*rows, *columns}}  # thousands repeat
    row_width = min(row_limit, max((widths[label] for label in rows), default=0.0))
    column_widths = [min(limit, widths[label]) for label in columns]
    titled = size.height() >= _FEW_LINES * line
    left = (line + GAP if titled else GAP) + row_width + GAP
    top = (max(column_widths, default=0.0) + line) * SLANT + 2
    strip = QRectF(0, size.height() - line - 8, size.width(), line + 8)
    bottom = strip.height() + (line + 2 * GAP if titled else line / 2)  # a row's label may reach below it
    cell = max(1.0, (size.width() - left) / max(1, len(columns)))
    from_right = np.array(column_widths[::-1])
    beyond_middle = (from_right + line / 2) * SLANT + line * LEAN
    overhang = float(np.max(beyond_middle - (np.arange(len(columns)) + 0.5) * cell, initial=0.0))
    right = min(max(4.0, overhang + 2), _MOST_OVERHANG)
    room = QRectF(left, top, max(1.0, size.width() - left - right), max(1.0, size.height() - top - bottom))
    return Frame(font, bold, room, strip, limit, row_width, line, titled)


def label_at(frame: Frame, view: MapView, position: QPointF) -> tuple[str, int]:
    """Which label lies under a position: ("row", index), ("column", index), or ("", -1)."""
    map_left, map_top = view.columns.origin, view.rows.origin
    if map_left - GAP - frame.row_label_width <= position.x() < map_left:
        row = view.rows.cell_at(position.y())
        return ("row", row) if row >= 0 else ("", -1)
    if position.y() < map_top:
        rise = map_top - position.y()  # labels lean right by as much as they rise
        column = view.columns.cell_at(position.x() - rise)
        return ("column", column) if column >= 0 else ("", -1)
    return ("", -1)
