"""Rotations as clocks: for each pair of dimensions the hand of a query and the hand of a key."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.panels.positions.waveforms import wave_text
from attention_explorer.text_size import wide
from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import MINUS, value_text

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
