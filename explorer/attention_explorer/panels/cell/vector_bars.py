"""Vectors as rows of bars, dimension under dimension: where the score of one cell comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.cell import CellView

_GAP = 10.0
_NAME_CHARS = 8
_WIDEST = "±0.0000"  # the room for a number


@dataclass(frozen=True, slots=True, eq=False)
class VectorRow:
    """One row: its name, its numbers, and the colour of its bars."""

    name: str
    values: np.ndarray  # (dims,)
    role: Literal["query", "key", "text"] = "text"
    reach: float | None = None  # what its bars are drawn to; its own largest number if None


class VectorBars(ItemsWidget):
    """Rows of bars over one axis, each to the scale of its own largest number; the last holds what comes of them.

    The line below them names the dimension under the pointer, or the one that was chosen, and its numbers.
    """

    axis = Qt.Orientation.Horizontal  # an item is a place, counted from the left

    def __init__(
        self, name: str = "Query, key and their products, dimension by dimension", parent: QWidget | None = None
    ) -> None:
        super().__init__(name, parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[VectorRow, ...] = ()
        self._say: Callable[[int, list[float]], str] = lambda dimension, numbers: ""
        self._order = np.zeros(0, int)  # the dimension at each place
        self._sorted = False

    def set_vectors(self, q: np.ndarray, k: np.ndarray, products: np.ndarray, query: str, key: str) -> None:
        """Show `q`, `k` and `products`, all (head_dim,), of the tokens called `query` and `key`."""
        rows = (
            VectorRow(f"q  {query}", q, "query"),
            VectorRow(f"k  {key}", k, "key"),
            VectorRow("q × k", products),
        )
        self.set_rows(rows, product_sentence)

    def set_rows(self, rows: Sequence[VectorRow], say: Callable[[int, list[float]], str]) -> None:
        """Show rows of one length. `say` writes out one dimension, from its index and each row's number."""
        if len(rows) != len(self._rows):
            self.updateGeometry()
        self._rows, self._say = tuple(rows), say
        if len(rows[-1].values) != len(self._order):
            self._hover = self._current = -1
        self._arrange()

    def set_sorted(self, by_size: bool) -> None:
        """Order the dimensions by the size of the last row's numbers, largest first, or as they are in the vectors."""
        if by_size != self._sorted:
            self._sorted = by_size
            self._arrange()

    @property
    def order(self) -> list[int]:
        """The dimensions from left to right."""
        return [int(dimension) for dimension in self._order]

    @property
    def readout(self) -> str:
        """The line below the bars."""
        place = self._hover if self._hover >= 0 else self._current
        if len(self._order) == 0:
            return ""
        if place < 0:
            return f"{len(self._order)} dimensions: point at one to read it"
        dimension = self._order[place]
        return f"dim {dimension}:  {self._say(int(dimension), [float(row.values[dimension]) for row in self._rows])}"

    def bar_rect(self, row: int, place: int) -> QRectF:
        """Where the column of a bar lies, rows counted from above."""
        plot = self._plot(row)
        width = plot.width() / max(1, len(self._order))
        return QRectF(plot.left() + place * width, plot.top(), width, plot.height())

    def _arrange(self) -> None:
        results = self._rows[-1].values
        size = np.argsort(-np.abs(results), kind="stable") if self._sorted else np.arange(len(results))
        self._order = size
        self.update()

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(400, round(self._height() + self._line()) + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height() + 6

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 12

    def _height(self) -> float:
        """Of all rows together."""
        return max(3, len(self._rows)) * self._row_height()

    def _name_width(self) -> float:
        return QFontMetricsF(self.bold_font()).averageCharWidth() * _NAME_CHARS

    def _label_width(self) -> float:
        """Of a row's name and, right of it, the number that its bars reach to."""
        return self._name_width() + QFontMetricsF(self.font()).horizontalAdvance(_WIDEST)

    def _plot(self, row: int) -> QRectF:
        left, height = self._label_width() + _GAP, self._row_height()
        return QRectF(left, row * height + 3, max(1.0, self.width() - left), height - 6)

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if len(self._order) == 0:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        place = self._hover if self._hover >= 0 else self._current
        if place >= 0:
            column = self.bar_rect(0, place).united(self.bar_rect(len(self._rows) - 1, place))
            painter.fillRect(column, QColor(self._theme.surface_hover))
        for row, shown in enumerate(self._rows):
            self._draw_row(painter, row, shown.name, QColor(getattr(self._theme, shown.role)))
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text if place >= 0 else self._theme.text_dim))
        strip = QRectF(0, self._height(), self.width(), self._line())
        text = QFontMetricsF(self.font()).elidedText(self.readout, Qt.TextElideMode.ElideRight, strip.width())
        painter.drawText(strip, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)
        self._draw_focus_ring(painter)

    def _draw_row(self, painter: QPainter, row: int, name: str, colour: QColor) -> None:
        values = self._rows[row].values[self._order].astype(float)
        plot = self._plot(row)
        own, reach = float(np.abs(values).max(initial=0.0)), self._rows[row].reach
        high = own if reach is None else reach
        label = QRectF(0, plot.top(), self._name_width(), plot.height())
        metrics = QFontMetricsF(self.bold_font())
        painter.setFont(self.bold_font())
        painter.setPen(colour)
        elided = metrics.elidedText(name, Qt.TextElideMode.ElideRight, label.width())
        painter.drawText(label, Qt.AlignmentFlag.AlignVCenter, elided)
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text_dim))
        label.setRight(self._label_width())
        painter.drawText(label, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, f"±{value_text(high)}")
        # one number up and down alike, so that the zero line stays where it is from cell to cell
        zero, reach = plot.center().y(), plot.height() / 2
        painter.fillRect(QRectF(plot.left(), zero, plot.width(), 1), QColor(self._theme.border_strong))
        if high == 0:
            return
        width = plot.width() / len(values)
        gap = 2.0 if width >= 6 else 1.0 if width >= 3 else 0.0
        for place, value in enumerate(values):
            tall = abs(value) / high * reach
            top = zero - tall if value > 0 else zero + 1
            painter.fillRect(QRectF(plot.left() + place * width, top, width - gap, tall), colour)

    # pointer and keyboard

    def item_count(self) -> int:
        return len(self._order)

    def item_rect(self, item: int) -> QRectF:
        return self.bar_rect(0, item).united(self.bar_rect(len(self._rows) - 1, item))

    def _item_at(self, position: QPointF) -> int:
        plot = self._plot(0)
        along = (position.x() - plot.left()) / plot.width()
        inside = 0 <= along < 1 and 0 <= position.y() < self._height()
        return int(along * len(self._order)) if inside and len(self._order) else -1

    def _choose(self, item: int) -> None:
        self._hover = -1  # the readout is of what was chosen last
        self._move(item)


def product_sentence(_dimension: int, numbers: list[float]) -> str:
    """ "0.31 × (−0.20) = −0.062"."""
    first, second, product = (value_text(number) for number in numbers)
    return f"{first} × {in_brackets(second)} = {product}"


def value_rows(view: CellView, key: str, letter: str) -> tuple[VectorRow, ...]:
    """The value of the token called `key`, the weight times it, and the sum of these over the row, on one scale.

    `letter` is what the vector is called.
    """
    reach = float(max(np.abs(view.mixed).max(initial=0.0), np.abs(view.head_output).max(initial=0.0)))
    return (
        VectorRow(f"{letter}  {key}", view.value, "key"),
        VectorRow(f"w × {letter}", view.mixed, "key", reach),
        VectorRow(f"Σ w × {letter}", view.head_output, "query", reach),
    )


def value_sentence(weight: float, _dimension: int, numbers: list[float]) -> str:
    """ "0.268 × (−0.15) = −0.040, in the sum −0.307"."""
    value, mixed, total = (value_text(number) for number in numbers)
    return f"{value_text(weight)} × {in_brackets(value)} = {mixed}, in the sum {total}"


def in_brackets(number: str) -> str:
    """A negative factor in brackets, as it is written by hand."""
    return number if number[0].isdigit() else f"({number})"
