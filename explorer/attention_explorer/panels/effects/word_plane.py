"""Tokens of two texts as points of a plane, by their first two principal components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy

from attention_explorer.widgets.number_text import MINUS, nice_ticks, percent_text, tick_texts
from attention_explorer.widgets.themed import ThemedWidget

_REACH = 14.0
_DOT, _WORD_DOT = 3.5, 6.0
_SPARE = 0.08


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """`places` are (tokens, 2), of both texts; `text` says of each which, `is_word` whether it is of the word."""

    places: np.ndarray
    labels: tuple[str, ...]
    text: tuple[int, ...]
    is_word: tuple[bool, ...]
    explained: tuple[float, float]


class WordPlane(ThemedWidget):
    """Both axes in the same scale, so that distances are what they look like. A click chooses the token's word."""

    chosen = Signal(int)
    """A token, counted over both texts."""

    def __init__(self) -> None:
        super().__init__("Tokens of both texts in the plane of most variance")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)
        self._points: Points | None = None
        self._hover = -1

    @property
    def points(self) -> Points | None:
        return self._points

    def show_points(self, points: Points | None) -> None:
        self._points, self._hover = points, -1
        self.setToolTip("")
        self.setAccessibleDescription("" if points is None else "; ".join(map(self.said_of, range(len(points.labels)))))
        self.update()

    def said_of(self, place: int) -> str:
        """ "A, bank: 3.1, −0.2"."""
        assert self._points is not None
        x, y = tick_texts_of(self._points.places[place])
        return f"{'AB'[self._points.text[place]]}, {self._points.labels[place]}: {x}, {y}"

    def said_at(self, position: QPoint) -> str:
        return "principal component variance"

    def minimumSizeHint(self) -> QSize:
        return QSize(200, round(12 * QFontMetricsF(self.font()).height()))

    # geometry

    def _room(self) -> QRectF:
        line = QFontMetricsF(self.font()).height()
        return QRectF(self.rect()).adjusted(3.2 * line, 0.5 * line, -0.6 * line, -2.4 * line)

    def _scale(self) -> tuple[float, float, float]:
        """Pixels for one unit along either axis, and the values in the middle."""
        assert self._points is not None
        room, places = self._room(), self._points.places
        low, high = places.min(axis=0), places.max(axis=0)
        span = np.maximum(high - low, 1e-9) * (1 + 2 * _SPARE)
        pixels = min(max(10.0, room.width()) / span[0], max(10.0, room.height()) / span[1])
        middle = (low + high) / 2
        return float(pixels), float(middle[0]), float(middle[1])

    def point(self, place: int) -> QPointF:
        """Where a token lies, in the widget's pixels."""
        assert self._points is not None
        return self._at(*self._points.places[place].tolist())

    def _at(self, x: float, y: float) -> QPointF:
        pixels, across, up = self._scale()
        centre = self._room().center()
        return QPointF(centre.x() + (x - across) * pixels, centre.y() - (y - up) * pixels)

    def _nearest(self, position: QPointF) -> int:
        if self._points is None:
            return -1
        away = [(self.point(i) - position).manhattanLength() for i in range(len(self._points.labels))]
        best = min(range(len(away)), key=away.__getitem__)
        return best if away[best] <= _REACH else -1

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._points is None:
            self._draw_empty_text(painter)
            return
        self._draw_axes(painter, self._points)
        self._draw_points(painter, self._points)
        self._draw_focus_ring(painter)

    def _draw_axes(self, painter: QPainter, points: Points) -> None:
        room, metrics = self._room(), QFontMetricsF(self.font())
        pixels, across, up = self._scale()
        line = metrics.height()
        ends_x = across - room.width() / 2 / pixels, across + room.width() / 2 / pixels
        ends_y = up - room.height() / 2 / pixels, up + room.height() / 2 / pixels
        grid, dim = QPen(QColor(self._theme.border), 1), QColor(self._theme.text_dim)
        for ends, is_x in ((ends_x, True), (ends_y, False)):
            ticks = nice_ticks(*ends, max(2, int((room.width() if is_x else room.height()) / (5 * line))))
            for tick, text in zip(ticks, tick_texts(ticks), strict=True):
                at = self._at(tick, up) if is_x else self._at(across, tick)
                painter.setPen(grid)
                if is_x:
                    painter.drawLine(QPointF(at.x(), room.top()), QPointF(at.x(), room.bottom()))
                    place = QRectF(at.x() - 40, room.bottom() + 2, 80, line)
                    flags = Qt.AlignmentFlag.AlignHCenter
                else:
                    painter.drawLine(QPointF(room.left(), at.y()), QPointF(room.right(), at.y()))
                    place = QRectF(line, at.y() - line / 2, room.left() - line - 4, line)
                    flags = Qt.AlignmentFlag.AlignRight
                painter.setPen(dim)
                painter.drawText(place, flags | Qt.AlignmentFlag.AlignVCenter, text)
        painter.setPen(dim)
        self._draw_title(painter, points, 0, QRectF(room.left(), self.height() - line - 2, room.width(), line))
        painter.save()
        painter.translate(line / 2, room.center().y())
        painter.rotate(-90)
        self._draw_title(painter, points, 1, QRectF(-room.height() / 2, -line / 2, room.height(), line))
        painter.restore()

    def _draw_title(self, painter: QPainter, points: Points, component: int, rect: QRectF) -> None:
        title = f"component {component + 1}: {percent_text(points.explained[component])} of variance"
        shown = QFontMetricsF(self.font()).elidedText(title, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, shown)

    def _draw_points(self, painter: QPainter, points: Points) -> None:
        metrics = QFontMetricsF(self.font())
        taken: list[QRectF] = []
        order = sorted(range(len(points.labels)), key=lambda i: (i != self._hover, not points.is_word[i]))
        for i in order:
            at, radius = self.point(i), _WORD_DOT if points.is_word[i] else _DOT
            colour = QColor(self._theme.query if points.text[i] == 0 else self._theme.key)
            painter.setPen(QPen(QColor(self._theme.surface), 1))
            painter.setBrush(colour)
            if points.text[i] == 0:
                painter.drawEllipse(at, radius, radius)
            else:  # the shape says it too, for eyes that see no colours
                painter.drawRect(QRectF(at.x() - radius, at.y() - radius, 2 * radius, 2 * radius))
            font = self.bold_font() if points.is_word[i] else self.font()
            width = QFontMetricsF(font).horizontalAdvance(points.labels[i])
            for dx, dy in ((radius + 3, -metrics.height() / 2), (-width - radius - 3, -metrics.height() / 2),
                           (-width / 2, -metrics.height() - radius - 1), (-width / 2, radius + 1)):  # fmt: skip
                rect = QRectF(at.x() + dx, at.y() + dy, width, metrics.height())
                if not any(rect.intersects(other) for other in taken) and QRectF(self.rect()).contains(rect):
                    taken.append(rect)
                    painter.setFont(font)
                    painter.setPen(colour if points.is_word[i] or i == self._hover else QColor(self._theme.text))
                    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, points.labels[i])
                    break

    # pointer

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hover = self._nearest(event.position())
        if hover != self._hover:
            self._hover = hover
            self.setToolTip("" if hover < 0 else self.said_of(hover))
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover = -1
        self.setToolTip("")
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._nearest(event.position())
        if event.button() == Qt.MouseButton.LeftButton and place >= 0:
            self.chosen.emit(place)
        else:
            event.ignore()


def tick_texts_of(place: np.ndarray) -> tuple[str, str]:
    x, y = (f"{value:.3g}".replace("-", MINUS) for value in place.tolist())
    return x, y
