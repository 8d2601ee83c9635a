"""What one token attends to in several texts: a text a row, its tokens coloured by their weights, the token aligned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from attention_explorer.look.colour_maps import ColourTable, sequential
from attention_explorer.look.text_size import wide
from attention_explorer.widgets.cells_widget import NOWHERE, Cell, CellsWidget
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.token_text import shortened

_PAD, _GAP, _EDGE = 6.0, 2.0, 4.0
_DARK = 0.45  # below this luminance a word is white


@dataclass(frozen=True, slots=True, eq=False)
class TokenRow:
    """`weights` are (tokens,), NaN where masked; `query` is the place of the token itself, -1 where it is elsewhere."""

    label: str
    tokens: tuple[str, ...]
    weights: np.ndarray
    query: int


class TokenRows(CellsWidget):
    """A click or Return opens a token's text. Put it in a QScrollArea: a text takes the width that it needs."""

    opened = Signal(int, int)  # row, token

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("What a token attends to in each text", parent)
        self._rows: tuple[TokenRow, ...] = ()
        self._table = sequential()
        self._high = 1.0
        self._word = ""
        self._edges: list[list[float]] = []  # of each row the left edge of each token, and the end
        self._lay_out()

    def show_rows(self, rows: Sequence[TokenRow], word: str, high: float, table: ColourTable) -> None:
        """`word` is the token; colours reach from 0 to `high`. None shows the empty text."""
        self._rows, self._word, self._high, self._table = tuple(rows), word, high, table
        self._lay_out()
        self._keep_cells()
        self.updateGeometry()
        self.update()

    @property
    def rows(self) -> tuple[TokenRow, ...]:
        return self._rows

    def place_of_token(self) -> int:
        """The x at which the token stands in every row; 0 where it is not among them."""
        first = next((i for i, row in enumerate(self._rows) if row.query >= 0), -1)
        return 0 if first < 0 else round(self._edges[first][self._rows[first].query])

    def shape(self) -> tuple[int, int]:
        return len(self._rows), max((len(row.tokens) for row in self._rows), default=0)

    def cell_rect(self, row: int, column: int) -> QRectF:
        """Where a token lies."""
        edges = self._edges[row]
        return QRectF(edges[column], self._top(row), edges[column + 1] - edges[column] - _GAP, self._height() - _GAP)

    def tooltip_of(self, cell: Cell) -> str:
        if not self._holds(cell):
            return ""
        row, column = self._rows[cell[0]], cell[1]
        weight = float(row.weights[column])
        said = "masked" if np.isnan(weight) else value_text(weight)
        return f"{row.label}: “{self._word}” → “{shortened(row.tokens[column])}”: {said}"

    def _holds(self, cell: Cell) -> bool:
        return super()._holds(cell) and cell[1] < len(self._rows[cell[0]].tokens)

    # geometry

    def _look_changed(self) -> None:
        self._lay_out()
        super()._look_changed()

    def _height(self) -> float:
        return round(QFontMetricsF(self.font()).height() + 8)

    def _top(self, row: int) -> float:
        return _EDGE + row * self._height()

    def _label_width(self) -> float:
        metrics = QFontMetricsF(self.font())
        return round(max((metrics.horizontalAdvance(row.label) for row in self._rows), default=0.0) + 2 * _PAD)

    def _lay_out(self) -> None:
        metrics = QFontMetricsF(self.bold_font())
        widths = [
            [metrics.horizontalAdvance(shortened(token)) + 2 * _PAD + _GAP for token in row.tokens]
            for row in self._rows
        ]
        before = [
            sum(of_row[: row.query]) if row.query >= 0 else 0.0 for row, of_row in zip(self._rows, widths, strict=True)
        ]
        start = self._label_width() + _EDGE + max(before, default=0.0)
        self._edges = []
        for of_row, ahead in zip(widths, before, strict=True):
            x = start - ahead
            edges = [x]
            for width in of_row:
                x += width
                edges.append(x)
            self._edges.append(edges)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        if not self._rows:
            return QSize(160, 80)
        widest = max(edges[-1] for edges in self._edges)
        return QSize(round(widest + _EDGE), round(self._top(len(self._rows)) + _EDGE))

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not self._rows:
            self._draw_empty_text(painter)
            return
        exposed = QRectF(event.rect())
        for place, row in enumerate(self._rows):
            top = self._top(place)
            if top + self._height() < exposed.top() or top > exposed.bottom():
                continue
            for column in range(len(row.tokens)):
                rect = self.cell_rect(place, column)
                if rect.intersects(exposed):
                    self._draw_token(painter, rect, row, column)
        for cell, pen in ((self._hover, self._theme.text_dim), (self._selection, self._theme.text)):
            if cell != NOWHERE:
                painter.setPen(QPen(QColor(pen), wide(2)))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(self.cell_rect(*cell))
        self._draw_labels(painter)
        self._draw_focus_ring(painter)

    def _draw_token(self, painter: QPainter, rect: QRectF, row: TokenRow, column: int) -> None:
        weight, text = float(row.weights[column]), shortened(row.tokens[column])
        is_query = column == row.query
        painter.setFont(self.bold_font() if is_query else self.font())
        if np.isnan(weight):  # masked, which is no weight of 0: it has no colour
            painter.setPen(QPen(QColor(self._theme.border_strong), 1, Qt.PenStyle.DotLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
            painter.setPen(QColor(self._theme.text_dim))
        else:
            share = min(1.0, max(0.0, weight / self._high))
            red, green, blue = (int(channel) for channel in self._table[round(255 * share)])
            painter.fillRect(rect, QColor(red, green, blue))
            is_dark = (0.299 * red + 0.587 * green + 0.114 * blue) / 255 < _DARK
            painter.setPen(QColor("white" if is_dark else "black"))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)
        if is_query:
            painter.setPen(QPen(QColor(self._theme.query), wide(2)))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(1, 1, -1, -1))

    def _draw_labels(self, painter: QPainter) -> None:
        """At the left of what can be seen."""
        left = max(0.0, float(self.visibleRegion().boundingRect().left()))
        width = self._label_width()
        painter.setFont(self.font())
        painter.fillRect(QRectF(left, 0, width, self.height()), QColor(self._theme.surface))
        painter.setPen(QColor(self._theme.text_dim))
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        for place, row in enumerate(self._rows):
            rect = QRectF(left + _EDGE, self._top(place), width, self._height() - _GAP)
            painter.drawText(rect, flags, row.label)

    # pointer and keyboard

    def _cell_at(self, position: QPointF) -> Cell:
        row = int((position.y() - _EDGE) / self._height())
        left = max(0.0, float(self.visibleRegion().boundingRect().left())) + self._label_width()
        if not 0 <= row < len(self._rows) or position.y() < _EDGE or position.x() < left:
            return NOWHERE
        edges = self._edges[row]
        column = int(np.searchsorted(edges, position.x(), side="right")) - 1
        return (row, column) if 0 <= column < len(edges) - 1 else NOWHERE

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        cell = self._held(self._cell_at(event.position()))
        if event.button() == Qt.MouseButton.LeftButton and cell != NOWHERE:
            self.opened.emit(*cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._selection != NOWHERE:
            self.opened.emit(*self._selection)
        else:
            super().keyPressEvent(event)
