"""Arrows in the plane that a person drags: a query and its keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.themed import ThemedWidget

_REACH = 16.0  # pixels within which a tip is grabbed
_DISC = 8.0  # radius of the disc at a key's tip
_STEP, _LEAP = 0.1, 0.5
_DIRECTIONS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, 1),
    Qt.Key.Key_Down: (0, -1),
}


@dataclass(frozen=True)
class Arrow:
    """From the origin to (x, y). `colour` ("#rrggbb") fills a key's tip; `weight`, 0 to 1, makes its line thicker."""

    name: str
    x: float
    y: float
    is_query: bool = False
    colour: str = ""
    weight: float = 0.0


class VectorPlane(ThemedWidget):
    """A square of the plane, from -2 to 2 both ways, kept in the middle of the widget.

    Tips are dragged with the mouse. Space chooses the next arrow (Shift+Space the one before), the arrow keys move
    it by 0.1, with Shift by 0.5.
    """

    moved = Signal(int, float, float)
    selected = Signal(int)

    extent = 2.0

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Query and keys as arrows", parent)
        self._arrows: tuple[Arrow, ...] = ()
        self._chosen = 0
        self._grabbed = -1
        self._hover = -1
        self.setMouseTracking(True)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setSizePolicy(policy)

    @property
    def chosen(self) -> int:
        """The arrow that the keyboard moves."""
        return self._chosen

    def set_arrows(self, arrows: Sequence[Arrow]) -> None:
        """Show `arrows`, drawn in this order."""
        self._arrows = tuple(arrows)
        self._chosen = min(self._chosen, max(0, len(self._arrows) - 1))
        self.setAccessibleDescription(", ".join(f"{a.name} {_place(a.x, a.y)}" for a in self._arrows))
        self.update()

    def set_chosen(self, index: int) -> None:
        """Choose an arrow. Says nothing to anyone."""
        if index != self._chosen and 0 <= index < len(self._arrows):
            self._chosen = index
            self.update()

    def tip(self, index: int) -> QPointF:
        """Where an arrow ends, in this widget's coordinates."""
        arrow = self._arrows[index]
        return self._to_screen(arrow.x, arrow.y)

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(240, 240)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, 200)

    def _frame(self) -> QRectF:
        side = min(self.width(), self.height()) - 2.0
        return QRectF((self.width() - side) / 2, (self.height() - side) / 2, side, side)

    def _unit(self) -> float:
        return (self._frame().width() / 2 - _DISC - 2) / self.extent

    def _to_screen(self, x: float, y: float) -> QPointF:
        centre = self._frame().center()
        return QPointF(centre.x() + x * self._unit(), centre.y() - y * self._unit())

    def _to_plane(self, position: QPointF) -> tuple[float, float]:
        centre = self._frame().center()
        return (position.x() - centre.x()) / self._unit(), (centre.y() - position.y()) / self._unit()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = self._theme
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(QColor(theme.surface_alt))
        painter.drawRoundedRect(self._frame(), 8, 8)
        self._draw_grid(painter)
        for index, arrow in enumerate(self._arrows):
            self._draw_arrow(painter, index, arrow)
        for index, arrow in enumerate(self._arrows):
            self._draw_name(painter, index, arrow)
        self._draw_focus_ring(painter)

    def _draw_grid(self, painter: QPainter) -> None:
        theme = self._theme
        end = self.extent
        for place in range(-math.floor(end), math.floor(end) + 1):
            painter.setPen(QPen(QColor(theme.border_strong if place == 0 else theme.border), 1))
            painter.drawLine(self._to_screen(place, -end), self._to_screen(place, end))
            painter.drawLine(self._to_screen(-end, place), self._to_screen(end, place))
        painter.setPen(QColor(theme.text_dim))
        for place in (1, 2):
            at = self._to_screen(place, 0)
            painter.drawText(QRectF(at.x() - 20, at.y() + 1, 18, 24), Qt.AlignmentFlag.AlignRight, str(place))

    def _draw_arrow(self, painter: QPainter, index: int, arrow: Arrow) -> None:
        theme, tip, origin = self._theme, self._to_screen(arrow.x, arrow.y), self._to_screen(0, 0)
        colour = QColor(theme.query if arrow.is_query else theme.key)
        width = 4.0 if arrow.is_query else 1.5 + 6.0 * arrow.weight
        lit = index in (self._grabbed, self._hover)
        chosen = index == self._chosen
        painter.setPen(QPen(colour, wide(width), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(origin, tip)
        if chosen or lit:
            halo = QColor(theme.focus)
            halo.setAlphaF(0.9 if chosen and self.hasFocus() else 0.4)
            painter.setPen(QPen(halo, wide(2)))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(tip, _DISC + 4, _DISC + 4)
        painter.setPen(QPen(colour, wide(2.5)))
        if arrow.is_query:
            painter.setBrush(colour)
            painter.drawPolygon(_head(origin, tip))
        else:
            painter.setBrush(QColor(arrow.colour or theme.surface))
            painter.drawEllipse(tip, _DISC - 1, _DISC - 1)

    def _draw_name(self, painter: QPainter, index: int, arrow: Arrow) -> None:
        """Beyond the tip as seen from the origin, and inside the frame."""
        theme, tip, frame = self._theme, self._to_screen(arrow.x, arrow.y), self._frame().adjusted(4, 2, -4, -2)
        chosen = index == self._chosen
        painter.setFont(self.bold_font() if chosen or arrow.is_query else self.font())
        metrics = QFontMetricsF(painter.font())
        size = QRectF(0, 0, metrics.horizontalAdvance(arrow.name) + 2, metrics.height())
        length = math.hypot(arrow.x, arrow.y) or 1.0
        away = QPointF(arrow.x / length, -arrow.y / length) if arrow.x or arrow.y else QPointF(0, -1)
        size.moveCenter(
            QPointF(
                tip.x() + away.x() * (_DISC + 6 + size.width() / 2),
                tip.y() + away.y() * (_DISC + 4 + size.height() / 2),
            )
        )
        free = QRectF(size)
        size.moveLeft(min(max(size.left(), frame.left()), frame.right() - size.width()))
        size.moveTop(min(max(size.top(), frame.top()), frame.bottom() - size.height()))
        disc = QRectF(tip.x() - _DISC, tip.y() - _DISC, 2 * _DISC, 2 * _DISC)
        if size != free and size.intersects(disc):  # the frame pushed it back upon the tip
            size.moveTop(disc.top() - size.height() if tip.y() > frame.center().y() else disc.bottom())
        painter.setPen(QColor(theme.query if arrow.is_query else theme.text))
        painter.drawText(size, Qt.AlignmentFlag.AlignCenter, arrow.name)

    # pointer

    def _at(self, position: QPointF) -> int:
        """The nearest tip in reach; of equals the one drawn last."""
        best, nearest = -1, _REACH
        for index in range(len(self._arrows)):
            away = self.tip(index) - position
            distance = math.hypot(away.x(), away.y())
            if distance <= nearest:
                best, nearest = index, distance
        return best

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self._at(event.position())
        if event.button() != Qt.MouseButton.LeftButton or index < 0:
            event.ignore()
            return
        self._grabbed = index
        self._choose(index)
        self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grabbed >= 0:
            self._move(self._grabbed, *self._to_plane(event.position()))
            return
        hover = self._at(event.position())
        if hover != self._hover:
            self._hover = hover
            self.setCursor(Qt.CursorShape.OpenHandCursor if hover >= 0 else Qt.CursorShape.ArrowCursor)
            arrow = self._arrows[hover] if hover >= 0 else None
            self.setToolTip(f"{arrow.name}: {_place(arrow.x, arrow.y)}. Drag it." if arrow is not None else "")
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._grabbed >= 0 and event.button() == Qt.MouseButton.LeftButton:
            self._grabbed = -1
            self.setCursor(Qt.CursorShape.OpenHandCursor)
            self.update()
        else:
            event.ignore()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover = -1
        self.setToolTip("")
        self.update()

    # keyboard

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._arrows:
            event.ignore()
            return
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        direction = _DIRECTIONS.get(Qt.Key(event.key()))
        if direction is not None:
            step = _LEAP if shift else _STEP
            arrow = self._arrows[self._chosen]
            self._move(self._chosen, arrow.x + step * direction[0], arrow.y + step * direction[1])
        elif event.key() == Qt.Key.Key_Space:
            self._choose((self._chosen + (-1 if shift else 1)) % len(self._arrows))
        else:
            event.ignore()

    def _choose(self, index: int) -> None:
        if index != self._chosen:
            self.set_chosen(index)
            self.selected.emit(index)
        self.update()

    def _move(self, index: int, x: float, y: float) -> None:
        """To the nearest hundredth within the square: what is written is then what is computed with."""
        x, y = (round(min(max(place, -self.extent), self.extent), 2) + 0.0 for place in (x, y))
        if (x, y) != (self._arrows[index].x, self._arrows[index].y):
            self.moved.emit(index, x, y)


def _place(x: float, y: float) -> str:
    return f"({x:.2f}, {y:.2f})".replace("-", MINUS)


def _head(origin: QPointF, tip: QPointF) -> QPolygonF:
    """The head of an arrow that ends at `tip`; upright where the arrow has no length."""
    along = tip - origin
    length = math.hypot(along.x(), along.y())
    along = along / length if length > 1e-9 else QPointF(0, -1)
    across = QPointF(-along.y(), along.x())
    back = tip - along * 13
    return QPolygonF([tip, back + across * 6.5, back - across * 6.5])
