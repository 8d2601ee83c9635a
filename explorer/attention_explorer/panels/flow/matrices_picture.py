"""The picture of attention as matrices, which a person walks through with pointer and keys."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from attention_explorer.colour_maps import ColourTable, sequential
from attention_explorer.panels.flow.matrices_labels import MatricesLabels
from attention_explorer.panels.flow.matrices_layout import BANDS, LARGEST, SMALLEST, WITH_NUMBERS, Layout, Room
from attention_explorer.panels.flow.matrices_paint import CAPTION_REST, MatricesPainter
from attention_explorer.panels.flow.matrices_scene import NAMES, SIDES, Lit, Name, Place, Scene
from attention_explorer.text_size import smaller
from attention_explorer.widgets.themed import ThemedWidget

_STEP = 1.25
_WIDEST = "−88.8"
_ARROWS = {
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
}
_CHOOSES = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_SLANT = 0.71


@dataclass(frozen=True)
class _Fonts:
    line: float
    letter: float


class MatricesPicture(ThemedWidget):
    """Eight matrices of one head, on one scale of tokens. A number that is pointed at lights what it was made of.

    Click chooses a number, arrows go to its neighbours, Page Up and Page Down to the matrix before and after, + and -
    make the cells larger and smaller, 0 fits them into the room. From 40 pixels on numbers stand in the cells.
    """

    cell_selected = Signal(int, int)  # query, key among those shown, -1 for the one that the number does not name
    hovered = Signal(int, int)  # the same of the number under the pointer; -1, -1 where there is none
    zoomed = Signal()
    place_changed = Signal()  # another number is told of

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Attention as matrices", parent)
        self.setMouseTracking(True)
        self.setAccessibleDescription(
            "Arrow keys go from number to number, Page Up and Page Down from matrix to matrix, plus and minus zoom."
        )
        self._scene: Scene | None = None
        self._layout: Layout | None = None
        self._token: float | None = None  # None: what fits
        self._space = QSize(400, 300)
        self._table = sequential()
        self._place: Place | None = None  # chosen
        self._hover: Place | None = None
        self._outer = (-1, -1)  # a cell that is pointed at elsewhere
        self._selection = (-1, -1)
        self._images: dict[Name, QImage] = {}

    # what to show

    def set_scene(self, scene: Scene | None) -> None:
        """Show these matrices; None shows the empty text. The number that is told of stays where there is one."""
        self._scene = scene
        self._images.clear()
        self._hover = None
        if scene is None or (self._place is not None and not self._exists(self._place)):
            self._place = None
        self._lay_out()
        self.place_changed.emit()

    def set_selection(self, query: int, key: int) -> None:
        """Name these tokens in the accents, and tell of their score where nothing else was chosen. Emits no choice."""
        self._selection = (query, key)
        if self._scene is not None:
            name: Name = "raw" if self._place is None else self._place.name
            at = {"query": query, "key": key, "dim": 0 if self._place is None else self._dimension(self._place)}
            place = Place(name, *(max(0, at[side]) for side in SIDES[name]))
            self._place = place if self._exists(place) else None
        self.update()
        self.place_changed.emit()

    def set_hover(self, query: int, key: int) -> None:
        """Show where the pointer is elsewhere; -1 for none. Emits nothing."""
        if (query, key) != self._outer:
            self._outer = (query, key)
            self.update()

    def set_colour_map(self, table: ColourTable) -> None:
        """What weights are coloured by."""
        if table is not self._table:
            self._table = table
            self._images.clear()
            self.update()

    def set_space(self, size: QSize) -> None:
        """How much room there is, before it has to be scrolled."""
        if size != self._space:
            self._space = size
            self._lay_out()

    # what is shown

    @property
    def told(self) -> Place | None:
        """The number that is told of: the one under the pointer, else the chosen one."""
        return self._hover or self._place

    @property
    def lit(self) -> tuple[Lit, ...]:
        """What it was made of."""
        return () if self._scene is None or self.told is None else self._scene.made_of(self.told)

    @property
    def token_size(self) -> float:
        """Pixels that a token takes; 0 while there is nothing."""
        return 0.0 if self._layout is None else self._layout.token

    @property
    def has_numbers(self) -> bool:
        """Whether numbers stand in the cells."""
        return self._layout is not None and all(self._layout.has_numbers(name) for name in NAMES)

    @property
    def is_fitted(self) -> bool:
        return self._token is None

    def cell_rect(self, place: Place) -> QRectF:
        """Where a number lies."""
        return QRectF() if self._layout is None else self._layout.cell(place)

    # zoom

    def fit(self) -> None:
        """Cells as large as the room allows."""
        self._zoom_to(None)

    def show_numbers(self) -> None:
        """Cells so large that numbers stand in them."""
        if self._layout is not None:
            self._zoom_to(float(round(max(self._layout.room.number + 4, self.token_size))))

    def zoom_by(self, factor: float) -> None:
        """Cells larger or smaller by a factor, by a pixel at least."""
        wanted = self.token_size * factor
        wanted = max(wanted, self.token_size + 1) if factor > 1 else min(wanted, self.token_size - 1)
        self._zoom_to(float(round(min(LARGEST, max(SMALLEST, wanted)))))

    def show_told(self) -> None:
        """Scroll the chosen number into sight."""
        if self._place is not None:
            self._keep_visible(self.cell_rect(self._place).adjusted(-8, -8, 8, 8))

    def _zoom_to(self, token: float | None) -> None:
        if self._scene is None or token == self._token:
            return
        self._token = token
        self._lay_out()
        self.show_told()
        self.zoomed.emit()

    # geometry

    def sizeHint(self) -> QSize:
        if self._layout is None:
            return QSize(400, 300)
        return QSize(round(self._layout.size.width()), round(self._layout.size.height()))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint() if self._layout is not None else QSize(120, 80)

    def _fonts(self) -> _Fonts:
        metrics = QFontMetricsF(self.bold_font())
        return _Fonts(metrics.height(), metrics.averageCharWidth())

    def _room(self, scene: Scene) -> Room:
        fonts, metrics = self._fonts(), QFontMetricsF(self.bold_font())
        widest = max(metrics.horizontalAdvance(label) for label in (*scene.queries, *scene.keys))
        label = min(widest, 9 * fonts.letter)
        words = max((metrics.horizontalAdvance(word) for word in ("softmax", *scene.scaling.split())), default=0.0)
        number = max(WITH_NUMBERS, QFontMetricsF(self._number_font()).horizontalAdvance(_WIDEST) + 6)
        caption = metrics.horizontalAdvance("weights 64 × 64  ±88.88") + CAPTION_REST
        return Room(label + 8, label * _SLANT + fonts.line, fonts.line + 4, words + 16, 8.0, number, caption)

    def _number_font(self) -> QFont:
        return smaller(self.font(), 0.85)

    def _lay_out(self) -> None:
        scene = self._scene
        if scene is None:
            self._layout = None
            self.setMinimumSize(0, 0)
        else:
            room = self._room(scene)
            fitted = Layout.fitted(scene, room, self._space.width(), self._space.height())
            bands = fitted.bands if self._token is None or self._token < room.number else BANDS[0]
            layout = fitted if self._token is None else Layout.at(scene, room, self._token, bands)
            self._layout = layout.centred(self._space.width(), self._space.height())
            self.setMinimumSize(self.sizeHint())
        self.updateGeometry()
        self.update()

    def _look_changed(self) -> None:
        self._images.clear()
        self._lay_out()
        super()._look_changed()

    def _exists(self, place: Place) -> bool:
        if self._scene is None:
            return False
        rows, columns = self._scene.matrices[place.name].values.shape
        return place.row in range(rows) and place.column in range(columns)

    def _dimension(self, place: Place) -> int:
        return max(0, self._scene.dimension(place)) if self._scene is not None else 0

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        scene, layout = self._scene, self._layout
        if scene is None or layout is None:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        look = (self._theme, self.font(), self._number_font(), scene, layout)
        artist = MatricesPainter(*look, self._table, self._images, self.width())
        names = MatricesLabels(*look, QRectF(self.visibleRegion().boundingRect()), self._shown_cell)
        for name in NAMES:
            artist.draw_matrix(painter, scene.matrices[name], QRectF(event.rect()))
            artist.draw_caption(painter, scene.matrices[name])
            names.draw(painter, name)
        artist.draw_steps(painter)
        artist.draw_lit(painter, self.told)
        self._draw_focus_ring(painter)

    @property
    def _shown_cell(self) -> tuple[int, int]:
        """The query and the key whose names are in the accents."""
        if self._scene is not None and self._hover is not None:
            return self._scene.cell(self._hover)
        return self._outer if self._outer != (-1, -1) else self._selection

    # pointer and keyboard

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self._at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point_at(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position())
        if place is None or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._choose(place)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self._scene is None or not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # the page scrolls
            return
        self.zoom_by(_STEP if event.angleDelta().y() > 0 else 1 / _STEP)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if self._scene is None or self._place is None:
            event.ignore()
        elif key in _ARROWS:
            down, right = _ARROWS[key]
            self._go(Place(self._place.name, self._place.row + down, self._place.column + right))
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self._go(self._beside(self._place, 1 if key == Qt.Key.Key_PageDown else -1))
        elif key in _CHOOSES:
            self._choose(self._place)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(_STEP)
        elif key == Qt.Key.Key_Minus:
            self.zoom_by(1 / _STEP)
        elif key == Qt.Key.Key_0:
            self.fit()
        else:
            event.ignore()

    def _beside(self, place: Place, step: int) -> Place:
        """The number of the next matrix for the same tokens, as far as they are the same."""
        names = NAMES[max(0, min(len(NAMES) - 1, NAMES.index(place.name) + step))]
        at = {"query": self._selection[0], "key": self._selection[1], "dim": self._dimension(place)}
        at |= dict(zip(SIDES[place.name], (place.row, place.column), strict=True))
        return Place(names, *(max(0, at[side]) for side in SIDES[names]))

    def _go(self, place: Place) -> None:
        if self._exists(place):
            self._choose(place)
            self._keep_visible(self.cell_rect(place).adjusted(-40, -40, 40, 40))

    def _choose(self, place: Place) -> None:
        self._place = place
        if self._scene is not None:
            cell = self._scene.cell(place)
            query, key = (new if new >= 0 else old for new, old in zip(cell, self._selection, strict=True))
            if (query, key) != self._selection:
                self._selection = (query, key)
                self.cell_selected.emit(query, key)
        self.update()
        self.place_changed.emit()

    def _point_at(self, place: Place | None) -> None:
        if place == self._hover:
            return
        self._hover = place
        self.hovered.emit(*((-1, -1) if place is None or self._scene is None else self._scene.cell(place)))
        self.update()
        self.place_changed.emit()

    def _at(self, position: QPointF) -> Place | None:
        place = None if self._layout is None else self._layout.place_at(position.x(), position.y())
        return place if place is not None and self._exists(place) else None
