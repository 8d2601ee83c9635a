"""Rotations as clocks: for each pair of dimensions the hand of a query and the hand of a key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import MINUS, nice_ticks, value_text
from attention_explorer.widgets.themed import ThemedWidget

# Sines and cosines of a position, one pair of dimensions a row, and a cursor at one position.


_PAD = 8.0
_POINTS = 64
"""Of a curve in each wave: straight lines between them are off by a 1,660th of its height."""
_LEFT, _MIDDLE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True)
class Wave:
    """One pair of dimensions: its number, its wavelength in positions, and its two values at the cursor."""

    pair: int
    wavelength: float
    sine: float
    cosine: float


class Waveforms(ThemedWidget):
    """Drag or Left and Right move the cursor; a click chooses a row, and Up and Down change the pair that it shows."""

    cursor_moved = Signal(int)  # a position
    row_chosen = Signal(int)
    pair_stepped = Signal(int, int)  # row, and by how many pairs its pair is to move

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Waves of the position", parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.SizeHorCursor)
        self.setToolTip("Drag: the position. Click a row, then ↑ ↓: which pair of dimensions it shows.")
        self._waves: tuple[Wave, ...] = ()
        self._positions = 1
        self._position = 0
        self._row = 0

    def set_waves(self, waves: Sequence[Wave], positions: int, position: int, row: int) -> None:
        """Draw `waves` over the positions 0 to `positions` - 1, with the cursor at `position` and one row chosen."""
        grown = len(waves) != len(self._waves)
        self._waves, self._positions, self._position, self._row = tuple(waves), positions, position, row
        values = (f"pair {w.pair}: sine {value_text(w.sine)}, cosine {value_text(w.cosine)}" for w in self._waves)
        self.setAccessibleDescription(f"position {position}; " + "; ".join(values))
        if grown:
            self.updateGeometry()
        self.update()

    @property
    def waves(self) -> tuple[Wave, ...]:
        return self._waves

    def x_of(self, position: int) -> float:
        """Where a position lies across the widget, in pixels."""
        room = self._room()
        return room.left() + position / max(1, self._positions - 1) * room.width()

    def row_rect(self, row: int) -> QRectF:
        return QRectF(0, row * self._row_height(), self.width(), self._row_height())

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(380, round(len(self._waves) * self._row_height() + 2 * self._line() + 4))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _row_height(self) -> float:
        return 2 * self._line() + 16

    def _room(self) -> QRectF:
        """Where the waves are drawn, over all rows."""
        metrics = QFontMetricsF(self.font())
        bold = QFontMetricsF(self.bold_font())
        names = (max(bold.horizontalAdvance(_dims(w)), bold.horizontalAdvance(_length(w))) for w in self._waves)
        left = max(names, default=0.0) + 2 * _PAD
        right = metrics.horizontalAdvance("cos −0.000") + 2 * _PAD
        return QRectF(left, 0, max(20.0, self.width() - left - right), len(self._waves) * self._row_height())

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        room = self._room()
        for row, wave in enumerate(self._waves):
            self._draw_row(painter, row, wave, room)
        self._draw_positions(painter, room)
        self._draw_focus_ring(painter)

    def _draw_row(self, painter: QPainter, row: int, wave: Wave, room: QRectF) -> None:
        theme, rect, line = self._theme, self.row_rect(row), self._line()
        if row == self._row:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface_alt))
            painter.drawRoundedRect(rect.adjusted(0, 2, 0, -2), 6, 6)
        middle = rect.center().y()
        upper = QRectF(_PAD, middle - line, room.left() - _PAD, line)
        painter.setFont(self.bold_font() if row == self._row else self.font())
        painter.setPen(QColor(theme.text))
        painter.drawText(upper, _LEFT | _MIDDLE, _dims(wave))
        painter.setFont(self.font())
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(upper.translated(0, line), _LEFT | _MIDDLE, _length(wave))
        right = QRectF(room.right() + _PAD, middle - line, self.width(), line)
        half = rect.height() / 2 - 9
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.drawLine(QPointF(room.left(), middle), QPointF(room.right(), middle))
        at = self.x_of(self._position)
        for shift, name, value, role in (
            (math.pi / 2, "cos", wave.cosine, "text_dim"),
            (0.0, "sin", wave.sine, "bar"),
        ):
            colour = QColor(getattr(theme, role))
            painter.setPen(QPen(colour, wide(2.0 if name == "sin" else 1.5)))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(self._curve(wave.wavelength, shift, room, middle, half))
            painter.setPen(QPen(QColor(theme.surface), 1.5))
            painter.setBrush(colour)
            painter.drawEllipse(QPointF(at, middle - value * half), 4.0, 4.0)
            painter.setPen(colour)
            place = right if name == "sin" else right.translated(0, line)
            painter.drawText(place, _LEFT | _MIDDLE, f"{name} {value:.3f}".replace("-", MINUS))

    def _curve(self, wavelength: float, shift: float, room: QRectF, middle: float, half: float) -> QPolygonF:
        last = max(1, self._positions - 1)
        count = 1 + max(1, min(round(room.width() * 2), math.ceil(_POINTS * last / wavelength)))
        turn = 2 * math.pi / wavelength * last / (count - 1)
        step = room.width() / (count - 1)
        return QPolygonF(
            [QPointF(room.left() + i * step, middle - math.sin(i * turn + shift) * half) for i in range(count)]
        )

    def _draw_positions(self, painter: QPainter, room: QRectF) -> None:
        theme, line, metrics = self._theme, self._line(), QFontMetricsF(self.font())
        x = self.x_of(self._position)
        painter.setPen(QPen(QColor(theme.text), wide(1.5), Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, 2), QPointF(x, room.bottom() + 2))
        text = f"position {self._position}"
        width = metrics.horizontalAdvance(text) + 12
        box = QRectF(min(max(x - width / 2, room.left()), room.right() - width), room.bottom() + 2, width, line + 2)
        painter.setPen(QColor(theme.text_dim))
        ticks = nice_ticks(0, max(1, self._positions - 1), max(2, int(room.width() / 60)))
        for tick in ticks:
            if tick == round(tick):
                place = QRectF(self.x_of(round(tick)) - 40, room.bottom() + 4 + line, 80, line)
                painter.drawText(place, Qt.AlignmentFlag.AlignHCenter, f"{tick:,.0f}")
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.text))
        painter.drawRoundedRect(box, 5, 5)
        painter.setPen(QColor(theme.surface))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    # pointer and keyboard

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton or not self._waves:
            event.ignore()
            return
        row = int(event.position().y() / self._row_height())
        if row < len(self._waves) and row != self._row:
            self.row_chosen.emit(row)
        if event.position().x() >= self._room().left():
            self._point(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton and self._waves:
            self._point(event.position().x())

    def _point(self, x: float) -> None:
        room = self._room()
        self._move(round((x - room.left()) / room.width() * (self._positions - 1)))

    def _move(self, position: int) -> None:
        position = min(max(position, 0), self._positions - 1)
        if position != self._position:
            self.cursor_moved.emit(position)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: self._position - 1,
            Qt.Key.Key_Right: self._position + 1,
            Qt.Key.Key_PageUp: self._position - 10,
            Qt.Key.Key_PageDown: self._position + 10,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: self._positions - 1,
        }
        key = Qt.Key(event.key())
        if key in moves:
            self._move(moves[key])
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.pair_stepped.emit(self._row, 1 if key == Qt.Key.Key_Up else -1)
        else:
            event.ignore()


def _dims(wave: Wave) -> str:
    return f"dims {2 * wave.pair}, {2 * wave.pair + 1}"


def _length(wave: Wave) -> str:
    return f"λ {wave_text(wave.wavelength)}"


def wave_text(wavelength: float) -> str:
    """6.28, 62.8, 628, 62,832: three digits, and whole numbers in full."""
    return f"{wavelength:,.0f}" if wavelength >= 100 else f"{wavelength:.3g}"


_GAP = 8.0
_TIP = "A hand twice as long is of a pair four times as large"


@dataclass(frozen=True, eq=False)
class Clocks:
    """What the clocks show. Hands are complex numbers (pairs,); angles (pairs,) say how far each was turned."""

    query: NDArray[np.complexfloating]
    key: NDArray[np.complexfloating]
    query_turns: NDArray[np.floating]
    key_turns: NDArray[np.floating]
    speeds: NDArray[np.floating]  # (pairs,) radians a position
    parts: NDArray[np.floating]  # (pairs,) what each pair adds to the product
    query_word: str
    key_word: str


class ClockHands(ItemsWidget):
    """One clock a pair, as many in a row as fit; faint hands show where each pointed before it was turned.

    Under the pointer, or where the arrow keys have gone, the line above says the numbers of one clock.
    """

    axis = Qt.Orientation.Horizontal

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Clocks of the rotated pairs", parent)
        self.setToolTip(_TIP)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._clocks: Clocks | None = None
        self._current = 0

    def set_clocks(self, clocks: Clocks | None) -> None:
        """Show other hands; None shows the empty text."""
        before = 0 if self._clocks is None else len(self._clocks.query)
        self._clocks = clocks
        count = 0 if clocks is None else len(clocks.query)
        self._current = min(self._current, max(0, count - 1))
        self._hover = -1
        self.setAccessibleDescription(self.readout())
        if count != before:
            self.updateGeometry()
        self.update()

    def readout(self) -> str:
        """The sentence about the clock under the pointer, else about the chosen one."""
        if self._clocks is None:
            return ""
        c, i = self._clocks, self._hover if self._hover >= 0 else self._current
        return (
            f"pair {i}: once round in {wave_text(2 * math.pi / float(c.speeds[i]))} tokens; "
            f"turned q {_turns(float(c.query_turns[i]))}, k {_turns(float(c.key_turns[i]))}; "
            f"adds {_signed(float(c.parts[i]))}"
        )

    def clock_rect(self, pair: int) -> QRectF:
        """Where the clock of a pair lies, with the number below it."""
        side, line = self._side(), self._line()
        row, column = divmod(pair, self._across(self.width()))
        return QRectF(column * (side + _GAP), 2 * line + 6 + row * (side + line + _GAP), side, side + line)

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(380, self.heightForWidth(380))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, round(4 * self._line()))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        count = 0 if self._clocks is None else len(self._clocks.query)
        rows = max(1, -(-count // self._across(width)))
        return round(2 * self._line() + 6 + rows * (self._side() + self._line() + _GAP))

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _side(self) -> float:
        return max(52.0, QFontMetricsF(self.font()).horizontalAdvance("−000.0"))

    def _across(self, width: float) -> int:
        return max(1, int((width + _GAP) / (self._side() + _GAP)))

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        clocks = self._clocks
        if clocks is None:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        painter.setPen(QColor(self._theme.text))
        flags = Qt.AlignmentFlag.AlignTop.value | Qt.TextFlag.TextWordWrap.value
        painter.drawText(QRectF(0, 0, self.width(), 2 * self._line() + 2), flags, self.readout())
        longest = float(max(np.abs(clocks.query).max(), np.abs(clocks.key).max())) or 1.0
        for pair in range(len(clocks.query)):
            rect = self.clock_rect(pair)
            if rect.intersects(QRectF(event.rect())):
                self._draw_clock(painter, pair, rect, clocks, longest)
        self._draw_focus_ring(painter)

    def _draw_clock(self, painter: QPainter, pair: int, rect: QRectF, clocks: Clocks, longest: float) -> None:
        theme, line = self._theme, self._line()
        face = QRectF(rect.left() + 1, rect.top() + 1, rect.width() - 2, rect.height() - line - 2)
        lit = pair in (self._hover, self._current)
        painter.setPen(QPen(QColor(theme.text if lit else theme.border_strong), wide(1.5 if lit else 1)))
        painter.setBrush(QColor(theme.surface_alt))
        painter.drawEllipse(face)
        centre, reach = face.center(), face.width() / 2 - 3
        for hand, turned, role in (
            (clocks.key[pair], clocks.key_turns[pair], "key"),
            (clocks.query[pair], clocks.query_turns[pair], "query"),
        ):
            length = reach * math.sqrt(float(abs(hand)) / longest)  # else one large pair leaves the rest as dots
            angle = math.atan2(hand.imag, hand.real)
            faint = QColor(getattr(theme, role))
            faint.setAlpha(90)
            painter.setPen(QPen(faint, wide(1.5), Qt.PenStyle.DotLine))
            painter.drawLine(centre, _tip(centre, length, angle - float(turned)))
            painter.setPen(
                QPen(QColor(getattr(theme, role)), wide(2.5), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
            )
            painter.drawLine(centre, _tip(centre, length, angle))
        painter.setPen(QColor(theme.text if lit else theme.text_dim))
        below = QRectF(rect.left() - _GAP, rect.bottom() - line, rect.width() + 2 * _GAP, line)
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, _signed(float(clocks.parts[pair])))

    # pointer and keyboard

    def item_count(self) -> int:
        return 0 if self._clocks is None else len(self._clocks.query)

    def item_rect(self, item: int) -> QRectF:
        return self.clock_rect(item)

    def tooltip_of(self, item: int) -> str:
        return _TIP

    def _target(self, key: Qt.Key) -> int | None:
        rows = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        if key not in rows:
            return super()._target(key)
        wanted = self._current + rows[key] * self._across(self.width())
        return wanted if 0 <= wanted < self.item_count() else None

    def _choose(self, item: int) -> None:
        self._move(item)
        self.setAccessibleDescription(self.readout())


def _tip(centre: QPointF, length: float, angle: float) -> QPointF:
    """Angles grow against the clock, as in mathematics."""
    return QPointF(centre.x() + length * math.cos(angle), centre.y() - length * math.sin(angle))


def _turns(angle: float) -> str:
    """An angle as rounds: "0.25 rounds"."""
    return f"{value_text(angle / (2 * math.pi))} rounds"


def _signed(value: float) -> str:
    """+1.23, −0.04: two decimals do under a clock."""
    return f"{value:+.2f}".replace("-", MINUS)
