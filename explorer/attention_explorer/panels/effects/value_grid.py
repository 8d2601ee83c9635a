"""A table of numbers as coloured cells, with a word in each where there is room: layers by heads, layers by tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.colour_maps import ColourTable, diverging
from attention_explorer.look.text_size import is_read_from_afar, smaller, wide
from attention_explorer.widgets.cells_widget import NOWHERE, Cell, CellsWidget

_GAP = 2.0
_EDGE = 4.0
_DARK = 0.45  # below this luminance a cell's word is white
_TALLEST = 44.0
_NUMBERS = 0.88  # of the size of words


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """What is drawn. NaN cells stay empty, and cannot be chosen.

    Attributes:
        values: (rows, columns), coloured from `low` to `high`.
        words: of each cell what stands in it; none, or as many as there are cells.
        tips: the same, for the tooltip.
        row_name, column_name: what a row and a column are, "layer" and "head".
        second_labels, second_name: a second line of labels below those of the columns, and what they are.
        least_width: pixels that a cell is wide at least.
        table: from `low` to `high`, (256, 3) uint8.
    """

    values: np.ndarray
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    low: float
    high: float
    row_name: str = ""
    column_name: str = ""
    second_labels: tuple[str, ...] = ()
    second_name: str = ""
    words: tuple[tuple[str, ...], ...] = ()
    tips: tuple[tuple[str, ...], ...] = ()
    least_width: float = 30.0
    has_numbers: bool = False  # `words` are numbers, which are not cut
    table: ColourTable = field(default_factory=diverging)

    def colour(self, row: int, column: int) -> QColor:
        span = self.high - self.low
        share = 0.5 if span <= 0 else (float(self.values[row, column]) - self.low) / span
        place = 255 * min(1.0, max(0.0, share))
        low, part = int(place), place - int(place)
        mixed = (1 - part) * self.table[low] + part * self.table[min(low + 1, 255)]  # so that 0 is neither red nor blue
        red, green, blue = (round(channel) for channel in mixed.tolist())
        return QColor(red, green, blue)


class _Layout(NamedTuple):
    """Where the first cell begins, and what each takes with the gap behind it, in pixels."""

    left: float
    top: float
    width: float
    height: float

    def rect(self, row: int, column: int) -> QRectF:
        x, y = self.left + column * self.width, self.top + row * self.height
        return QRectF(x, y, self.width - _GAP, self.height - _GAP)

    def within(self, area: QRectF, rows: int, columns: int) -> tuple[range, range]:
        """Which of so many rows and columns reach into an area."""
        across = _reached(area.left() - self.left, area.right() - self.left, self.width, columns)
        return _reached(area.top() - self.top, area.bottom() - self.top, self.height, rows), across


def _reached(start: float, end: float, step: float, count: int) -> range:
    """Which of `count` steps of this length reach into a stretch."""
    return range(max(0, int(start / step)), max(0, min(count, int(end / step) + 1)))


class ValueGrid(CellsWidget):
    """A click or the arrow keys choose a cell. Put it in a QScrollArea: cells keep a least width."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._grid: Grid | None = None

    def show_grid(self, grid: Grid | None) -> None:
        """None shows the empty text."""
        self._grid = grid if grid is not None and grid.values.size else None
        self._keep_cells()
        self.updateGeometry()
        self.update()

    @property
    def grid(self) -> Grid | None:
        return self._grid

    def cell_rect(self, row: int, column: int) -> QRectF:
        """Where a cell lies."""
        return self._layout().rect(row, column)

    def shape(self) -> tuple[int, int]:
        return (0, 0) if self._grid is None else self._grid.values.shape

    def _holds(self, cell: Cell) -> bool:
        return super()._holds(cell) and self._grid is not None and not np.isnan(self._grid.values[cell])

    def _with_labels(self, rect: QRectF) -> QRectF:
        left, top = self._margins()
        return rect.adjusted(-left, -top, 0, 0)

    def tooltip_of(self, cell: Cell) -> str:
        tips = () if self._grid is None else self._grid.tips
        return tips[cell[0]][cell[1]] if tips and cell != NOWHERE else ""

    # geometry

    def _margins(self) -> tuple[float, float]:
        metrics, grid = QFontMetricsF(self.font()), self._grid
        labels = () if grid is None else (*grid.row_labels, grid.row_name, grid.second_name)
        widest = max((metrics.horizontalAdvance(label) for label in labels), default=0.0)
        lines = 2 if grid is not None and grid.second_labels else 1
        return round(_EDGE + widest + 8), round(lines * metrics.height() + 6)

    def _least(self) -> tuple[float, float]:
        grid, metrics = self._grid, QFontMetricsF(self.font())
        width = 30.0 if grid is None else grid.least_width
        if grid is not None and grid.has_numbers and is_read_from_afar():  # nobody points at a cell from there
            width = max(width, *(metrics.horizontalAdvance(word) + 8 for row in grid.words for word in row))
        return width, metrics.height() + 6

    def _layout(self) -> _Layout:
        left, top = self._margins()
        least_width, least_height = self._least()
        assert self._grid is not None
        rows, columns = self._grid.values.shape
        width = max(least_width, (self.width() - left - _EDGE) / columns)
        height = max(least_height, min(_TALLEST, (self.height() - top - _EDGE) / rows))
        return _Layout(left, top, width, height)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        if self._grid is None:
            return QSize(160, 80)
        left, top = self._margins()
        width, height = self._least()
        rows, columns = self._grid.values.shape
        return QSize(round(left + columns * width + _EDGE), round(top + rows * height + _EDGE))

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        grid = self._grid
        if grid is None:
            self._draw_empty_text(painter)
            return
        layout, exposed = self._layout(), QRectF(event.rect())
        rows, columns = layout.within(exposed, *grid.values.shape)
        for row in rows:
            for column in columns:
                rect = layout.rect(row, column)
                if np.isnan(grid.values[row, column]):
                    painter.fillRect(rect, QColor(self._theme.surface_alt))
                    continue
                colour = grid.colour(row, column)
                painter.fillRect(rect, colour)
                if grid.words:
                    self._draw_word(painter, rect, grid, grid.words[row][column], colour)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for cell, pen in ((self._hover, self._theme.text_dim), (self._selection, self._theme.text)):
            if cell != NOWHERE:
                painter.setPen(QPen(QColor(pen), wide(2)))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(layout.rect(*cell).adjusted(-1, -1, 1, 1), 2, 2)
        self._draw_labels(painter, grid, layout, exposed)
        self._draw_focus_ring(painter)

    def _corner(self) -> QPointF:
        """The top left of what can be seen."""
        shown = self.visibleRegion().boundingRect()
        return QPointF(0, 0) if shown.isEmpty() else QPointF(shown.topLeft())

    def _draw_labels(self, painter: QPainter, grid: Grid, layout: _Layout, exposed: QRectF) -> None:
        left, top, width, height = layout
        metrics, corner = QFontMetricsF(self.font()), self._corner()
        line = metrics.height() + 2
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        ground = QColor(self._theme.surface)
        here, dim = QColor(self._theme.text), QColor(self._theme.text_dim)
        painter.fillRect(QRectF(0, corner.y(), self.width(), top - 2), ground)
        rows, columns = layout.within(exposed, *grid.values.shape)
        for column in columns:
            painter.setPen(here if column in (self._selection[1], self._hover[1]) else dim)
            rect = QRectF(left + column * width, corner.y(), width - _GAP, line)
            for label in (grid.column_labels[column], *grid.second_labels[column : column + 1]):
                shown = metrics.elidedText(label, Qt.TextElideMode.ElideRight, rect.width())
                painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, shown)
                rect.translate(0, metrics.height())
        painter.fillRect(QRectF(corner.x(), corner.y(), left - 4, self.height() - corner.y()), ground)
        for row in rows:
            painter.setPen(here if row in (self._selection[0], self._hover[0]) else dim)
            rect = QRectF(corner.x() + _EDGE, top + row * height, left - _EDGE - 8, height - _GAP)
            if rect.top() >= corner.y() + top - height / 2:
                painter.drawText(rect, right, grid.row_labels[row])
        painter.fillRect(QRectF(corner.x(), corner.y(), left - 4, top - 2), ground)
        painter.setPen(dim)
        name = QRectF(corner.x() + _EDGE, corner.y(), left - _EDGE - 8, line)
        painter.drawText(name, right, grid.row_name)
        if grid.second_labels:
            painter.drawText(name.translated(0, metrics.height()), right, grid.second_name)

    def _draw_word(self, painter: QPainter, rect: QRectF, grid: Grid, word: str, colour: QColor) -> None:
        luminance = 0.299 * colour.redF() + 0.587 * colour.greenF() + 0.114 * colour.blueF()
        inner = rect.adjusted(2, 0, -2, 0)
        font = smaller(self.font(), _NUMBERS) if grid.has_numbers else self.font()
        painter.setFont(font)
        shown = QFontMetricsF(font).elidedText(word, Qt.TextElideMode.ElideRight, inner.width())
        if shown == word or not grid.has_numbers:  # part of a number is another number
            painter.setPen(QColor("white" if luminance < _DARK else "black"))
            painter.drawText(inner, Qt.AlignmentFlag.AlignCenter, shown)
        painter.setFont(self.font())

    # for pointer and keyboard

    def _cell_at(self, position: QPointF) -> Cell:
        if self._grid is None:
            return NOWHERE
        left, top, width, height = self._layout()
        corner = self._corner()
        if position.x() < corner.x() + left or position.y() < corner.y() + top:
            return NOWHERE  # the labels lie there
        return self._held((int((position.y() - top) / height), int((position.x() - left) / width)))
