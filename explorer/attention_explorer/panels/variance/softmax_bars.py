"""The weights of one row as upright bars, largest first: to see how much one of them takes."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.text_size import smaller
from attention_explorer.widgets.themed import ThemedWidget

MOST_BARS = 32
_PAD = 8.0


class SoftmaxBars(ThemedWidget):
    """A heading, bars from 0 to 1, and lines of figures beneath. Draws at most MOST_BARS weights."""

    def __init__(self, heading: str, role: str, parent: QWidget | None = None) -> None:
        """`role` names the theme's colour of the bars."""
        super().__init__(heading, parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._heading, self._role = heading, role
        self._weights = np.zeros(0)
        self._figures: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def figures(self) -> tuple[str, ...]:
        return self._figures

    def set_weights(self, weights: np.ndarray, figures: tuple[str, ...]) -> None:
        """Show `weights` (keys,), largest first, with `figures` written beneath."""
        if len(figures) != len(self._figures):
            self.updateGeometry()
        self._weights, self._figures = weights[:MOST_BARS], figures
        self.setAccessibleDescription(", ".join(figures))
        self.update()

    def sizeHint(self) -> QSize:
        lines = 1 + max(1, len(self._figures))
        return QSize(180, round(lines * self._line() + 84 + 2 * _PAD))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height() + 1

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, line = self._theme, self._line()
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(QColor(theme.surface_alt))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        inner = QRectF(self.rect()).adjusted(_PAD + 2, _PAD, -_PAD - 2, -_PAD)
        painter.setPen(QColor(theme.text))
        painter.setFont(self.bold_font())
        self._draw_line(painter, QRectF(inner.left(), inner.top(), inner.width(), line), self._heading)
        painter.setPen(QColor(theme.text_dim))
        for index, figure in enumerate(reversed(self._figures)):
            painter.setFont(self.font())
            top = inner.bottom() - (index + 1) * line
            self._draw_line(painter, QRectF(inner.left(), top, inner.width(), line), figure)
        bars = inner.adjusted(0, line + 6, 0, -len(self._figures) * line - 6)
        self._draw_bars(painter, bars)

    def _draw_line(self, painter: QPainter, rect: QRectF, text: str) -> None:
        """A little smaller, then cut, where it is too long."""
        font = painter.font()
        if QFontMetricsF(font).horizontalAdvance(text) > rect.width():
            font = smaller(font, 0.85)
            painter.setFont(font)
        shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, shown)

    def _draw_bars(self, painter: QPainter, rect: QRectF) -> None:
        theme, count = self._theme, len(self._weights)
        painter.setPen(QPen(QColor(theme.border_strong), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.setPen(QPen(QColor(theme.border), 1, Qt.PenStyle.DashLine))
        painter.drawLine(rect.topLeft(), rect.topRight())
        if not count:
            return
        width = rect.width() / count
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(theme, self._role)))
        for index, weight in enumerate(self._weights):
            height = rect.height() * float(weight)
            painter.drawRect(QRectF(rect.left() + index * width, rect.bottom() - height, max(1.0, width - 1.5), height))
