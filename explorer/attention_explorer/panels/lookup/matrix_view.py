"""Small matrices and vectors written out with their brackets."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.text_size import smaller
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.themed import ThemedWidget

Rows = Sequence[Sequence[float]]


class MatrixView(ThemedWidget):
    """One or more matrices in a line, each as "name = [numbers]"; in "W_q" the q is a small index."""

    def __init__(self, matrices: Sequence[tuple[str, Rows]], parent: QWidget | None = None) -> None:
        super().__init__("Matrices", parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._matrices = [(name, [[_number(x) for x in row] for row in rows]) for name, rows in matrices]
        heard = (f"{name} is " + "; ".join(" ".join(row) for row in rows) for name, rows in self._matrices)
        self.setAccessibleDescription(", ".join(heard))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(round(self._place()[1]), round(self._height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(100, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _height(self) -> float:
        return max(len(rows) for _, rows in self._matrices) * self._line() + 6

    def _place(self) -> tuple[list[float], float]:
        """Left ends, and the right end of all."""
        left, lefts = 0.0, []
        for name, rows in self._matrices:
            lefts.append(left)
            left += self._name_width(name) + len(rows[0]) * self._cell() + 32
        return lefts, left

    def _small(self) -> QFont:
        return smaller(self.font(), 0.75)

    def _name_width(self, name: str) -> float:
        letter, _, index = name.partition("_")
        small = QFontMetricsF(self._small()).horizontalAdvance(index)
        return QFontMetricsF(self.font()).horizontalAdvance(f"{letter} = ") + small

    def _cell(self) -> float:
        metrics = QFontMetricsF(self.font())
        return max(metrics.horizontalAdvance(x) for _, rows in self._matrices for row in rows for x in row) + 10

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, metrics, middle = self._theme, QFontMetricsF(self.font()), Qt.AlignmentFlag.AlignVCenter
        for left, (name, rows) in zip(self._place()[0], self._matrices, strict=True):
            painter.setPen(QColor(theme.text_dim))
            letter, _, index = name.partition("_")
            painter.setFont(self.font())
            painter.drawText(QRectF(left, 0, 200, self._height()), middle, letter)
            painter.setFont(self._small())
            after = left + metrics.horizontalAdvance(letter)
            painter.drawText(QRectF(after, metrics.height() / 4, 200, self._height()), middle, index)
            painter.setFont(self.font())
            after += QFontMetricsF(self._small()).horizontalAdvance(index)
            painter.drawText(QRectF(after, 0, 200, self._height()), middle, " = ")
            x = left + self._name_width(name) + 4
            height = len(rows) * self._line()
            top = (self._height() - height) / 2
            painter.setPen(QColor(theme.text))
            for i, row in enumerate(rows):
                for j, entry in enumerate(row):
                    cell = QRectF(x + j * self._cell(), top + i * self._line(), self._cell() - 2, self._line())
                    painter.drawText(cell, middle | Qt.AlignmentFlag.AlignRight, entry)
            self._draw_brackets(painter, QRectF(x, top, len(rows[0]) * self._cell() + 4, height))

    def _draw_brackets(self, painter: QPainter, rect: QRectF) -> None:
        painter.setPen(QPen(QColor(self._theme.text_dim), 1.5))
        for x, inward in ((rect.left(), 4), (rect.right(), -4)):
            top, bottom = QPointF(x, rect.top()), QPointF(x, rect.bottom())
            painter.drawPolyline([top + QPointF(inward, 0), top, bottom, bottom + QPointF(inward, 0)])


def _number(value: float) -> str:
    return f"{value:.1f}".replace("-", MINUS)
