"""The parts of the widget around the map: room for labels, titles and the readout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF

from attention_explorer.look.text_size import line_scale, wide
from attention_explorer.widgets.heat_map.view import NEARLY_SQUARE, Bounds, MapView, label_centre
from attention_explorer.widgets.token_text import ARROW

GAP = 6.0
SLANT = math.sqrt(0.5)  # column labels rise at 45 degrees
LEAN = 0.2  # how far right of its cell's middle a column label starts, in lines

Names = tuple[Sequence[str], Sequence[str]]
"""Of the rows, and of the columns."""

Titles = Literal["none", "margins", "corner"]
"""Where the names of the axes stand."""

KEY_CORNER, QUERY_CORNER = "key →", "query ↓"
"""What they are in the corner."""

_LONGEST_LABEL = 112.0
_LONGEST_PAIR = 168.0  # "El → gato"
_FEW_LINES = 11  # a widget of fewer lines of text leaves the names of its axes to the readout
_SIZES = (24, 28, 32, 36, 40)  # pixels, of labels that grow with their cells
_MOST_GROWN = 40  # labels on an axis: the cells of more have no room for larger ones
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
    label_font: QFont
    label_bold: QFont
    label_line: float
    titles: Titles
    has_numbers: bool  # whether cells that have room say their value

    def is_whole(self, names: Names, view: MapView) -> bool:
        """Whether no label is cut for its length."""
        width = QFontMetricsF(self.label_bold).horizontalAdvance
        rooms = (self.column_room(label_centre(view.columns, cell, self.label_line)) for cell in range(len(names[1])))
        columns = all(width(name) <= room for name, room in zip(names[1], rooms, strict=True))
        return columns and max(map(width, names[0]), default=0.0) <= self.row_label_width

    def column_room(self, middle: float) -> float:
        """How long the label of a column may be whose middle is there: the last ones end with the widget."""
        x = middle + self.label_line * LEAN
        return min(self.label_limit, (self.strip.right() - x) / SLANT - self.label_line / 2)

    def fitted_view(
        self, rows: int, columns: int, pixel: float, block: tuple[range, range], bounds: Bounds = NEARLY_SQUARE
    ) -> MapView:
        """A `block` of a map in its room, on whole pixels of size `pixel`; of an empty map, a single cell."""
        room = self.room
        shape = max(1, rows), max(1, columns)
        return MapView.fit(*shape, room.x(), room.y(), room.width(), room.height(), pixel, block, bounds)


def frame_for(
    font: QFont,
    bold: QFont,
    size: QSize,
    rows: Sequence[str],
    columns: Sequence[str],
    larger: float = 1.0,
    longer: float = 1.0,
    from_afar: bool = False,
) -> Frame:
    """Divide a widget of `size` between labels, titles, readout and map.

    Labels are `larger` than the other text by a factor, and may be `longer` by one than at a desk. What is read
    `from_afar` has the names of the axes in the corner between the labels, so that more is left to the map.
    """
    label_font, label_bold = enlarged(font, larger), enlarged(bold, larger)
    metrics = QFontMetricsF(label_bold)  # any label may turn bold, and must not move the map when it does
    line, label_line = QFontMetricsF(bold).height(), metrics.height()
    share = 0.3 if size.height() >= _FEW_LINES * line else 0.22  # of a low widget the map needs more
    limit = min(_LONGEST_LABEL * larger * longer, 0.2 * size.width(), share * size.height())
    row_limit = limit
    if any(ARROW in label for label in rows):
        row_limit = min(wide(_LONGEST_PAIR) * larger, 0.28 * size.width())
    widths = {label: metrics.horizontalAdvance(label) for label in {*rows, *columns}}  # thousands repeat
    row_width = min(row_limit, max((widths[label] for label in rows), default=0.0))
    column_widths = [min(limit, widths[label]) for label in columns]
    titles: Titles = "none" if size.height() < _FEW_LINES * line else "corner" if from_afar else "margins"
    top = (max(column_widths, default=0.0) + label_line) * SLANT + 2
    if titles == "corner":
        row_width = max(
            row_width, *(QFontMetricsF(font).horizontalAdvance(name) for name in (KEY_CORNER, QUERY_CORNER))
        )
        top = max(top, 2 * line + GAP)
    left = (line + GAP if titles == "margins" else GAP) + row_width + GAP
    strip = QRectF(0, size.height() - line - 8, size.width(), line + 8)
    bottom = strip.height() + (
        line + 2 * GAP if titles == "margins" else label_line / 2
    )  # a row's label may reach below it
    if from_afar:  # by as much as it is higher than its row
        high = (size.height() - top - strip.height() - GAP) / max(1, len(rows))
        bottom = strip.height() + min(label_line / 2, max(GAP, (label_line - high) / 2))
    from_right = np.array(column_widths[::-1])
    beyond_middle = (from_right + label_line / 2) * SLANT + label_line * LEAN
    middle = (np.arange(len(columns)) + 0.5) / max(1, len(columns))  # from the right, as shares of the map
    # what is left to them is taken from the map, whose columns then end further to the left
    beyond = (beyond_middle - middle * (size.width() - left)) / (1 - middle)
    overhang = float(np.max(beyond, initial=0.0))
    right = min(max(4.0, overhang + 2), wide(_MOST_OVERHANG) * larger)
    room = QRectF(left, top, max(1.0, size.width() - left - right), max(1.0, size.height() - top - bottom))
    return Frame(font, bold, room, strip, limit, row_width, line, label_font, label_bold, label_line, titles, from_afar)


def frame_from_afar(
    font: QFont,
    bold: QFont,
    size: QSize,
    names: Names,
    fit: Callable[[Frame], MapView],
    least: float,
) -> tuple[Frame, MapView]:
    """With labels that grow with their cells, as long as the map keeps `least` pixels of height; `fit` lays it out."""
    # long names are whole where the cells keep their room, and not cut more than it takes
    for share in (1.0, 0.75, 0.5, 0.75):
        longer = share * line_scale()
        frame = frame_for(font, bold, size, *names, longer=longer, from_afar=True)
        view = fit(frame)
        if view.rows.extent >= least:
            break
    if max(map(len, names)) > _MOST_GROWN:
        return frame, view
    pixels = QFontInfo(font).pixelSize()
    for larger in (size / pixels for size in _SIZES if size > pixels):
        frame_now = frame_for(font, bold, size, *names, larger, longer, from_afar=True)
        view_now = fit(frame_now)
        too_large = frame_now.label_line > min(view_now.rows.size, view_now.columns.size)
        cuts = frame.is_whole(names, view) and not frame_now.is_whole(names, view_now)
        if too_large or cuts or view_now.rows.extent < min(least, view.rows.extent):
            break
        frame, view = frame_now, view_now
    return frame, view


def enlarged(font: QFont, factor: float) -> QFont:
    """A copy of `font`, `factor` times as large where that is above 1."""
    copy = QFont(font)
    if factor > 1:
        copy.setPointSizeF(factor * font.pointSizeF())
    return copy


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
