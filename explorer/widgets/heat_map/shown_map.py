"""How one head's weights look as a map: queries down, keys across, labels on both, one value spelled out below.

The text of a value always comes from the float array that was given, never from the colour on screen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QWidget

from explorer.theme import ColourTable, sequential
from explorer.widgets import cell_image
from explorer.widgets.heat_map.paint import Frame, HeatMapPainter, frame_for
from explorer.widgets.heat_map.view import MapView
from explorer.widgets.number_text import value_text
from explorer.widgets.themed import ThemedWidget

NOWHERE = (-1, -1)


class ShownMap(ThemedWidget):
    """A map of one value a (query, key) pair: the part that it is told to show. A `HeatMap` can be walked through."""

    view_changed = Signal()  # zoomed, panned or laid out anew
    map_span_changed = Signal(int, int)  # top and height of the map in pixels, for a colour bar beside it

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Attention heat map", parent)
        self.value_name = ""
        """What the readout calls a value that is no weight."""
        self._values: NDArray[np.float32] | None = None  # (queries, keys)
        self._masked: NDArray[np.bool_] | None = None  # (queries, keys)
        self._row_labels: tuple[str, ...] = ()
        self._column_labels: tuple[str, ...] = ()
        self._range = (0.0, 1.0)
        self._table = sequential()
        self._codes: cell_image.Codes | None = None  # (queries, keys)
        self._shape: tuple[int, int] | None = None  # (queries, keys) of what is shown; None while there is nothing
        self._has_gaps = False
        self._selection = NOWHERE
        self._hover = NOWHERE
        self._background: QPixmap | None = None
        self._span = (0, 0)
        self._frame, self._view = self._fitted()

    # what to show

    def set_values(
        self,
        values: NDArray[np.float32] | None,
        masked: NDArray[np.bool_] | None,
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        low: float,
        high: float,
    ) -> None:
        """Show values (queries, keys), coloured from low to high; None shows the empty text.

        `masked` (queries, keys) marks the cells that the mask hides; a NaN counts as not computed. Both are hatched.
        The zoom is kept while the shape stays the same. Raises ValueError when the shapes do not agree.
        """
        if values is not None:
            values = np.asarray(values, dtype=np.float32)
            if values.ndim != 2 or values.shape != (len(row_labels), len(column_labels)):
                raise ValueError(
                    f"The map has shape {values.shape}, its labels name "
                    f"{len(row_labels)} queries and {len(column_labels)} keys."
                )
            if masked is not None and masked.shape != values.shape:
                raise ValueError(f"The mask has shape {masked.shape}, the map has shape {values.shape}.")
            if values.size == 0:
                values = None
        self._values, self._masked, self._range = values, masked, (low, high)
        self._codes = None if values is None else cell_image.encode(values, low, high, masked)
        self._has_gaps = self._codes is not None and not bool(self._codes.all())
        self._set_shape(None if values is None else (len(row_labels), len(column_labels)), row_labels, column_labels)

    def _set_shape(
        self, shape: tuple[int, int] | None, row_labels: Sequence[str], column_labels: Sequence[str]
    ) -> None:
        """Show so many queries and keys under these names; the zoom is kept while their numbers stay the same."""
        old_shape, self._shape = self._shape, shape
        labels_changed = (tuple(row_labels), tuple(column_labels)) != (self._row_labels, self._column_labels)
        self._row_labels, self._column_labels = tuple(row_labels), tuple(column_labels)
        if shape is None or shape != old_shape:
            self._lay_out(keep_zoom=False)
        elif labels_changed:
            self._lay_out()
        self._selection = self._within(self._selection)
        self._hover = self._within(self._hover)
        self._repaint()

    def set_selection(self, query: int, key: int) -> None:
        """Frame a cell and name its tokens in the accents; -1, -1 for none. Emits nothing."""
        if self._within((query, key)) != self._selection:
            self._selection = self._within((query, key))
            self.update()

    def set_hover(self, query: int, key: int) -> None:
        """Show the crosshair of a cell pointed at elsewhere; -1 on an axis leaves its line out. Emits nothing."""
        rows, columns = len(self._row_labels), len(self._column_labels)
        hover = (query if 0 <= query < rows else -1, key if 0 <= key < columns else -1)
        if hover != self._hover:
            self._hover = hover
            self.update()

    def set_colour_map(self, table: ColourTable) -> None:
        """Colour by another table, (256, 3) uint8, from low to high."""
        self._table = table
        self._repaint()

    def scroll_to_cell(self, query: int, key: int) -> None:
        """Bring a cell into the zoomed view, moving it as little as possible."""
        if self._within((query, key)) != NOWHERE:
            self._set_view(self.view.showing(query, key))

    def go_to_cell(self, query: int, key: int, size: float = 14.0) -> None:
        """Bring a cell into the middle, zoomed in until cells take `size` pixels where they take less."""
        if self._within((query, key)) == NOWHERE:
            return
        view = self.view
        smallest = min(view.rows.size, view.columns.size)
        if smallest < size:
            view = view.zoomed(size / smallest, view.columns.centre(key), view.rows.centre(query))
        right = view.columns.origin + view.columns.extent / 2 - view.columns.centre(key)
        down = view.rows.origin + view.rows.extent / 2 - view.rows.centre(query)
        self._set_view(view.panned(right, down))

    # what is shown

    @property
    def selection(self) -> tuple[int, int]:
        """The selected (query, key), or (-1, -1)."""
        return self._selection

    @property
    def view(self) -> MapView:
        """Where the cells lie now; one cell while there are no values."""
        return self._view

    def readout(self, query: int, key: int) -> str:
        """The sentence about one cell, as the strip below the map shows it."""
        return "".join(text for text, _ in self._readout_parts(query, key))

    def cell_rect(self, query: int, key: int) -> QRectF:
        """Where a cell lies, in the widget's coordinates, also when it is scrolled out of view."""
        view = self.view
        x, y = view.columns.edge(key), view.rows.edge(query)
        return QRectF(x, y, view.columns.size, view.rows.size)

    def _readout_parts(self, query: int, key: int) -> list[tuple[str, str]]:
        """Pieces of the readout with the theme role of each."""
        if self._values is None or self._within((query, key)) == NOWHERE:
            return []
        if self._masked is not None and self._masked[query, key]:
            return self._cell_parts(query, key, None)
        return self._cell_parts(query, key, float(self._values[query, key]))

    def _cell_parts(self, query: int, key: int, value: float | None) -> list[tuple[str, str]]:
        """What is said of a cell whose value is known; None is a masked one."""
        looks, looked_at = f"“{self._row_labels[query]}”", f"“{self._column_labels[key]}”"
        if value is None:
            return [(looks, "query"), (" cannot look at ", "text_dim"), (looked_at, "key"), (": masked", "text")]
        name, text = f": {self.value_name} " if self.value_name else ": ", value_text(value)
        return [(looks, "query"), (" looks at ", "text_dim"), (looked_at, "key"), (name, "text_dim"), (text, "text")]

    def _within(self, cell: tuple[int, int]) -> tuple[int, int]:
        if self._shape is None:
            return NOWHERE
        rows, columns = self._shape
        return cell if 0 <= cell[0] < rows and 0 <= cell[1] < columns else NOWHERE

    # geometry and painting

    def sizeHint(self) -> QSize:
        return QSize(560, 460)

    def minimumSizeHint(self) -> QSize:
        return QSize(260, 220)

    def _fitted(self) -> tuple[Frame, MapView]:
        frame = frame_for(self.font(), self.bold_font(), self.size(), self._row_labels, self._column_labels)
        rows, columns = max(1, len(self._row_labels)), max(1, len(self._column_labels))
        pixel = 1 / self.devicePixelRatioF()
        room = frame.room
        return frame, MapView.fit(rows, columns, room.x(), room.y(), room.width(), room.height(), pixel)

    def _lay_out(self, keep_zoom: bool = True) -> None:
        """Measure the labels and fit the map; a zoomed view keeps its zoom and its first cells."""
        old = self._view
        self._frame, view = self._fitted()
        self._view = view.like(old) if keep_zoom else view
        self._background = None
        self.update()
        span = (round(view.rows.origin), round(view.rows.extent))
        if span != self._span:
            self._span = span
            self.map_span_changed.emit(*span)
        self.view_changed.emit()

    def _set_view(self, view: MapView) -> None:
        if view != self._view:
            self._view = view
            self._repaint()
            self.view_changed.emit()

    def _repaint(self) -> None:
        self._background = None
        self.update()

    def _look_changed(self) -> None:
        self._lay_out()
        super()._look_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._shape is None:
            self._draw_empty_text(painter)
        else:
            artist = HeatMapPainter(self._theme, self._frame, self._view, self._row_labels, self._column_labels)
            if self._background is None or self._background.devicePixelRatio() != self.devicePixelRatioF():
                self._background = self._draw_background(artist)
            painter.drawPixmap(0, 0, self._background)
            self._draw_over(painter, artist)
            artist.draw_labels(painter, self._selection, self._hover)
            artist.draw_selection(painter, *self._selection, self.devicePixelRatioF())
            artist.draw_hover(painter, *self._hover, self.devicePixelRatioF())
            cell = self._hover if self._within(self._hover) != NOWHERE else self._selection
            artist.draw_strip(painter, self._readout_parts(*cell), self._hint())
        self._draw_focus_ring(painter)

    def _draw_over(self, painter: QPainter, artist: HeatMapPainter) -> None:
        """For a subclass: what lies over the cells, below the selection and the crosshair."""

    def _hint(self) -> str:
        """For a subclass: what the pointer and the keys do, in a few words."""
        return ""

    def _draw_background(self, artist: HeatMapPainter) -> QPixmap:
        """What follows neither the pointer nor the selection, kept until it changes."""
        ratio = self.devicePixelRatioF()
        pixmap = QPixmap(self.size() * ratio)
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        image = cell_image.to_image(self._pixels(artist.view, ratio), cell_image.colours(self._table, *self._range))
        image.setDevicePixelRatio(ratio)
        artist.draw_map(painter, image, self._has_gaps)
        artist.draw_titles(painter)
        painter.end()
        return pixmap

    def _pixels(self, view: MapView, ratio: float) -> cell_image.Codes:
        """One code a device pixel of the visible cells."""
        assert self._codes is not None
        pixels = self._codes
        for index, axis in enumerate((view.rows, view.columns)):
            length = max(1, round(axis.extent * ratio))
            pixels = cell_image.stretch(pixels, index, axis.offset, axis.size * ratio, length)
        return pixels
