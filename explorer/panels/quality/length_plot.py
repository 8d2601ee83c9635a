"""A measure over the length of a sentence, a line a model: points to choose, and how many sentences each stands on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.widgets.number_text import nice_ticks, tick_texts
from explorer.widgets.themed import ThemedWidget

Mark = Literal["circle", "square", "diamond", "triangle"]

FEW = 10
"""Fewer sentences than this make a hollow point: chance has a large part in it."""
_PAD = 6.0
_RADIUS = 4.5
_COUNTS = 0.16  # of the height: the tallest column of counts
_LEFT, _CENTRE, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class LengthBin:
    """A place on the axis: the sentences of `first` to `last` words."""

    first: int
    last: int
    sentences: int

    @property
    def middle(self) -> float:
        return (self.first + self.last) / 2


@dataclass(frozen=True, slots=True)
class LengthLine:
    """`values` are of the first bins: those that are measured. `texts` say them. `role` is a colour of the theme."""

    name: str
    values: tuple[float, ...]
    texts: tuple[str, ...]
    role: str
    mark: Mark = "circle"
    dashed: bool = False


class LengthPlot(ThemedWidget):
    """Hover reads a point, a click or the arrow keys choose one. Names stand above, in the colour of their line."""

    bin_chosen = Signal(int)  # by pointer or keyboard

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setMouseTracking(True)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setSizePolicy(policy)
        self._bins: tuple[LengthBin, ...] = ()
        self._lines: tuple[LengthLine, ...] = ()
        self._range = (0.0, 1.0)
        self._titles = ("", "")
        self._nouns = ("", "")
        self._limit: tuple[float, str] | None = None
        self._chosen: int | None = None
        self._hover: int | None = None

    def set_lines(
        self,
        bins: Sequence[LengthBin],
        lines: Sequence[LengthLine],
        y_range: tuple[float, float],
        titles: tuple[str, str],
        nouns: tuple[str, str],
    ) -> None:
        """Draw `lines` over `bins`, which may be more than are measured. `titles` are of the x and the y axis.

        `nouns` say what a length is counted in, and what has one: ("words", "sentences").
        """
        if tuple(bins) != self._bins:
            self._chosen = self._hover = None
        self._bins, self._lines, self._range = tuple(bins), tuple(lines), y_range
        self._titles, self._nouns = titles, nouns
        self._describe()
        self.update()

    def set_limit(self, length: int | None, text: str = "") -> None:
        """Mark where the lengths of the training end; None takes the mark away."""
        self._limit = None if length is None else (length + 0.5, text)
        self.update()

    def set_chosen(self, index: int | None) -> None:
        """Mark a bin; emits nothing."""
        self._chosen = index if index is not None and 0 <= index < self.measured else None
        self._describe()
        self.update()

    @property
    def chosen(self) -> int | None:
        return self._chosen

    @property
    def measured(self) -> int:
        """How many bins have points."""
        return len(self._lines[0].values) if self._lines else 0

    @property
    def lines(self) -> tuple[LengthLine, ...]:
        return self._lines

    def readout(self) -> str:
        """The bin under the pointer, else the chosen one, in words: "9 to 10 words, 22 sentences"."""
        index = self._hover if self._hover is not None else self._chosen
        if index is None:
            return ""
        return self._place(index)

    def _place(self, index: int) -> str:
        place = self._bins[index]
        return f"{place.first} to {place.last} {self._nouns[0]}, {place.sentences:,} {self._nouns[1]}"

    def point(self, index: int, line: int = 0) -> QPointF:
        """Where a point lies, in the widget's pixels."""
        room = self._room()
        return QPointF(self._across(self._bins[index].middle, room), self._down(self._lines[line].values[index], room))

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(380, round(15 * QFontMetricsF(self.font()).height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(220, round(13 * QFontMetricsF(self.font()).height()))

    def _line_height(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _legend(self) -> list[QRectF]:
        """Where each line's name stands, wrapped where it does not fit."""
        metrics, line = QFontMetricsF(self.font()), self._line_height()
        x, y, places = _PAD, line + 4, []
        for index in range(len(self._lines)):
            width = metrics.horizontalAdvance(self._name(index)) + 34
            if x > _PAD and x + width > self.width() - _PAD:
                x, y = _PAD, y + line + 2
            places.append(QRectF(x, y, width, line))
            x += width + 14
        return places

    def _name(self, index: int) -> str:
        """A line's name, with its value where a bin is read."""
        line = self._lines[index]
        at = self._hover if self._hover is not None else self._chosen
        return line.name if at is None or at >= len(line.texts) else f"{line.name}  {line.texts[at]}"

    def _room(self) -> QRectF:
        """The inside of the axes."""
        metrics, line = QFontMetricsF(self.font()), self._line_height()
        left = max(metrics.horizontalAdvance(text) for text in self._ticks()[1]) + 2 * _PAD
        longest = [metrics.horizontalAdvance(f"{name.name}  −00.000") + 48 for name in self._lines]
        rows, x = 1, _PAD  # as many as the legend may ever need: reading a point must not move the plot
        for width in longest:
            if x > _PAD and x + width > self.width():
                rows, x = rows + 1, _PAD
            x += width
        top = line + 4 + rows * (line + 2) + (line if self._limit is not None else 8)
        return QRectF(left, top, max(1.0, self.width() - left - 14), max(1.0, self.height() - top - 3 * line - 10))

    def _ticks(self) -> tuple[list[float], list[str]]:
        ticks = nice_ticks(*self._range, 6)
        return ticks, tick_texts(ticks)

    def _across(self, length: float, room: QRectF) -> float:
        first, last = self._bins[0].first - 0.5, self._bins[-1].last + 0.5
        return room.left() + (length - first) / (last - first) * room.width()

    def _down(self, value: float, room: QRectF) -> float:
        low, high = self._range
        return room.bottom() - (value - low) / (high - low) * room.height()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._bins:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        room = self._room()
        self._draw_counts(painter, room)
        self._draw_axes(painter, room)
        self._draw_limit(painter, room)
        self._draw_cursor(painter, room)
        for line in self._lines:
            self._draw_line(painter, line, room)
        self._draw_head(painter)
        self._draw_focus_ring(painter)

    def _draw_counts(self, painter: QPainter, room: QRectF) -> None:
        """Columns of how many sentences there are, with their numbers below the axis where there is room."""
        metrics, line = QFontMetricsF(self.font()), self._line_height()
        most = max(place.sentences for place in self._bins)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.border))
        for place in self._bins:
            left, right = self._across(place.first - 0.42, room), self._across(place.last + 0.42, room)
            tall = _COUNTS * room.height() * place.sentences / most
            painter.drawRect(QRectF(left, room.bottom() - tall, right - left, tall))
        wide = max(metrics.horizontalAdvance(f"{place.sentences:,}") for place in self._bins) + 8
        painter.setPen(QColor(self._theme.text_dim))
        y, end = room.bottom() + line + 4, -math.inf
        for place in self._bins:
            x = self._across(place.middle, room)
            if x - wide / 2 >= end:
                painter.drawText(QRectF(x - 40, y, 80, line), _CENTRE | _MIDDLE, f"{place.sentences:,}")
                end = x + wide / 2
        painter.drawText(QRectF(0, y, room.left() - _PAD, line), _RIGHT | _MIDDLE, "n")

    def _draw_axes(self, painter: QPainter, room: QRectF) -> None:
        theme, line = self._theme, self._line_height()
        for tick, text in zip(*self._ticks(), strict=True):
            y = round(self._down(tick, room)) + 0.5
            painter.setPen(QPen(QColor(theme.border_strong if tick == self._range[0] else theme.border), 1))
            painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))
            painter.setPen(QColor(theme.text_dim))
            painter.drawText(QRectF(0, y - line / 2, room.left() - _PAD, line), _RIGHT | _MIDDLE, text)
        for tick in nice_ticks(self._bins[0].first, self._bins[-1].last, max(3, int(room.width() / 45))):
            if tick == int(tick):
                x = self._across(tick, room)
                painter.drawText(QRectF(x - 30, room.bottom() + 2, 60, line), _CENTRE | _MIDDLE, f"{int(tick)}")
        below = QRectF(0, room.bottom() + 2 * line + 6, self.width(), line)
        painter.drawText(below, _CENTRE | _MIDDLE, self._titles[0])

    def _draw_limit(self, painter: QPainter, room: QRectF) -> None:
        if self._limit is None:
            return
        length, text = self._limit
        if not self._bins[0].first < length < self._bins[-1].last:
            return
        x, metrics = round(self._across(length, room)) + 0.5, QFontMetricsF(self.font())
        painter.setPen(QPen(QColor(self._theme.text_dim), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, room.top() - self._line_height()), QPointF(x, room.bottom()))
        painter.setPen(QColor(self._theme.text_dim))
        before, after = x - _PAD, self.width() - x - _PAD
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(before, after))
        width, line = metrics.horizontalAdvance(shown) + 1, self._line_height()
        left = x + _PAD if after >= before else x - _PAD - width
        painter.drawText(QRectF(left, room.top() - line, width, line), _LEFT | _MIDDLE, shown)

    def _draw_cursor(self, painter: QPainter, room: QRectF) -> None:
        for index, colour in ((self._chosen, self._theme.focus), (self._hover, self._theme.border_strong)):
            if index is not None:
                x = self._across(self._bins[index].middle, room)
                painter.setPen(QPen(QColor(colour), 1))
                painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))

    def _draw_line(self, painter: QPainter, line: LengthLine, room: QRectF) -> None:
        colour = QColor(getattr(self._theme, line.role))
        points = [
            QPointF(self._across(place.middle, room), self._down(value, room))
            for place, value in zip(self._bins, line.values, strict=False)
        ]
        painter.setPen(QPen(colour, 2, Qt.PenStyle.DashLine if line.dashed else Qt.PenStyle.SolidLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF(points))
        at = self._hover if self._hover is not None else self._chosen
        for index, point in enumerate(points):
            few = self._bins[index].sentences < FEW
            painter.setPen(QPen(colour, 1.6))
            painter.setBrush(QColor(self._theme.surface) if few else colour)
            _draw_mark(painter, line.mark, point, _RADIUS + (1.5 if index == at else 0))

    def _draw_head(self, painter: QPainter) -> None:
        """The y axis's title, what is read, and the lines' names."""
        metrics, line = QFontMetricsF(self.font()), self._line_height()
        top = QRectF(_PAD, 0, self.width() - 2 * _PAD, line)
        readout = self.readout()
        painter.setPen(QColor(self._theme.text))
        painter.drawText(top, _RIGHT | _MIDDLE, metrics.elidedText(readout, Qt.TextElideMode.ElideRight, top.width()))
        if metrics.horizontalAdvance(readout + self._titles[1]) + 16 < top.width():
            painter.setPen(QColor(self._theme.text_dim))
            painter.drawText(top, _LEFT | _MIDDLE, self._titles[1])
        for index, place in enumerate(self._legend()):
            each = self._lines[index]
            colour, y = QColor(getattr(self._theme, each.role)), place.center().y()
            painter.setPen(QPen(colour, 2, Qt.PenStyle.DashLine if each.dashed else Qt.PenStyle.SolidLine))
            painter.drawLine(QPointF(place.left(), y), QPointF(place.left() + 26, y))
            painter.setPen(QPen(colour, 1.6))
            painter.setBrush(colour)
            _draw_mark(painter, each.mark, QPointF(place.left() + 13, y), _RADIUS)
            painter.setPen(colour)
            text = metrics.elidedText(self._name(index), Qt.TextElideMode.ElideMiddle, self.width() - 40)
            painter.drawText(place.adjusted(32, 0, 20, 0), _LEFT | _MIDDLE, text)

    # pointer and keyboard

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._highlight(self._bin_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._highlight(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self._bin_at(event.position())
        if index is None or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._choose(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last, at = self.measured - 1, self._chosen
        moves = {
            Qt.Key.Key_Left: last if at is None else at - 1,
            Qt.Key.Key_Right: 0 if at is None else at + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        if last < 0 or Qt.Key(event.key()) not in moves:
            event.ignore()
            return
        self._choose(min(max(moves[Qt.Key(event.key())], 0), last))

    def _bin_at(self, position: QPointF) -> int | None:
        """The measured bin nearest to a place beside or between the axes."""
        if not self.measured:
            return None
        room = self._room()
        if not room.adjusted(-20, -10, 20, 3 * self._line_height()).contains(position):
            return None
        middles = [self._across(place.middle, room) for place in self._bins[: self.measured]]
        return min(range(len(middles)), key=lambda i: abs(middles[i] - position.x()))

    def _highlight(self, index: int | None) -> None:
        if index != self._hover:
            self._hover = index
            self.update()

    def _choose(self, index: int) -> None:
        if index != self._chosen:
            self.set_chosen(index)
            self.bin_chosen.emit(index)

    def _describe(self) -> None:
        said = f"{self._titles[1]} over {self._titles[0]}."
        if self._chosen is not None:
            named = ", ".join(f"{line.name} {line.texts[self._chosen]}" for line in self._lines)
            said += f" {self._place(self._chosen)}: {named}."
        self.setAccessibleDescription(said)


def _draw_mark(painter: QPainter, mark: Mark, at: QPointF, radius: float) -> None:
    if mark == "circle":
        painter.drawEllipse(at, radius, radius)
    elif mark == "square":
        painter.drawRect(QRectF(at.x() - radius, at.y() - radius, 2 * radius, 2 * radius))
    else:
        r = 1.25 * radius
        corners = [(0, -r), (r, 0), (0, r), (-r, 0)] if mark == "diamond" else [(0, -r), (r, 0.8 * r), (-r, 0.8 * r)]
        painter.drawPolygon(QPolygonF([QPointF(at.x() + x, at.y() + y) for x, y in corners]))
