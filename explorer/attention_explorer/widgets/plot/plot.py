"""A plot with axes. Hover reads a place, a click, a drag or the arrow keys choose one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.plot.figure import Figure, Values
from attention_explorer.widgets.plot.geometry import Geometry
from attention_explorer.widgets.plot.paint import Label, Reading, labels_of, paint_back, paint_front, readout, values_at
from attention_explorer.widgets.themed import ThemedWidget

if TYPE_CHECKING:
    from attention_explorer.widgets.plot.canvas import Canvas

_NORMAL_LINE = 18.0  # pixels: a line of text at its normal size


class Plot(ThemedWidget):
    """Shows a `Figure`. Nothing pans or zooms, and the page around it keeps the wheel."""

    cursor_moved = Signal(float)
    """The x of the place that a person chose."""

    def __init__(
        self, accessible_name: str, height: int = 190, *, grows: bool = False, parent: QWidget | None = None
    ) -> None:
        """`height` is in pixels at the normal size of text, the least where the plot `grows` into free space."""
        super().__init__(accessible_name, parent)
        vertical = QSizePolicy.Policy.Expanding if grows else QSizePolicy.Policy.Fixed
        self.setSizePolicy(QSizePolicy.Policy.Expanding, vertical)
        self.setMouseTracking(True)
        self._height = height
        self._figure = Figure()
        self._places: Values = np.zeros(0)
        self._reading = Reading()
        self._canvas: Canvas | None = None
        self._geometry: Geometry | None = None
        self._labels: list[Label] | None = None

    @property
    def figure(self) -> Figure:
        return self._figure

    def said_at(self, position: QPoint) -> str:
        return f"{self._figure.y.title} {self._figure.x.title}"

    def set_figure(self, figure: Figure) -> None:
        """Show `figure`. The cursor stays where there still is a place at its x."""
        self._figure, self._places = figure, figure.places()
        cursor = self._reading.cursor
        self._reading = Reading(cursor if cursor is not None and cursor in self._places else None)
        self._changed()

    @property
    def places(self) -> Values:
        """Every x that can be read, ascending."""
        return self._places

    @property
    def cursor_place(self) -> float | None:
        """The x of the chosen place."""
        return self._reading.cursor

    def set_cursor(self, x: float | None) -> None:
        """Choose the place nearest to `x`, or none; emits nothing."""
        if x is not None:
            x = self._laid_out().nearest(self._places, self._laid_out().across(x)) if len(self._places) else None
        self._read(Reading(x, self._reading.hover))

    def readout(self) -> str:
        """What is read, in words: the place under the pointer, else the chosen one."""
        return readout(self._laid_out(), self._reading.place)

    def point(self, x: float, y: float) -> QPointF:
        """Where values lie, in the widget's pixels."""
        return self._laid_out().point(x, y)

    # for export

    def columns(self) -> dict[str, Values]:
        """The data as named columns of one length; NaN where a series has no point."""
        return self._figure.columns()

    def picture(self, scale: float = 2.0) -> QImage:
        """The plot as it stands, with `scale` pixels for each of the screen's."""
        self._draw()
        image = QImage(self.size() * scale, QImage.Format.Format_ARGB32_Premultiplied)
        image.setDevicePixelRatio(scale)
        image.fill(self.theme.surface)
        self.render(image)
        return image

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(360, self._scaled_height())

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self._scaled_height())

    def _scaled_height(self) -> int:
        return round(self._height * max(1.0, QFontMetricsF(self.font()).height() / _NORMAL_LINE))

    def _laid_out(self) -> Geometry:
        if self._geometry is None:
            self._geometry = Geometry(self._figure, self.font(), self.size())
        return self._geometry

    # drawing

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._canvas is not None:
            self._draw()  # it may have changed while it was hidden

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._changed()

    def _look_changed(self) -> None:
        super()._look_changed()
        self._changed()

    def _changed(self) -> None:
        """Figure, size or look."""
        self._geometry = self._labels = None
        self._describe()
        if self._canvas is not None and self.isVisible():
            self._draw()
        self.update()

    def _draw(self) -> None:
        """Bring the canvas up to date; the first time one is needed pyqtgraph is imported."""
        if self._figure.is_empty:
            if self._canvas is not None:
                self._canvas.hide()
            return
        if self._canvas is None:
            from attention_explorer.widgets.plot.canvas import Canvas

            self._canvas = Canvas(self, self._paint_back, self._paint_front)
        self._canvas.setGeometry(self.rect())
        self._canvas.show_data(self._laid_out(), self._theme)
        self._canvas.show()

    def _paint_back(self, painter: QPainter) -> None:
        paint_back(painter, self._laid_out(), self._theme)

    def _paint_front(self, painter: QPainter) -> None:
        geometry = self._laid_out()
        if self._labels is None:
            self._labels = labels_of(geometry)
        paint_front(painter, geometry, self._labels, self._theme, self._reading)
        self._draw_focus_ring(painter)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._update_front()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._update_front()

    def _update_front(self) -> None:
        """Draw again what lies before the data."""
        if self._canvas is not None:
            self._canvas.show_reading()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._canvas is None:
            self._draw()  # not as soon as it is shown: a dock behind a tab is, and nobody sees it
        if self._figure.is_empty:
            painter = QPainter(self)
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)

    # pointer and keyboard

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._choose(event.position().x())
            return
        inside = len(self._places) and self._laid_out().contains(event.position())
        place = self._laid_out().nearest(self._places, event.position().x()) if inside else None
        self._read(Reading(self._reading.cursor, place))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._read(Reading(self._reading.cursor))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        inside = len(self._places) and self._laid_out().contains(event.position())
        if not inside or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._choose(event.position().x())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last, cursor = len(self._places) - 1, self._reading.cursor
        at = None if cursor is None else int(np.searchsorted(self._places, cursor))
        moves = {
            Qt.Key.Key_Left: last if at is None else at - 1,
            Qt.Key.Key_Right: 0 if at is None else at + 1,
            Qt.Key.Key_PageUp: last if at is None else at - 10,
            Qt.Key.Key_PageDown: 0 if at is None else at + 10,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        move = moves.get(Qt.Key(event.key()))
        if move is None or last < 0:
            event.ignore()
            return
        self._move(float(self._places[min(max(move, 0), last)]))

    def _choose(self, pixel: float) -> None:
        if len(self._places):
            self._move(self._laid_out().nearest(self._places, pixel))

    def _move(self, place: float) -> None:
        if place != self._reading.cursor:
            self._read(Reading(place))
            self.cursor_moved.emit(place)

    def _read(self, reading: Reading) -> None:
        if reading == self._reading:
            return
        moved = reading.cursor != self._reading.cursor
        self._reading = reading
        if moved:
            self._describe()
        self._update_front()

    def _describe(self) -> None:
        said, cursor = f"{self._figure.y.title} over {self._figure.x.title}.", self._reading.cursor
        if cursor is not None:
            values = ", ".join(f"{name} {value}" for name, value in values_at(self._laid_out(), cursor))
            said += f" {self._figure.place_text(cursor)}: {values}."
        self.setAccessibleDescription("" if self._figure.is_empty else said)
