"""The scale of a map: which colour stands for which value."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.colour_maps import ColourTable, sequential
from attention_explorer.look.text_size import wide
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.number_text import nice_ticks, tick_texts, value_text
from attention_explorer.widgets.themed import ThemedWidget

_BAR = 14.0
_MARKER = 8.0
_TICK = 5.0


class ColourBar(ThemedWidget):
    """A vertical bar from low (foot) to high (top), ticks at round values, and a marker at the value pointed at."""

    def __init__(self, label: str = "weight", parent: QWidget | None = None) -> None:
        super().__init__("Colour scale", parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do here with a keyboard
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self._label = label
        self._low, self._high = 0.0, 1.0
        self._table = sequential()
        self._marker: float | None = None
        self._span: tuple[int, int] | None = None
        self._describe()

    def set_range(self, low: float, high: float) -> None:
        self._low, self._high = low, high
        self._describe()
        self.updateGeometry()
        self.update()

    def set_label(self, label: str) -> None:
        """What the values are: "weight", "score"."""
        self._label = label
        self._describe()
        self.updateGeometry()
        self.update()

    def set_colour_map(self, table: ColourTable) -> None:
        """(256, 3) uint8, from low to high."""
        self._table = table
        self.update()

    def set_marker(self, value: float | None) -> None:
        """Point at a value; None or a NaN points at none."""
        marker = None if value is None or np.isnan(value) else float(value)
        if marker != self._marker:
            self._marker = marker
            self.update()

    def set_span(self, top: int, height: int) -> None:
        """Draw the bar from `top` over `height` pixels, beside a map that lies there."""
        if (top, height) != self._span:
            self._span = (top, height)
            self.update()

    def _describe(self) -> None:
        text = f"{self._label} from {value_text(self._low)} to {value_text(self._high)}"
        self.setToolTip(text)
        self.setAccessibleDescription(text)

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        ends = (value_text(self._low), value_text(self._high))
        texts = [*tick_texts(nice_ticks(self._low, self._high, 6)), *ends, "0.00"]
        widest = max(metrics.horizontalAdvance(text) for text in texts)
        width = max(_MARKER + _BAR + _TICK + 4 + widest, _MARKER + metrics.horizontalAdvance(self._label)) + 4
        return QSize(round(width), 200)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().width(), 80)

    def _bar(self) -> QRectF:
        line = QFontMetricsF(self.font()).height()
        least = line * 1.6 + 4  # the label's line, and half of the top tick's
        top, height = self._span or (round(least), round(self.height() - least - line))
        top = max(top, round(least))
        return QRectF(_MARKER, top, _BAR, max(8.0, min(height, self.height() - top - line / 2)))

    def ticks(self) -> list[tuple[float, str]]:
        """Both ends and the round values between them, but for those whose text would touch an end's."""
        line, bar, span = QFontMetricsF(self.font()).height(), self._bar(), self._high - self._low
        ticks = nice_ticks(self._low, self._high, max(2, min(6, int(bar.height() / (2 * line)))))
        shown = list(zip(ticks, tick_texts(ticks), strict=True))
        if not span > 0:
            return shown
        for end in (self._low, self._high):
            if all(abs(tick - end) > 1e-6 * span for tick in ticks):
                shown = [each for each in shown if abs(each[0] - end) / span * bar.height() >= line]
                shown.append((end, value_text(end)))
        return sorted(shown)

    def _y(self, value: float, bar: QRectF) -> float:
        part = (value - self._low) / (self._high - self._low) if self._high > self._low else 0.0
        return bar.bottom() - min(max(part, 0.0), 1.0) * bar.height()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme, bar, metrics = self._theme, self._bar(), QFontMetricsF(self.font())
        ramp = np.arange(255, -1, -1, dtype=np.uint8)[:, None]  # highest at the top
        painter.drawImage(bar, cell_image.to_image(ramp, cell_image.packed(self._table)))
        painter.setPen(QColor(theme.text_dim))
        label = QRectF(_MARKER, bar.top() - metrics.height() * 1.6 - 2, self.width() - _MARKER, metrics.height())
        painter.drawText(label, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self._label)
        for tick, text in self.ticks():
            y = self._y(tick, bar)
            painter.setPen(QPen(QColor(theme.border_strong), 1))
            painter.drawLine(QPointF(bar.right() + 1, round(y) - 0.5), QPointF(bar.right() + _TICK, round(y) - 0.5))
            painter.setPen(QColor(theme.text_dim))
            rect = QRectF(bar.right() + _TICK + 3, y - metrics.height() / 2, self.width(), metrics.height())
            painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
        self._draw_marker(painter, bar)

    def _draw_marker(self, painter: QPainter, bar: QRectF) -> None:
        if self._marker is None:
            return
        y = self._y(self._marker, bar)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.text))
        tip = QPointF(bar.left() - 1, y)
        painter.drawPolygon(QPolygonF([tip, tip + QPointF(-6, -5), tip + QPointF(-6, 5)]))
        for colour, width in ((QColor(0, 0, 0, 110), 3.0), (QColor(255, 255, 255, 235), 1.0)):
            painter.setPen(QPen(colour, wide(width)))
            painter.drawLine(QPointF(bar.left(), y), QPointF(bar.right(), y))
