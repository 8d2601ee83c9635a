"""Vectors side by side as columns of colour, one a token, with bars for each column below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFontMetricsF,
    QImage,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.colour_maps import diverging
from attention_explorer.look.text_size import wide
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.token_text import isolated

_GAP = 6.0
_BAND_LINES = 4.5  # height of a band, in lines of text
_LANE_LINES = 2.6
_NAME_CHARS = 11
_MOST_LABELS = 0.8  # of the labels decide how many columns each of them takes
_MOST_WIDE = 44.0  # pixels of one column
_RIGHT, _MIDDLE = Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Vectors as a picture: a column each, coloured from blue (negative) to red."""

    name: str
    values: NDArray[np.float32]  # (columns, dims)
    note: str = ""  # below the name


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """A number a column, as a bar."""

    name: str
    values: NDArray[np.float32]  # (columns,)
    masked: NDArray[np.bool_] | None = None  # (columns,): hatched, no bar
    role: Literal["key", "text_dim"] = "key"


class StateColumns(ItemsWidget):
    """Bands and lanes over one row of labelled columns. A click, or Left and Right, chooses a column."""

    axis = Qt.Orientation.Horizontal
    column_selected = Signal(int)

    def __init__(self, name: str, accent: Literal["query", "key"], parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._accent = accent
        self._labels: Sequence[str] = ()
        self._bands: tuple[Band, ...] = ()
        self._lanes: tuple[Lane, ...] = ()
        self._images: list[QImage] = []
        self._say: Callable[[int], str] = lambda column: ""

    def set_columns(
        self,
        labels: Sequence[str],
        bands: Sequence[Band],
        lanes: Sequence[Lane],
        high: float,
        say: Callable[[int], str],
    ) -> None:
        """Show bands and lanes over columns called `labels`; colours reach from -high to high.

        `say` puts one column into a sentence, for the line below.
        """
        sizes = len(self._bands), len(self._lanes)
        self._labels, self._bands, self._lanes, self._say = tuple(labels), tuple(bands), tuple(lanes), say
        codes = [cell_image.encode(np.ascontiguousarray(band.values.T), -high, high) for band in bands]
        self._images = [cell_image.to_image(code, cell_image.colours(diverging(), -high, high)) for code in codes]
        self._keep_items()
        self._describe()
        if (len(self._bands), len(self._lanes)) != sizes:
            self.updateGeometry()
        self.update()

    def set_selected(self, column: int) -> None:
        """Frame a column, -1 for none; emits nothing."""
        if column != self._current:
            self._current = column
            self._describe()
            self.update()

    @property
    def selected(self) -> int:
        return self._current

    @property
    def bands(self) -> tuple[Band, ...]:
        return self._bands

    @property
    def lanes(self) -> tuple[Lane, ...]:
        return self._lanes

    @property
    def readout(self) -> str:
        """The line below: about the column under the pointer, else about the chosen one."""
        column = self._hover if self._hover >= 0 else self._current
        return self._say(column) if 0 <= column < len(self._labels) else ""

    def said_at(self, position: QPoint) -> str:
        """The names of bands and lanes, left of the columns."""
        beside = not self._labels or position.x() < self.column_rect(0).left()
        names = [band.name for band in self._bands] + [lane.name for lane in self._lanes]
        return " ".join(names) if beside else ""

    def column_rect(self, column: int) -> QRectF:
        """The place of a column, from its label to the foot of the lanes."""
        left, width = self._left(), self._width()
        return QRectF(left + column * width, 0, width, self._foot())

    def _describe(self) -> None:
        self.setAccessibleDescription(self._say(self._current) if 0 <= self._current < len(self._labels) else "")

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(400, round(self._foot() + self._line() + _GAP))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.sizeHint().height())

    def _line(self) -> float:
        return float(round(QFontMetricsF(self.font()).height()))

    def _left(self) -> float:
        return QFontMetricsF(self.bold_font()).averageCharWidth() * _NAME_CHARS + _GAP

    def _width(self) -> float:
        return min(_MOST_WIDE, max(1.0, self.width() - self._left() - 2) / max(1, len(self._labels)))

    def _band_rect(self, band: int) -> QRectF:
        height = _BAND_LINES * self._line()
        top = self._line() + _GAP + band * (height + _GAP)
        return QRectF(self._left(), top, self._width() * len(self._labels), height)

    def _lane_rect(self, lane: int) -> QRectF:
        height = _LANE_LINES * self._line()
        top = self._band_rect(len(self._bands)).top() + lane * (height + _GAP)
        return QRectF(self._left(), top, self._width() * len(self._labels), height)

    def _foot(self) -> float:
        return self._lane_rect(len(self._lanes)).top()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not self._labels:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        if self._hover >= 0:
            painter.fillRect(self.column_rect(self._hover), QColor(self._theme.surface_hover))
        self._draw_labels(painter)
        for i, (band, image) in enumerate(zip(self._bands, self._images, strict=True)):
            rect = self._band_rect(i)
            self._draw_name(painter, rect, band.name, band.note)
            painter.drawImage(rect, image)
        for i, lane in enumerate(self._lanes):
            self._draw_lane(painter, self._lane_rect(i), lane)
        self._draw_frame(painter)
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text))
        below = QRectF(0, self._foot(), self.width(), self._line())
        text = QFontMetricsF(self.font()).elidedText(isolated(self.readout), Qt.TextElideMode.ElideRight, below.width())
        painter.drawText(below, _RIGHT | _MIDDLE, text)
        self._draw_focus_ring(painter)

    def label_places(self) -> list[tuple[int, QRectF]]:
        """The columns whose labels are shown, and where: the chosen ones whole, the others clear of them."""
        width, metrics = self._width(), QFontMetricsF(self.bold_font())
        widths = sorted(metrics.horizontalAdvance(label) for label in self._labels)
        needed = widths[round(_MOST_LABELS * (len(widths) - 1))]  # a few long ones may end in "…"
        each = max(1, int(np.ceil((min(needed, 3 * metrics.averageCharWidth()) + 2) / width)))
        places: list[tuple[int, QRectF]] = []
        taken: list[QRectF] = []
        for column in sorted(range(len(self._labels)), key=lambda i: (i != self._hover, i != self._current)):
            chosen = column in (self._current, self._hover)
            if not chosen and column % each:
                continue
            room = max(each * width, metrics.horizontalAdvance(self._labels[column]) + 2 if chosen else 0.0)
            left = min(max(self.column_rect(column).center().x() - room / 2, self._left()), self.width() - room)
            place = QRectF(left, 0, room, self._line())
            if any(place.adjusted(1, 0, -1, 0).intersects(other) for other in taken):
                continue
            places.append((column, place))
            if chosen:
                taken.append(place)
        return places

    def _draw_labels(self, painter: QPainter) -> None:
        metrics = QFontMetricsF(self.bold_font())
        for column, place in self.label_places():
            chosen = column in (self._current, self._hover)
            painter.setFont(self.bold_font() if chosen else self.font())
            painter.setPen(QColor(getattr(self._theme, self._accent) if chosen else self._theme.text_dim))
            label = self._labels[column]
            shown = label if chosen else metrics.elidedText(label, Qt.TextElideMode.ElideRight, place.width())
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, shown)

    def _draw_name(self, painter: QPainter, rect: QRectF, name: str, note: str) -> None:
        line = self._line()
        top = rect.center().y() - (line if note else line / 2)
        for i, (text, font, role) in enumerate(((name, self.bold_font(), "text"), (note, self.font(), "text_dim"))):
            painter.setFont(font)
            painter.setPen(QColor(getattr(self._theme, role)))
            place = QRectF(0, top + i * line, self._left() - _GAP, line)
            elided = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, place.width())
            painter.drawText(place, _MIDDLE, elided)

    def _draw_lane(self, painter: QPainter, rect: QRectF, lane: Lane) -> None:
        masked = np.zeros(len(lane.values), bool) if lane.masked is None else lane.masked
        inside = lane.values[~masked]
        low, high = float(inside.min(initial=0.0)), float(inside.max(initial=0.0))
        self._draw_name(painter, rect, lane.name, f"{low:.3g} to {high:.3g}".replace("-", MINUS))
        width, span = self._width(), (high - low) or 1.0
        zero = rect.bottom() + low / span * rect.height()
        colour = QColor(getattr(self._theme, lane.role))
        for column, value in enumerate(lane.values):
            left = rect.left() + column * width
            if masked[column]:
                hatch = QBrush(QColor(self._theme.hatch), Qt.BrushStyle.BDiagPattern)
                painter.fillRect(QRectF(left, rect.top(), width, rect.height()), hatch)
                continue
            tall = float(value) / span * rect.height()
            gap = 2.0 if width >= 6 else 0.0
            painter.fillRect(QRectF(left + gap / 2, min(zero, zero - tall), width - gap, abs(tall)), colour)
        painter.fillRect(QRectF(rect.left(), zero - 0.5, rect.width(), 1), QColor(self._theme.border_strong))

    def _draw_frame(self, painter: QPainter) -> None:
        if not 0 <= self._current < len(self._labels):
            return
        top = self._band_rect(0).top() if self._bands else self._lane_rect(0).top()
        rect = self.column_rect(self._current)
        rect.setTop(top - 1)
        rect.setBottom(rect.bottom() - _GAP + 1)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(getattr(self._theme, self._accent)), wide(2)))
        painter.drawRect(rect)

    # pointer and keyboard

    def item_count(self) -> int:
        return len(self._labels)

    def item_rect(self, item: int) -> QRectF:
        return self.column_rect(item)

    def _item_at(self, position: QPointF) -> int:
        column = int((position.x() - self._left()) // self._width())
        return column if 0 <= column < len(self._labels) and 0 <= position.y() < self._foot() else -1

    def _choose(self, item: int) -> None:
        self.column_selected.emit(item)
