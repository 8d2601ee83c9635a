"""A slider on a logarithmic axis, with named marks and one place that is home."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.themed import ThemedWidget

_HANDLE = 9.0  # radius
_SNAP = 6.0  # pixels within which the handle falls into a mark
_STEP = 2.0 ** (1 / 8)
_PAGE = 2.0
_LABEL_GAP = 8.0


@dataclass(frozen=True)
class SliderMark:
    """A value worth a tick. `is_home` is the one that a double click and the key 0 lead back to."""

    value: float
    label: str
    is_home: bool = False


class LogSlider(ThemedWidget):
    """Chooses a value between two positive ones; a change of place is a change of ratio.

    Drag the handle or click the line; arrows step by an eighth of a doubling, Page keys double, 0 or a double click
    goes home. A value of 0, which no logarithm reaches, can only be set from outside: the handle is then hollow.
    """

    value_changed = Signal(float)  # by the person, also during a drag

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self._low, self._high = 0.1, 10.0
        self._marks: tuple[SliderMark, ...] = ()
        self._value = 1.0
        self._dragging = False
        self._hovered = False
        self._describe()

    def set_scale(self, low: float, high: float, marks: Sequence[SliderMark] = ()) -> None:
        """The ends of the axis and its marks. Raises ValueError unless 0 < low < high."""
        if not 0 < low < high:
            raise ValueError(f"A logarithmic axis cannot run from {low} to {high}: it needs 0 < low < high.")
        if (low, high, tuple(marks)) != (self._low, self._high, self._marks):
            self._low, self._high, self._marks = low, high, tuple(marks)
            self.update()

    def set_value(self, value: float) -> None:
        """Show `value`; one beyond the ends is shown at the end. Emits nothing."""
        if value != self._value:
            self._value = value
            self._describe()
            self.update()

    @property
    def value(self) -> float:
        return self._value

    @property
    def is_dragging(self) -> bool:
        return self._dragging

    def x_of(self, value: float) -> float:
        """Where on the widget a value lies, in pixels."""
        line = self._line()
        part = math.log(min(max(value, self._low), self._high) / self._low) / math.log(self._high / self._low)
        return line.x1() + part * line.dx()

    def value_at(self, x: float) -> float:
        """The value at a place of the widget; a mark's own within a few pixels of it."""
        near = min(self._marks, key=lambda mark: abs(self.x_of(mark.value) - x), default=None)
        if near is not None and abs(self.x_of(near.value) - x) <= _SNAP:
            return near.value
        line = self._line()
        part = min(max((x - line.x1()) / line.dx(), 0.0), 1.0)
        return self._low * math.exp(part * math.log(self._high / self._low))

    def handle_rect(self) -> QRectF:
        """Where the handle is."""
        middle = QPointF(self.x_of(self._value), self._line().y1())
        return QRectF(middle.x() - self._handle(), middle.y() - self._handle(), 2 * self._handle(), 2 * self._handle())

    def _describe(self) -> None:
        self.setAccessibleDescription(f"{value_text(self._value)}; arrow keys change it, 0 puts it back")

    # geometry and painting

    def _handle(self) -> float:
        """Its radius."""
        return wide(_HANDLE)

    def _line(self) -> QLineF:
        y = self._handle() + 3
        return QLineF(self._handle() + 4, y, max(self._handle() + 5.0, self.width() - self._handle() - 4), y)

    def sizeHint(self) -> QSize:
        return QSize(300, round(2 * self._handle() + 10 + QFontMetricsF(self.font()).height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, line = self._theme, self._line()
        handle = self.handle_rect().center()
        for end, colour in ((line.p2(), theme.border), (handle, theme.query)):
            painter.setPen(QPen(QColor(colour), wide(4), c=Qt.PenCapStyle.RoundCap))
            start = line.p1() if end == line.p2() else QPointF(self._home_x(), line.y1())
            painter.drawLine(QLineF(start, end))
        for mark in self._marks:
            x = round(self.x_of(mark.value)) + 0.5
            painter.setPen(QPen(QColor(theme.border_strong), wide(2 if mark.is_home else 1)))
            painter.drawLine(QLineF(x, line.y1() - 8, x, line.y1() + 9))
        self._draw_labels(painter)
        painter.setPen(QPen(QColor(theme.query), 2))
        filled = theme.surface if self._value == 0 else theme.query
        painter.setBrush(QColor(filled))
        radius = self._handle() - 1 + (1 if self._dragging or self._hovered else 0)
        painter.drawEllipse(handle, radius, radius)
        self._draw_focus_ring(painter)

    def _home_x(self) -> float:
        home = next((mark.value for mark in self._marks if mark.is_home), self._low)
        return self.x_of(home)

    def _draw_labels(self, painter: QPainter) -> None:
        """The marks' names below the line; home's comes first, one that would touch another is left out."""
        top = self._line().y1() + self._handle() + 3
        taken: list[QRectF] = []
        for mark in sorted(self._marks, key=lambda mark: not mark.is_home):
            font = self.bold_font() if mark.is_home else self.font()
            metrics = QFontMetricsF(font)
            width = metrics.horizontalAdvance(mark.label) + 2
            left = min(max(self.x_of(mark.value) - width / 2, 0.0), self.width() - width)
            rect = QRectF(left, top, width, metrics.height())
            if any(rect.adjusted(-_LABEL_GAP, 0, _LABEL_GAP, 0).intersects(other) for other in taken):
                continue
            taken.append(rect)
            painter.setFont(font)
            painter.setPen(QColor(self._theme.text if mark.is_home else self._theme.text_dim))
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, mark.label)

    # pointer

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._dragging = True
        if not self.handle_rect().contains(event.position()):
            self._choose(self.value_at(event.position().x()))
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragging:
            self._choose(self.value_at(event.position().x()))
        over = self.handle_rect().contains(event.position())
        if over != self._hovered:
            self._hovered = over
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._dragging and event.button() == Qt.MouseButton.LeftButton:
            self._dragging = False
            self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.handle_rect().contains(event.position()):
            self.go_home()
        else:
            self.mousePressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # a wheel over the panel scrolls it: passing by must not change the model

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hovered = False
        self.update()

    # keyboard

    def go_home(self) -> None:
        """Back to the mark that is home, if there is one."""
        home = next((mark for mark in self._marks if mark.is_home), None)
        if home is not None:
            self._choose(home.value)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        factors = {
            Qt.Key.Key_Left: 1 / _STEP,
            Qt.Key.Key_Down: 1 / _STEP,
            Qt.Key.Key_Right: _STEP,
            Qt.Key.Key_Up: _STEP,
            Qt.Key.Key_PageDown: 1 / _PAGE,
            Qt.Key.Key_PageUp: _PAGE,
        }
        ends = {Qt.Key.Key_Home: self._low, Qt.Key.Key_End: self._high}
        key = Qt.Key(event.key())
        if event.modifiers() & ~(Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier):
            event.ignore()
        elif key in factors:
            self._step(factors[key])
        elif key in ends:
            self._choose(ends[key])
        elif key == Qt.Key.Key_0:
            self.go_home()
        else:
            event.ignore()

    def _step(self, factor: float) -> None:
        """A mark that lies between here and there is not stepped over."""
        here = max(self._value, self._low)
        there = min(max(here * factor, self._low), self._high)
        slack = 1 + 1e-9
        low, high = min(here, there) * slack, max(here, there) / slack
        between = [mark.value for mark in self._marks if low < mark.value < high]
        self._choose(min(between, key=lambda value: abs(math.log(value / here)), default=there))

    def _choose(self, value: float) -> None:
        if value != self._value:
            self.set_value(value)
            self.value_changed.emit(value)
