"""The picture of attention as matrices, which a person walks through with pointer and keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from explorer.colour_maps import ColourTable, diverging, sequential
from explorer.panels.flow.matrices_layout import BANDS, LARGEST, SMALLEST, WITH_NUMBERS, Layout, Room
from explorer.panels.flow.matrices_scene import NAMES, SIDES, TITLES, Lit, Matrix, Name, Place, Scene, cell_text
from explorer.widgets import cell_image
from explorer.widgets.themed import ThemedWidget

_STEP = 1.25
_HATCH = 9.0
_RAMP = 36.0
_WIDEST = "−88.8"
_ARROWS = {
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
}
_CHOOSES = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_CENTRE = Qt.AlignmentFlag.AlignCenter
_ANGLE = -45.0
_SLANT = 0.71
_BEFORE: dict[Name, str] = {"raw": "× Kᵀ", "masked": "mask", "weights": "softmax", "output": "× V"}


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
        return Room(label + 8, label * _SLANT + fonts.line, fonts.line + 4, words + 16, 8.0, number)

    def _number_font(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.85)
        return font

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
        for name in NAMES:
            self._draw_matrix(painter, scene.matrices[name], layout, QRectF(event.rect()))
            self._draw_caption(painter, scene.matrices[name], layout)
            self._draw_labels(painter, scene, name, layout)
        self._draw_steps(painter, scene, layout)
        self._draw_lit(painter, layout)
        self._draw_focus_ring(painter)

    def _draw_matrix(self, painter: QPainter, matrix: Matrix, layout: Layout, dirty: QRectF) -> None:
        rect = layout.rects[matrix.name]
        if matrix.masked is not None and matrix.name in ("masked", "weights"):
            self._draw_hatching(painter, rect)
        painter.drawImage(rect, self._image(matrix))
        painter.setPen(QPen(QColor(self._theme.border_strong), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
        if layout.has_numbers(matrix.name):
            self._draw_numbers(painter, matrix, layout, dirty.intersected(rect))

    def _image(self, matrix: Matrix) -> QImage:
        image = self._images.get(matrix.name)
        if image is None:
            table = self._colours(matrix)
            masked = matrix.masked if matrix.name in ("masked", "weights") else None
            codes = cell_image.encode(matrix.values.astype(np.float32), matrix.low, matrix.high, masked)
            image = cell_image.to_image(codes, cell_image.colours(table, matrix.low, matrix.high))
            self._images[matrix.name] = image
        return image

    def _colours(self, matrix: Matrix) -> ColourTable:
        return self._table if matrix.name == "weights" else diverging()

    def _draw_hatching(self, painter: QPainter, rect: QRectF) -> None:
        painter.save()
        painter.setClipRect(rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theme.hatch), 1.0))
        for step in range(1, int((rect.width() + rect.height()) / _HATCH) + 1):
            x = rect.left() + step * _HATCH
            painter.drawLine(QLineF(x, rect.top(), x - rect.height(), rect.bottom()))
        painter.restore()

    def _draw_numbers(self, painter: QPainter, matrix: Matrix, layout: Layout, area: QRectF) -> None:
        if area.isEmpty() or self._scene is None:
            return
        rect, size, image = layout.rects[matrix.name], layout.cell_size(matrix.name), self._image(matrix)
        painter.setFont(self._number_font())
        first, last = area.topLeft() - rect.topLeft(), area.bottomRight() - rect.topLeft()
        rows, columns = matrix.values.shape
        for row in range(int(first.y() / size.height()), min(rows, int(last.y() / size.height()) + 1)):
            for column in range(int(first.x() / size.width()), min(columns, int(last.x() / size.width()) + 1)):
                place = Place(matrix.name, row, column)
                number = self._scene.number(place)
                colour = QColor(image.pixelColor(column, row))
                is_pale = colour.alpha() > 0 and colour.lightnessF() > 0.55
                painter.setPen(QColor("#101318" if is_pale else "#ffffff") if colour.alpha() else self._dim_colour())
                painter.drawText(layout.cell(place), _CENTRE, cell_text(number))

    def _dim_colour(self) -> QColor:
        return QColor(self._theme.text_dim)

    def _draw_caption(self, painter: QPainter, matrix: Matrix, layout: Layout) -> None:
        """Its name, its size and what its colours reach to, as far as there is room."""
        rect, room = layout.rects[matrix.name], layout.room
        raised = room.column_label if SIDES[matrix.name][1] == "key" and layout.is_topmost(matrix.name) else 0.0
        width = min(rect.width() + room.gap - 6, self.width() - rect.left())
        strip = QRectF(rect.left(), rect.top() - room.caption - raised, width, room.caption - 2)
        painter.setFont(self.bold_font())
        painter.setPen(QColor(self._theme.text))
        x = self._draw_part(painter, strip, 0.0, TITLES[matrix.name])
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text_dim))
        x = self._draw_part(painter, strip, x, matrix.size)
        metrics = QFontMetricsF(self.font())
        if x + _RAMP + 6 + metrics.horizontalAdvance(matrix.span) > strip.width():
            return
        ramp = cell_image.to_image(np.arange(256, dtype=np.uint8)[None], cell_image.packed(self._colours(matrix)))
        middle = strip.center().y()
        painter.drawImage(QRectF(strip.left() + x, middle - 4, _RAMP, 8), ramp)
        self._draw_part(painter, strip, x + _RAMP + 6, matrix.span)

    def _draw_part(self, painter: QPainter, strip: QRectF, x: float, text: str) -> float:
        """Draw `text` so far from the left where it has room; where the next part begins."""
        width = QFontMetricsF(painter.font()).horizontalAdvance(text)
        if x + width <= strip.width():
            painter.drawText(strip.adjusted(x, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)
        return x + width + 8

    def _draw_labels(self, painter: QPainter, scene: Scene, name: Name, layout: Layout) -> None:
        """Token names beside a matrix, or, where these are scrolled out of sight, at the edge of what shows of it."""
        rows, columns = SIDES[name]
        rect, seen = layout.rects[name], QRectF(self.visibleRegion().boundingRect())
        shown = rect.intersected(seen)
        if rows != "dim":
            beside = layout.begins_band(name) or name == "v"
            inside = shown.left() > rect.left() and not shown.isEmpty()
            if beside or inside:
                self._draw_row_labels(painter, scene, name, layout, shown.left() if inside else None)
        if columns == "key":
            above, inside = layout.is_topmost(name), shown.top() > rect.top() and not shown.isEmpty()
            if inside:
                self._draw_column_labels_inside(painter, scene, layout, shown)
            elif above:
                self._draw_column_labels(painter, scene, name, layout)

    def _draw_row_labels(
        self, painter: QPainter, scene: Scene, name: Name, layout: Layout, inside: float | None
    ) -> None:
        """`inside` is where what shows of the matrix begins, where its names have to stand upon it."""
        side = SIDES[name][0]
        labels, chosen = (scene.queries, self._shown_cell[0]) if side == "query" else (scene.keys, self._shown_cell[1])
        rect, width, line = layout.rects[name], layout.room.row_label - 8, self._fonts().line
        for row in _thinned(len(labels), layout.token, line * 0.95, chosen):
            middle = rect.top() + (row + 0.5) * layout.token
            place = QRectF(rect.left() - width - 6, middle - line / 2, width, line)
            if inside is not None:
                place = self._draw_plate(painter, QPointF(inside + 2, middle), labels[row], width)
            self._take_pen(painter, row == chosen, side == "query")
            text = painter.fontMetrics().elidedText(labels[row], Qt.TextElideMode.ElideMiddle, round(width))
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)

    def _draw_plate(self, painter: QPainter, left: QPointF, label: str, most: float) -> QRectF:
        """What a name stands on that lies upon cells; where it is to be written."""
        width = min(most, QFontMetricsF(self.bold_font()).horizontalAdvance(label))
        plate = QRectF(left.x(), left.y() - self._fonts().line / 2, width + 8, self._fonts().line)
        painter.fillRect(plate, QColor(self._theme.surface))
        return plate.adjusted(4, 0, -4, 0)

    def _draw_column_labels_inside(self, painter: QPainter, scene: Scene, layout: Layout, shown: QRectF) -> None:
        chosen, line, size = self._shown_cell[1], self._fonts().line, layout.token
        rect = next(r for n, r in layout.rects.items() if SIDES[n][1] == "key" and r.contains(shown.center()))
        if size < layout.room.number:
            return  # names do not fit side by side
        for column, label in enumerate(scene.keys):
            x = rect.left() + column * size
            if x >= shown.left() - size and x < shown.right():
                painter.fillRect(QRectF(x + 1, shown.top() + 1, size - 2, line), QColor(self._theme.surface))
                self._take_pen(painter, column == chosen, is_query=False)
                text = painter.fontMetrics().elidedText(label, Qt.TextElideMode.ElideMiddle, round(size - 4))
                painter.drawText(QRectF(x, shown.top() + 1, size, line), _CENTRE, text)

    def _draw_column_labels(self, painter: QPainter, scene: Scene, name: Name, layout: Layout) -> None:
        rect, line, chosen = layout.rects[name], self._fonts().line, self._shown_cell[1]
        width = layout.room.row_label - 8
        for column in _thinned(len(scene.keys), layout.token, line, chosen):
            painter.save()
            self._take_pen(painter, column == chosen, is_query=False)
            text = painter.fontMetrics().elidedText(scene.keys[column], Qt.TextElideMode.ElideMiddle, round(width))
            painter.translate(rect.left() + (column + 0.5) * layout.token + line * 0.2, rect.top() - line * 0.2 - 3)
            painter.rotate(_ANGLE)
            painter.drawText(QRectF(0, -line / 2, width + 4, line), Qt.AlignmentFlag.AlignVCenter, text)
            painter.restore()

    @property
    def _shown_cell(self) -> tuple[int, int]:
        """The query and the key whose names are in the accents."""
        if self._scene is not None and self._hover is not None:
            return self._scene.cell(self._hover)
        return self._outer if self._outer != (-1, -1) else self._selection

    def _take_pen(self, painter: QPainter, accented: bool, is_query: bool) -> None:
        painter.setFont(self.bold_font() if accented else self.font())
        accent = self._theme.query if is_query else self._theme.key
        painter.setPen(QColor(accent if accented else self._theme.text))

    def _draw_steps(self, painter: QPainter, scene: Scene, layout: Layout) -> None:
        """What happens from each matrix to the next: an arrow and its name, in the gap or before a new band."""
        line = self._fonts().line
        for band in layout.bands:
            for before, name in zip((band[0], *band), band, strict=False):
                if name == "q":
                    continue
                text = scene.scaling if name == "scaled" else _BEFORE[name]
                text = "no mask" if name == "masked" and scene.view.masked is None else text
                rect, room = layout.rects[name], layout.room
                left = layout.rects[before].right()
                gap = QRectF(left, rect.top(), rect.left() - left, rect.height())
                gap.setWidth(gap.width() - (room.row_label if name == "output" else 0.0))  # names of V's keys
                if layout.begins_band(name):
                    before_it = QRectF(rect.left() - 206, rect.top() - line - 6, 200, line)
                    self._draw_step_text(painter, before_it, f"{text} →", Qt.AlignmentFlag.AlignRight)
                    continue
                y = min(gap.center().y(), gap.top() + 4 * line)
                self._draw_arrow(painter, gap.left() + 6, gap.right() - 6, y)
                over = QRectF(gap.left() + 2, y - 3.2 * line, gap.width() - 4, 3 * line)
                self._draw_step_text(painter, over, text, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom)

    def _draw_step_text(self, painter: QPainter, rect: QRectF, text: str, side: Qt.AlignmentFlag) -> None:
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text_dim))
        painter.drawText(rect, side.value | Qt.TextFlag.TextWordWrap.value, text)

    def _draw_arrow(self, painter: QPainter, left: float, right: float, y: float) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theme.text_dim), 1.4))
        painter.drawLine(QPointF(left, y), QPointF(right, y))
        for up in (-4, 4):
            painter.drawLine(QPointF(right, y), QPointF(right - 5, y + up))
        painter.restore()

    def _draw_lit(self, painter: QPainter, layout: Layout) -> None:
        """The number that is told of, and the rows and columns that made it."""
        told = self.told
        if told is None:
            return
        for part in self.lit:
            rect, size = QRectF(layout.rects[part.name]), layout.cell_size(part.name)
            if part.row is not None:
                rect.setTop(layout.rects[part.name].top() + part.row * size.height())
                rect.setHeight(size.height())
            if part.column is not None:
                rect.setLeft(layout.rects[part.name].left() + part.column * size.width())
                rect.setWidth(size.width())
            is_row = part.column is None
            self._draw_frame(painter, rect, self._theme.query if is_row else self._theme.key)
        self._draw_frame(painter, layout.cell(told), self._theme.text)

    def _draw_frame(self, painter: QPainter, rect: QRectF, colour: str) -> None:
        painter.save()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for line, width, outset in ((self._theme.surface, 1.5, 3.0), (colour, 2.0, 1.0)):
            painter.setPen(QPen(QColor(line), width, j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(rect.adjusted(-outset, -outset, outset, outset))
        painter.restore()

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


def _thinned(count: int, size: float, spacing: float, chosen: int) -> list[int]:
    """Which of `count` labels there is room for, the chosen one in any case."""
    step = 1
    while step * size < spacing:
        step += 1
    kept = [i for i in range(0, count, step) if i == chosen or abs(i - chosen) * size >= spacing or chosen < 0]
    return kept if not 0 <= chosen < count or chosen in kept else [*kept, chosen]
