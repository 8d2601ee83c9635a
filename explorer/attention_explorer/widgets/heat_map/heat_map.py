"""One head's weights as a map that a person walks through with pointer and keys, and may paint upon."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.look.colour_maps import ColourTable, sequential
from attention_explorer.look.text_size import is_read_from_afar
from attention_explorer.widgets.heat_map.bands import Bands
from attention_explorer.widgets.heat_map.frame import Frame, frame_for, frame_from_afar, label_at
from attention_explorer.widgets.heat_map.gestures import Brush, BrushMode, Gestures
from attention_explorer.widgets.heat_map.painter import KEY_TITLE, QUERY_TITLE, MapPainter
from attention_explorer.widgets.heat_map.picture import MapPicture, Source
from attention_explorer.widgets.heat_map.readout import Piece, Wording, draw_readout
from attention_explorer.widgets.heat_map.values import Pooling, TileCache, TiledValues, WholeValues
from attention_explorer.widgets.heat_map.view import FILLING, NOWHERE, MapView
from attention_explorer.widgets.themed import ThemedWidget
from attention_models.protocol.values import Tile

Cell = tuple[int, int]  # query, key; NOWHERE for none


@dataclass(frozen=True, eq=False)
class NamedValues:
    """Values, a name a query and a name a key; before there are values, the names alone."""

    source: Source | None = None
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of the queries, and of the keys."""
        return self.rows, self.columns

    @property
    def shape(self) -> tuple[int, int] | None:
        """(queries, keys); None while there are no values."""
        return None if self.source is None else self.source.shape

    @property
    def tiled(self) -> TiledValues | None:
        """The values, where they come in tiles."""
        return self.source if isinstance(self.source, TiledValues) else None

    def within(self, cell: Cell) -> Cell:
        """`cell`, or NOWHERE where there is no such cell."""
        if self.shape is None:
            return NOWHERE
        rows, columns = self.shape
        return cell if 0 <= cell[0] < rows and 0 <= cell[1] < columns else NOWHERE

    def crossing(self, query: int, key: int) -> Cell:
        """The lines of a crosshair; -1 for one that would be off the map."""
        return (
            query if 0 <= query < len(self.rows) else -1,
            key if 0 <= key < len(self.columns) else -1,
        )

    def value_at(self, cell: Cell, view: MapView, ratio: float) -> tuple[float, int] | None:
        """Of values in tiles, a cell's value and 1, or the value of a square and its side. None: nothing yet."""
        if self.tiled is None or self.within(cell) == NOWHERE:
            return None
        return self.tiled.value_at(*cell, view, ratio)

    def pieces(self, cell: Cell, words: Wording, view: MapView, ratio: float) -> list[Piece]:
        """What the readout says of a cell that there is."""
        if isinstance(self.source, TiledValues):
            return self.source.pieces(self.value_at(cell, view, ratio), words)
        return [] if self.source is None else self.source.pieces(*cell, words)

    def label(self, side: str, index: int) -> str:
        """The whole name along one side, "row" or "column", and its number; "" for any other."""
        if side == "row":
            return f"query {index}: {self.rows[index]}"
        return f"key {index}: {self.columns[index]}" if side == "column" else ""


_LEAST_SHARE = 0.6
"""Of the height of a screen: what the cells keep of it while they are presented, whatever the labels would like."""

EventT = TypeVar("EventT", bound=QEvent)


class HeatMap(ThemedWidget):
    """A zoomable map of one value a (query, key) pair, with token labels on both axes, and one value spelled out.

    Click selects, arrows move the selection, the wheel or + and - zoom, dragging pans, 0 or a double click shows all.
    While the brush is on, a drag with the left button paints instead; Space or Enter paints the selected cell, Escape
    drops an unfinished stroke, or else lays the brush down.

    `set_values` shows a map that is held whole, `set_map` one that comes in tiles. Of the latter, `missing` says which
    tiles the view lacks, those that matter most first; `add_tile` brings one. Until it comes the coarser ones that are
    there are shown, at first a small picture given with `set_backdrop`.

    The text of a value always comes from the numbers that were given, never from the colour on screen.
    """

    cell_selected = Signal(int, int)  # query, key: chosen here, by pointer or keyboard
    hovered = Signal(int, int)  # query, key under the pointer; -1, -1 when it leaves the map
    view_changed = Signal()  # zoomed, panned or laid out anew
    map_span_changed = Signal(int, int)  # top and height of the map in pixels, for a colour bar beside it
    stroke_painted = Signal(object)  # tuple of (query, key), when a stroke ends
    brush_dropped = Signal()  # Escape was pressed between strokes

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Attention heat map", parent)
        self.setMouseTracking(True)
        self.setAccessibleDescription("Arrow keys move the selected cell, plus and minus zoom, 0 shows the whole map.")
        self.value_name = ""
        """What the readout calls a value that is no weight."""
        self.absent_name = ""
        """What the readout says of a cell that has no value, where there is more to say than that."""
        self.key_note = ""
        """What the title of the keys' axis adds."""
        self.note_of: Callable[[int, int], str] = lambda query, key: ""
        """What the readout adds to a cell, before its value."""
        self.more_of_key: Callable[[int], str] = lambda key: ""
        """What the tooltip of a key's label adds."""
        self.is_brief = False
        """For a narrow map, beside which it is said what a square stands for."""
        self.wheel_zooms = True
        """Off for a map in a scrolled panel, where the wheel is for the panel."""
        self.cache = TileCache()
        self._shown = NamedValues()
        self._table = sequential()
        self._selection = NOWHERE
        self._hover = NOWHERE
        self._bands = Bands()
        self._block: tuple[range, range] | None = None
        self._faded: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        self._brush = Brush()
        self._gestures = Gestures(self, self._brush)
        self._picture = MapPicture()
        self._span = (0, 0)  # of the map, as told last
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
        """Show values (queries, keys), coloured from low to high; None shows the empty text. All tiles are forgotten.

        `masked` (queries, keys) marks the cells that the mask hides; a NaN counts as not computed. Both are hatched.
        The zoom is kept while the shape stays the same. Raises ValueError when the shapes do not agree.
        """
        whole = None if values is None else WholeValues.of(values, masked, row_labels, column_labels, (low, high))
        self.cache.keep_only(lambda _: False)
        self._set_source(whole, row_labels, column_labels)

    def set_map(
        self,
        name: Hashable,
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        pooling: Pooling = "max",
        signed: bool = False,
        high: float | None = None,
    ) -> None:
        """Show the map `name` of one query a row label and one key a column label, pooled as its tiles will be.

        A `signed` one shows changes, coloured as far below 0 as above; a square is that which is furthest from 0.
        Colours reach up to `high`, or to the largest value if None.
        """
        shape, before = (len(row_labels), len(column_labels)), self._shown.tiled
        tiled = TiledValues(self.cache, name, shape, pooling, signed, high)
        if before is not None and before.name == name:
            tiled.backdrop = before.backdrop
        self._set_source(tiled, row_labels, column_labels)
        self._measure()

    def _set_source(self, source: Source | None, row_labels: Sequence[str], column_labels: Sequence[str]) -> None:
        """Show this under these names; the zoom is kept while the numbers of queries and keys stay the same."""
        before, self._shown = self._shown, NamedValues(source, tuple(row_labels), tuple(column_labels))
        if self._shown.shape is None or self._shown.shape != before.shape:
            self._gestures.let_go()
            self._lay_out(keep_zoom=False)
        elif self._shown.names != before.names:
            self._lay_out()
        self._selection = self._shown.within(self._selection)
        self._hover = self._shown.within(self._hover)
        self._repaint()

    def set_backdrop(self, picture: NDArray[np.float32] | None) -> None:
        """A small picture of the whole map, (down, across), pooled as the tiles are: shown until one is there."""
        if self._shown.tiled is not None and picture is not self._shown.tiled.backdrop:
            self._shown.tiled.backdrop = picture
            self._measure()

    def add_tile(self, name: Hashable, tile: Tile, values: NDArray[np.float32]) -> None:
        """Take a tile of any map; those of the one on screen are shown."""
        self.cache.put(name, tile, values)
        if self._shown.tiled is not None and name == self._shown.tiled.name:
            self._measure()

    def set_selection(self, query: int, key: int) -> None:
        """Frame a cell and name its tokens in the accents; -1, -1 for none. Emits nothing."""
        if self._shown.within((query, key)) != self._selection:
            self._selection = self._shown.within((query, key))
            self.update()

    def said_at(self, position: QPoint) -> str:
        """The titles of the axes, outside of the map and the line below it."""
        inside = self._frame.room.contains(position.toPointF()) or self._frame.strip.contains(position.toPointF())
        return "" if inside else f"{QUERY_TITLE} {KEY_TITLE}"

    def set_hover(self, query: int, key: int) -> None:
        """Show the crosshair of a cell pointed at elsewhere; -1 on an axis leaves its line out. Emits nothing."""
        hover = self._shown.crossing(query, key)
        if hover != self._hover:
            self._hover = hover
            self.update()

    def set_bands(self, bands: Bands) -> None:
        """Mark the blocks of tokens of two texts."""
        if bands != self._bands:
            self._bands = bands
            self.update()

    def set_faded(self, rows: Sequence[int], columns: Sequence[int]) -> None:
        """Draw these queries and keys faint: they fill up a text, and say nothing of it."""
        faded = (tuple(rows), tuple(columns))
        if faded != self._faded:
            self._faded = faded
            self.update()

    def show_block(self, block: tuple[range, range] | None) -> None:
        """Show these (queries, keys) alone; None shows all. What is zoomed is forgotten."""
        if block != self._block:
            self._block = block
            self._lay_out(keep_zoom=False)

    def set_colour_map(self, table: ColourTable) -> None:
        """Colour by another table, (256, 3) uint8, from low to high."""
        self._table = table
        self._repaint()

    def set_brush(self, mode: BrushMode) -> None:
        """What a drag does from now on. An unfinished stroke is dropped."""
        if mode != self._brush.mode:
            self._brush.set_mode(mode)
            self._gestures.show_cursor()
            self.update()

    def set_painted(self, cells: Sequence[tuple[int, int, bool]]) -> None:
        """Mark cells, (query, key, allowed), as painted, whatever the values say."""
        if tuple(cells) != self._brush.painted:
            self._brush.painted = tuple(cells)
            self.update()

    # what is shown

    @property
    def selection(self) -> Cell:
        """The selected (query, key), or (-1, -1)."""
        return self._selection

    @property
    def view(self) -> MapView:
        """Where the cells lie now; one cell while there are no values."""
        return self._view

    @property
    def labels(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What queries and keys are called."""
        return self._shown.names

    @property
    def stroke(self) -> tuple[tuple[int, int], ...]:
        """The cells of the unfinished stroke."""
        return self._brush.stroke

    @property
    def colour_span(self) -> tuple[float, float]:
        """The values that the first and the last colour stand for."""
        return (0.0, 1.0) if self._shown.source is None else self._shown.source.span

    @property
    def high(self) -> float:
        """The value that the last colour stands for."""
        return self.colour_span[1]

    @property
    def is_tiled(self) -> bool:
        """Whether the map comes in tiles."""
        return self._shown.tiled is not None

    @property
    def level(self) -> int:
        """The level of detail at this zoom: a square stands for 2^level x 2^level weights."""
        return 0 if self._shown.tiled is None else self._shown.tiled.level(self.view, self.devicePixelRatioF())

    def missing(self) -> list[Tile]:
        """The tiles that the view lacks: the whole map first, which everything else can be shown from meanwhile."""
        return [] if self._shown.tiled is None else self._shown.tiled.missing(self.view, self.devicePixelRatioF())

    def overview(self) -> NDArray[np.float32] | None:
        """The whole map in one tile, (down, across), or the backdrop; None while there is neither."""
        return None if self._shown.tiled is None else self._shown.tiled.overview(self.view)

    def value_at(self, query: int, key: int) -> tuple[float, int] | None:
        """Of a map in tiles, a cell's value and 1, or the value of a square and its side. None: nothing yet."""
        return self._shown.value_at((query, key), self.view, self.devicePixelRatioF())

    def readout(self, query: int, key: int) -> str:
        """The sentence about one cell, as the strip below the map shows it."""
        return "".join(piece.text for piece in self._pieces((query, key)))

    def cell_rect(self, query: int, key: int) -> QRectF:
        """Where a cell lies, in the widget's coordinates, also when it is scrolled out of view."""
        rows, columns = self.view.rows, self.view.columns
        return QRectF(columns.edge(key), rows.edge(query), columns.size, rows.size)

    def readout_rect(self) -> QRectF:
        """Where a cell's value is spelled out."""
        return self._frame.strip

    def part(self) -> QRectF:
        """The part of the map that shows, in shares of its width and height."""
        return self.view.part()

    def _pieces(self, cell: Cell) -> list[Piece]:
        if self._shown.within(cell) == NOWHERE:
            return []
        names = self._shown.rows[cell[0]], self._shown.columns[cell[1]]
        words = Wording(*names, self.value_name, self.note_of(*cell), self.absent_name, self.is_brief)
        return self._shown.pieces(cell, words, self.view, self.devicePixelRatioF())

    # zoom and place

    def scroll_to_cell(self, query: int, key: int) -> None:
        """Bring a cell into the zoomed view, moving it as little as possible."""
        if self._shown.within((query, key)) != NOWHERE:
            self.set_view(self.view.showing(query, key))

    def go_to_cell(self, query: int, key: int, size: float = 14.0) -> None:
        """Bring a cell into the middle, zoomed in until cells take `size` pixels where they take less."""
        if self._shown.within((query, key)) != NOWHERE:
            self.set_view(self.view.centred_on_cell(query, key, size))

    def centre_on(self, across: float, down: float) -> None:
        """Bring a place into the middle, as far as the ends allow; in shares of the map's width and height."""
        self.set_view(self.view.centred_on(across, down))

    def reset_view(self) -> None:
        """Show the whole map again."""
        if self._shown.source is not None:
            self.set_view(self.view.zoomed(0.0, 0.0, 0.0))

    def zoom_by(self, factor: float) -> None:
        """Zoom about the selected cell, or about the middle when there is none or it is out of view."""
        if self._shown.source is not None:
            self.set_view(self.view.zoomed_about(factor, *self._selection))

    # geometry and painting

    def sizeHint(self) -> QSize:
        return QSize(560, 460)

    def minimumSizeHint(self) -> QSize:
        return QSize(260, 220)

    def _fitted(self) -> tuple[Frame, MapView]:
        names, pixel = self._shown.names, 1 / self.devicePixelRatioF()
        rows, columns = (len(listed) for listed in names)
        block = (range(max(1, rows)), range(max(1, columns)))
        if self._block is not None and self._block[0].stop <= rows and self._block[1].stop <= columns:
            block = self._block
        seen = names[0][block[0].start : block[0].stop], names[1][block[1].start : block[1].stop]
        look = self.font(), self.bold_font(), self.size()
        if is_read_from_afar():
            least = _LEAST_SHARE * self.window().height()
            fit = partial(Frame.fitted_view, rows=rows, columns=columns, pixel=pixel, block=block, bounds=FILLING)
            return frame_from_afar(*look, seen, fit, least)
        frame = frame_for(*look, *seen)
        return frame, frame.fitted_view(rows, columns, pixel, block)

    def _lay_out(self, keep_zoom: bool = True) -> None:
        """Measure the labels and fit the map; a zoomed view keeps its zoom and its first cells."""
        old = self._view
        self._frame, view = self._fitted()
        self._view = view.like(old) if keep_zoom else view
        self._picture.forget_labels()
        self._repaint()
        span = (round(view.rows.origin), round(view.rows.extent))
        if span != self._span:
            self._span = span
            self.map_span_changed.emit(*span)
        self.view_changed.emit()

    def _measure(self) -> None:
        """Colours reach as far as the values that are here now."""
        if self._shown.tiled is not None:
            self._shown.tiled.measure(self.view, self.devicePixelRatioF())
            self._repaint()

    def _repaint(self) -> None:
        self._picture.forget_cells()
        self.update()

    def _look_changed(self) -> None:
        self._lay_out()
        super()._look_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._shown.source is None:
            self._draw_empty_text(painter)
        else:
            self._draw_map(painter, self._shown.source)
        self._draw_focus_ring(painter)

    def _draw_map(self, painter: QPainter, source: Source) -> None:
        artist = MapPainter(self._theme, self._frame, self._view, self.devicePixelRatioF(), self.key_note)
        self._picture.draw_cells(painter, artist, source, self._table, self.size())
        artist.draw_faded(painter, *self._faded)
        self._brush.draw(painter, artist)
        self._bands.draw(painter, artist)
        self._picture.draw_labels(painter, artist, *self._shown.names, self._selection, self._hover)
        artist.draw_selection(painter, *self._selection)
        artist.draw_crosshair(painter, *self._hover)
        cell = self._hover if self._shown.within(self._hover) != NOWHERE else self._selection
        # from afar nobody has the pointer
        hint = self._brush.hint or self.key_note if is_read_from_afar() else self._gestures.hint
        draw_readout(painter, self._theme, self._frame, self._pieces(cell), hint)

    # what `Gestures` does with it

    def set_view(self, view: MapView) -> None:
        """Zoom or pan to `view`."""
        if view == self._view:
            return
        self._view = view
        self._picture.forget_labels()
        self._repaint()
        self.view_changed.emit()
        if self._shown.tiled is not None and self._shown.tiled.follows_view:
            self._measure()

    def point_at(self, cell: Cell) -> None:
        """The pointer is over `cell`; NOWHERE off the map."""
        if cell != self._hover:
            self._hover = cell
            self.hovered.emit(*cell)
            self.update()

    def choose(self, cell: Cell) -> None:
        """Select `cell` as a person does."""
        if cell != NOWHERE and cell != self._selection:
            self.set_selection(*cell)
            self.cell_selected.emit(*cell)

    def move_selection(self, down: int, right: int) -> None:
        """Select a neighbour of the selected cell, as far as the map (or the block) goes, and bring it into view."""
        if self._shown.shape is None:
            return
        cell = self.view.neighbour(self._selection, down, right)
        self.choose(cell)
        self.scroll_to_cell(*cell)

    def finish_stroke(self) -> None:
        """Hand on the cells of the stroke."""
        cells = self._brush.stroke
        self._brush.drop()
        self.update()
        self.stroke_painted.emit(cells)

    def lay_down_brush(self) -> None:
        self.brush_dropped.emit()

    def tool_tip_at(self, position: QPointF) -> str:
        """The whole of a label, which its axis may elide, or what the pointer does; nothing over the map."""
        if self._frame.strip.contains(position):
            return f"Click selects, {self._gestures.hint}"
        side, index = label_at(self._frame, self._view, position)
        more = self.more_of_key(index) if side == "column" else ""
        return self._shown.label(side, index) + (f"\n{more}" if more else "")

    # events

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._take(event, self._gestures.press)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._take(event, self._gestures.move)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._gestures.release(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self._take(event, self._gestures.double_click)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._take(event, self._gestures.wheel)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._take(event, self._gestures.key)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and self._drops_stroke(event):
            event.accept()  # where Esc is a shortcut too, that waits for the next one
            return True
        return super().event(event)

    def _drops_stroke(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_Escape and bool(self._brush.stroke)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.point_at(NOWHERE)

    def _take(self, event: EventT, gesture: Callable[[EventT], None]) -> None:
        """Leave an event to the widgets around while there is nothing to show."""
        if self._shown.source is None:
            event.ignore()
        else:
            gesture(event)
