"""A table of numbers as coloured cells, with a word in each where there is room: layers by heads, layers by tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QMoveEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.colour_maps import ColourTable, diverging
from explorer.widgets.themed import ThemedWidget
from explorer.widgets.token_text import isolated

_NOWHERE = (-1, -1)
_GAP = 2.0
_EDGE = 4.0
_DARK = 0.45  # below this luminance a cell's word is white
_TALLEST = 44.0
_NUMBERS = 0.88  # of the size of words
_ARROWS = {
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
}


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """What is drawn. NaN cells stay empty, and cannot be chosen.

    Attributes:
        values: (rows, columns), coloured from `low` to `high`.
        words: of each cell what stands in it; none, or as many as there are cells.
        tips: the same, for the tooltip.
        row_name, column_name: what a row and a column are, "layer" and "head".
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


class ValueGrid(ThemedWidget):
    """A click or the arrow keys choose a cell. Put it in a QScrollArea: cells keep a least width."""

    chosen = Signal(int, int)  # row, column, by a person
    hovered = Signal(int, int)  # -1, -1 off the cells
    menu_wanted = Signal(int, int, QPoint)  # where on the screen

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._grid: Grid | None = None
        self._selection = _NOWHERE
        self._hover = _NOWHERE

    def show_grid(self, grid: Grid | None) -> None:
        """None shows the empty text."""
        self._grid = grid if grid is not None and grid.values.size else None
        self._selection, self._hover = self._held(self._selection), self._held(self._hover)
        self.updateGeometry()
        self.update()

    @property
    def grid(self) -> Grid | None:
        return self._grid

    @property
    def selection(self) -> tuple[int, int]:
        return self._selection

    def select(self, row: int, column: int) -> None:
        """Frame a cell; -1, -1 for none. Emits nothing."""
        if self._held((row, column)) != self._selection:
            self._selection = self._held((row, column))
            self.update()

    def point_at(self, row: int, column: int) -> None:
        """Frame a cell that is pointed at elsewhere. Emits nothing."""
        if self._held((row, column)) != self._hover:
            self._hover = self._held((row, column))
            self.update()

    def cell_rect(self, row: int, column: int) -> QRectF:
        """Where a cell lies."""
        left, top, width, height = self._layout()
        return QRectF(left + column * width, top + row * height, width - _GAP, height - _GAP)

    def _held(self, cell: tuple[int, int]) -> tuple[int, int]:
        grid = self._grid
        if grid is None:
            return _NOWHERE
        rows, columns = grid.values.shape
        inside = 0 <= cell[0] < rows and 0 <= cell[1] < columns
        return cell if inside and not np.isnan(grid.values[cell]) else _NOWHERE

    # geometry

    def _margins(self) -> tuple[float, float]:
        metrics, grid = QFontMetricsF(self.font()), self._grid
        labels = () if grid is None else (*grid.row_labels, grid.row_name)
        widest = max((metrics.horizontalAdvance(label) for label in labels), default=0.0)
        return round(_EDGE + widest + 8), round(metrics.height() + 6)

    def _least(self) -> tuple[float, float]:
        grid = self._grid
        return (grid.least_width if grid is not None else 30.0), QFontMetricsF(self.font()).height() + 6

    def _layout(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of a cell, its gap included."""
        left, top = self._margins()
        least_width, least_height = self._least()
        assert self._grid is not None
        rows, columns = self._grid.values.shape
        width = max(least_width, (self.width() - left - _EDGE) / columns)
        height = max(least_height, min(_TALLEST, (self.height() - top - _EDGE) / rows))
        return left, top, width, height

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
        left, top, width, height = self._layout()
        rows, columns = grid.values.shape
        area = event.rect()
        first, last = (max(0, int((x - left) / width)) for x in (area.left(), area.right()))
        for row in range(rows):
            for column in range(first, min(columns, last + 1)):
                rect = self.cell_rect(row, column)
                if np.isnan(grid.values[row, column]):
                    painter.fillRect(rect, QColor(self._theme.surface_alt))
                    continue
                colour = grid.colour(row, column)
                painter.fillRect(rect, colour)
                if grid.words:
                    self._draw_word(painter, rect, grid, grid.words[row][column], colour)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for cell, pen in ((self._hover, self._theme.text_dim), (self._selection, self._theme.text)):
            if cell != _NOWHERE:
                painter.setPen(QPen(QColor(pen), 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(self.cell_rect(*cell).adjusted(-1, -1, 1, 1), 2, 2)
        self._draw_labels(painter, grid, left, top, width, height)
        self._draw_focus_ring(painter)

    def moveEvent(self, event: QMoveEvent) -> None:
        super().moveEvent(event)
        self.update()  # scrolled: the labels of rows and columns stay in view

    def _corner(self) -> QPointF:
        """The top left of what can be seen."""
        shown = self.visibleRegion().boundingRect()
        return QPointF(0, 0) if shown.isEmpty() else QPointF(shown.topLeft())

    def _draw_labels(self, painter: QPainter, grid: Grid, left: float, top: float, width: float, height: float) -> None:
        metrics, corner = QFontMetricsF(self.font()), self._corner()
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        ground = QColor(self._theme.surface)
        here, dim = QColor(self._theme.text), QColor(self._theme.text_dim)
        painter.fillRect(QRectF(0, corner.y(), self.width(), top - 2), ground)
        for column, label in enumerate(grid.column_labels):
            painter.setPen(here if column in (self._selection[1], self._hover[1]) else dim)
            rect = QRectF(left + column * width, corner.y(), width - _GAP, top - 4)
            shown = metrics.elidedText(label, Qt.TextElideMode.ElideRight, rect.width())
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, shown)
        painter.fillRect(QRectF(corner.x(), corner.y(), left - 4, self.height() - corner.y()), ground)
        for row, label in enumerate(grid.row_labels):
            painter.setPen(here if row in (self._selection[0], self._hover[0]) else dim)
            rect = QRectF(corner.x() + _EDGE, top + row * height, left - _EDGE - 8, height - _GAP)
            if rect.top() >= corner.y() + top - height / 2:
                painter.drawText(rect, right, label)
        painter.fillRect(QRectF(corner.x(), corner.y(), left - 4, top - 2), ground)
        painter.setPen(dim)
        painter.drawText(QRectF(corner.x() + _EDGE, corner.y(), left - _EDGE - 8, top - 4), right, grid.row_name)

    def _draw_word(self, painter: QPainter, rect: QRectF, grid: Grid, word: str, colour: QColor) -> None:
        luminance = 0.299 * colour.redF() + 0.587 * colour.greenF() + 0.114 * colour.blueF()
        inner = rect.adjusted(2, 0, -2, 0)
        font = self.font()
        if grid.has_numbers:
            font.setPointSizeF(_NUMBERS * font.pointSizeF())
        painter.setFont(font)
        shown = QFontMetricsF(font).elidedText(word, Qt.TextElideMode.ElideRight, inner.width())
        if shown == word or not grid.has_numbers:  # part of a number is another number
            painter.setPen(QColor("white" if luminance < _DARK else "black"))
            painter.drawText(inner, Qt.AlignmentFlag.AlignCenter, shown)
        painter.setFont(self.font())

    # pointer and keyboard

    def _at(self, position: QPointF) -> tuple[int, int]:
        if self._grid is None:
            return _NOWHERE
        left, top, width, height = self._layout()
        corner = self._corner()
        if position.x() < corner.x() + left or position.y() < corner.y() + top:
            return _NOWHERE  # the labels lie there
        return self._held((int((position.y() - top) / height), int((position.x() - left) / width)))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self._at(event.position())
        if cell != self._hover:
            self._hover = cell
            tips = () if self._grid is None else self._grid.tips
            self.setToolTip(isolated(tips[cell[0]][cell[1]]) if tips and cell != _NOWHERE else "")
            self.update()
            self.hovered.emit(*cell)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        if self._hover != _NOWHERE:
            self._hover = _NOWHERE
            self.update()
            self.hovered.emit(*_NOWHERE)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self._at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and cell != _NOWHERE:
            self._choose(cell)
        else:
            event.ignore()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        cell = self._at(QPointF(event.pos())) if by_mouse else self._selection
        if cell != _NOWHERE:
            where = event.globalPos() if by_mouse else self.mapToGlobal(self.cell_rect(*cell).center().toPoint())
            self.menu_wanted.emit(*cell, where)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _ARROWS.get(Qt.Key(event.key()))
        if self._grid is None or step is None:
            event.ignore()
            return
        rows, columns = self._grid.values.shape
        row, column = self._selection if self._selection != _NOWHERE else (0, 0)
        cell = (min(max(row + step[0], 0), rows - 1), min(max(column + step[1], 0), columns - 1))
        if self._held(cell) != _NOWHERE:
            self._choose(cell)
            self._keep_visible(self.cell_rect(*cell))

    def _choose(self, cell: tuple[int, int]) -> None:
        if cell != self._selection:
            self._selection = cell
            self.update()
            self.chosen.emit(*cell)
