"""The picture of attention as matrices, which a person walks through with pointer and keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, QSizeF, Qt, Signal
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

from attention_explorer.look.colour_maps import ColourTable, diverging, sequential
from attention_explorer.look.text_size import smaller, wide
from attention_explorer.look.theme import Theme
from attention_explorer.panels.flow.matrices_scene import (
    NAMES,
    SIDES,
    TITLES,
    Lit,
    Matrix,
    Name,
    Place,
    Scene,
    cell_text,
)
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.themed import ThemedWidget

# Where the matrices lie: rows of a query token at one height, K^T above the scores, V above the output. Pure geometry.
# They stand side by side where there is room, else in two or three bands under each other.


Bands = tuple[tuple[Name, ...], ...]

BANDS: tuple[Bands, ...] = (
    (("q", "raw", "scaled", "masked", "weights", "output"),),
    (("q", "raw", "scaled"), ("masked", "weights", "output")),
    (("q", "raw"), ("scaled", "masked"), ("weights", "output")),
)
"""From the widest to the tallest: what stands in each band, from left to right."""

ABOVE: dict[Name, Name] = {"raw": "k", "output": "v"}
"""What stands above a matrix, and shares its columns."""

WITH_NUMBERS = 40.0
"""Pixels that a cell takes at least from which on its number stands in it; more where letters are larger."""

SMALLEST, LARGEST_FITTED, LARGEST = 3.0, 30.0, 96.0
"""Pixels that a token takes: the least, the most before anybody zooms, the most."""

_LEAST, _SCROLLED = 112.0, 12.0  # where all tokens take less they are made larger, and the page scrolls up and down
_SMALLEST_DIM = 2.0
_VECTOR = 0.75  # of what the tokens take


@dataclass(frozen=True)
class Room:
    """Pixels that go to everything but the cells."""

    row_label: float  # left of a band, and left of V
    column_label: float  # above a matrix over keys
    caption: float  # above each
    gap: float  # between two, for what happens there
    margin: float
    number: float = WITH_NUMBERS  # what a cell takes at least to hold a number
    caption_width: float = 0.0  # of the widest caption: as far apart are matrices where there is room


@dataclass(frozen=True)
class Layout:
    """Where each matrix lies, and how large a cell is along tokens and along the dimensions of a vector."""

    rects: dict[Name, QRectF]
    bands: Bands
    token: float
    dim: float
    size: QSizeF
    room: Room

    @classmethod
    def fitted(cls, scene: Scene, room: Room, width: float, height: float) -> Layout:
        """With cells as large as the room allows; where they would be tiny, taller than the room."""
        layouts = [_largest(scene, room, bands, width, height) for bands in BANDS]
        best = max(layouts, key=lambda layout: (layout.fits(width, height), layout.token))  # of equals the widest
        tokens = max(len(scene.queries), len(scene.keys), 14)
        if best.fits(width, height) and best.token * tokens >= _LEAST:
            return best.spread(scene, width)
        by_width = [_largest(scene, room, bands, width, float("inf"), _SCROLLED) for bands in BANDS]
        many = tokens * (_SCROLLED - 2) > 2 * _LEAST  # even small cells make large matrices
        least = 1.5 * _LEAST / tokens if many else _SCROLLED - 2
        large = [layout for layout in by_width if layout.fits(width, float("inf")) and layout.token >= least]
        chosen = large[0] if large else max(by_width, key=lambda layout: layout.token)
        while chosen.token > max(least, SMALLEST + 1) and chosen.band_height > height:  # each band can be seen whole
            chosen = cls.at(scene, room, chosen.token - 1, chosen.bands)
        return chosen.spread(scene, width)

    @classmethod
    def at(cls, scene: Scene, room: Room, token: float, bands: Bands) -> Layout:
        """With cells of `token` pixels along tokens."""
        dim, rects = _dim(scene, token, room.number), dict[Name, QRectF]()
        y, widest = room.margin, 0.0

        def size(name: Name) -> QSizeF:
            rows, columns = scene.matrices[name].values.shape
            sides = SIDES[name]
            return QSizeF(columns * (dim if sides[1] == "dim" else token), rows * (dim if sides[0] == "dim" else token))

        for band in bands:
            lead = max(_lead(name, size(ABOVE[name]).height() if name in ABOVE else 0.0, room) for name in band)
            x = room.margin + room.row_label
            for name in band:
                x += room.row_label if name == "output" else 0.0  # V has its keys' names at its left
                rects[name] = QRectF(x, y + lead, size(name).width(), size(name).height())
                if name in ABOVE:
                    above = size(ABOVE[name])
                    top = y + lead - room.caption - above.height()
                    rects[ABOVE[name]] = QRectF(x, top, above.width(), above.height())
                x += size(name).width() + room.gap
            widest = max(widest, x - room.gap + room.column_label / 2)  # the last slanted label
            y += lead + len(scene.queries) * token + room.margin
        return cls(rects, bands, token, dim, QSizeF(widest + room.margin, y), room)

    def spread(self, scene: Scene, width: float) -> Layout:
        """With what is left of the width between the matrices, as far as captions have use for it."""
        gaps = max(len(band) for band in self.bands) - 1
        narrowest = min(self.rects[name].width() for name in self.rects)
        wanted = self.room.caption_width - narrowest - self.room.gap
        more = min((width - self.size.width()) / max(gaps, 1), wanted)
        if more < 1:
            return self
        room = replace(self.room, gap=self.room.gap + int(more))
        return Layout.at(scene, room, self.token, self.bands)

    @property
    def band_height(self) -> float:
        """Of the tallest band."""
        ends = [self.rects[band[0]].bottom() + self.room.margin for band in self.bands]
        return max(end - start for start, end in zip((0.0, *ends), ends, strict=False))

    def fits(self, width: float, height: float) -> bool:
        return self.size.width() <= width and self.size.height() <= height

    def centred(self, width: float, height: float) -> Layout:
        """In the middle of a larger room, and as large as that."""
        size = QSizeF(max(width, self.size.width()), max(height, self.size.height()))
        right, down = (size.width() - self.size.width()) / 2, (size.height() - self.size.height()) / 2
        rects = {name: rect.translated(right, down) for name, rect in self.rects.items()}
        return replace(self, rects=rects, size=size)

    def cell_size(self, name: Name) -> QSizeF:
        rows, columns = SIDES[name]
        return QSizeF(self.dim if columns == "dim" else self.token, self.dim if rows == "dim" else self.token)

    def cell(self, place: Place) -> QRectF:
        """Where a number lies."""
        rect, size = self.rects[place.name], self.cell_size(place.name)
        left, top = rect.left() + place.column * size.width(), rect.top() + place.row * size.height()
        return QRectF(left, top, size.width(), size.height())

    def place_at(self, x: float, y: float) -> Place | None:
        """The number under a point."""
        for name, rect in self.rects.items():
            if rect.left() <= x < rect.right() and rect.top() <= y < rect.bottom():
                size = self.cell_size(name)
                return Place(name, int((y - rect.top()) / size.height()), int((x - rect.left()) / size.width()))
        return None

    def begins_band(self, name: Name) -> bool:
        return any(band[0] == name for band in self.bands)

    def is_topmost(self, name: Name) -> bool:
        """Whether nothing stands above it, so that it has the names of its columns there."""
        return name not in ABOVE

    def has_numbers(self, name: Name) -> bool:
        """Whether there is room for a number in each of its cells."""
        size = self.cell_size(name)
        return min(size.width(), size.height()) >= self.room.number


def _lead(name: Name, above: float, room: Room) -> float:
    """From the top of a band to a matrix of it, under which another of a height of `above` may stand."""
    labels = room.column_label if name not in ("q", "output") else 0.0
    return labels + room.caption + (above + room.caption if above else 0.0)


def _dim(scene: Scene, token: float, number: float) -> float:
    """A vector takes less room than the tokens do, until numbers are to be read in it."""
    if token >= number:
        return token
    dims = max(scene.view.q.shape[1], scene.view.v.shape[1])
    return max(_SMALLEST_DIM, min(token, float(int(_VECTOR * token * max(len(scene.keys), 8) / dims))))


def _largest(
    scene: Scene, room: Room, bands: Bands, width: float, height: float, most: float = LARGEST_FITTED
) -> Layout:
    """With the largest whole number of pixels with which it fits; `SMALLEST` where none does."""
    token = most
    while True:
        layout = Layout.at(scene, room, token, bands)
        if token <= SMALLEST or layout.fits(width, height):
            return layout
        token -= 1.0


@dataclass(frozen=True)
class Look:
    """Made anew for every paint."""

    theme: Theme
    font: QFont
    number_font: QFont  # of numbers in cells
    scene: Scene
    layout: Layout

    @property
    def bold(self) -> QFont:
        font = QFont(self.font)
        font.setBold(True)
        return font

    @property
    def line(self) -> float:
        """The height of a line of text."""
        return QFontMetricsF(self.bold).height()


_HATCH = 9.0
RAMP = 36.0
_BETWEEN = 16.0  # from a caption to the next
CAPTION_REST = RAMP + 14 + _BETWEEN
"""What a caption takes besides its letters."""
_PALE = 0.55  # the lightness from which on a cell is written on in black
_CENTRE = Qt.AlignmentFlag.AlignCenter
_BEFORE: dict[Name, str] = {"raw": "× Kᵀ", "masked": "mask", "weights": "softmax", "output": "× V"}


@dataclass(frozen=True)
class MatricesPainter(Look):
    """Draws everything but the names of tokens."""

    table: ColourTable  # of weights
    images: dict[Name, QImage]  # one pixel a cell; kept from paint to paint
    seen_width: float  # of the widget

    def draw_matrix(self, painter: QPainter, matrix: Matrix, dirty: QRectF) -> None:
        rect = self.layout.rects[matrix.name]
        if matrix.masked is not None and matrix.name in ("masked", "weights"):
            self._draw_hatching(painter, rect)
        painter.drawImage(rect, self._image(matrix))
        painter.setPen(QPen(QColor(self.theme.border_strong), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
        if self.layout.has_numbers(matrix.name):
            self._draw_numbers(painter, matrix, dirty.intersected(rect))

    def _image(self, matrix: Matrix) -> QImage:
        image = self.images.get(matrix.name)
        if image is None:
            table = self._colours(matrix)
            masked = matrix.masked if matrix.name in ("masked", "weights") else None
            codes = cell_image.encode(matrix.values.astype(np.float32), matrix.low, matrix.high, masked)
            image = cell_image.to_image(codes, cell_image.colours(table, matrix.low, matrix.high))
            self.images[matrix.name] = image
        return image

    def _colours(self, matrix: Matrix) -> ColourTable:
        return self.table if matrix.name == "weights" else diverging()

    def _draw_hatching(self, painter: QPainter, rect: QRectF) -> None:
        painter.save()
        painter.setClipRect(rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self.theme.hatch), 1.0))
        for step in range(1, int((rect.width() + rect.height()) / _HATCH) + 1):
            x = rect.left() + step * _HATCH
            painter.drawLine(QLineF(x, rect.top(), x - rect.height(), rect.bottom()))
        painter.restore()

    def _draw_numbers(self, painter: QPainter, matrix: Matrix, area: QRectF) -> None:
        if area.isEmpty():
            return
        rect, size = self.layout.rects[matrix.name], self.layout.cell_size(matrix.name)
        image = self._image(matrix)
        painter.setFont(self.number_font)
        first, last = area.topLeft() - rect.topLeft(), area.bottomRight() - rect.topLeft()
        rows, columns = matrix.values.shape
        for row in range(int(first.y() / size.height()), min(rows, int(last.y() / size.height()) + 1)):
            for column in range(int(first.x() / size.width()), min(columns, int(last.x() / size.width()) + 1)):
                place = Place(matrix.name, row, column)
                painter.setPen(self._ink_on(QColor(image.pixelColor(column, row))))
                painter.drawText(self.layout.cell(place), _CENTRE, cell_text(self.scene.number(place)))

    def _ink_on(self, colour: QColor) -> QColor:
        """What is read on a cell of this colour, which is transparent where the mask hides it."""
        if not colour.alpha():
            return QColor(self.theme.text_dim)
        return QColor("#101318" if colour.lightnessF() > _PALE else "#ffffff")

    def draw_caption(self, painter: QPainter, matrix: Matrix) -> None:
        """Its name, its size and what its colours reach to, as far as there is room."""
        rect, room = self.layout.rects[matrix.name], self.layout.room
        raised = room.column_label if SIDES[matrix.name][1] == "key" and self.layout.is_topmost(matrix.name) else 0.0
        width = min(rect.width() + room.gap - _BETWEEN, self.seen_width - rect.left())
        strip = QRectF(rect.left(), rect.top() - room.caption - raised, width, room.caption - 2)
        painter.setFont(self.bold)
        painter.setPen(QColor(self.theme.text))
        x = self._draw_part(painter, strip, 0.0, TITLES[matrix.name])
        painter.setFont(self.font)
        painter.setPen(QColor(self.theme.text_dim))
        x = self._draw_part(painter, strip, x, matrix.size)
        metrics = QFontMetricsF(self.font)
        if x + RAMP + 6 + metrics.horizontalAdvance(matrix.span) > strip.width():
            return
        ramp = cell_image.to_image(np.arange(256, dtype=np.uint8)[None], cell_image.packed(self._colours(matrix)))
        middle = strip.center().y()
        painter.drawImage(QRectF(strip.left() + x, middle - 4, RAMP, 8), ramp)
        self._draw_part(painter, strip, x + RAMP + 6, matrix.span)

    def _draw_part(self, painter: QPainter, strip: QRectF, x: float, text: str) -> float:
        """Draw `text` so far from the left where it has room; where the next part begins."""
        width = QFontMetricsF(painter.font()).horizontalAdvance(text)
        if x + width <= strip.width():
            painter.drawText(strip.adjusted(x, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)
        return x + width + 8

    def draw_steps(self, painter: QPainter) -> None:
        """What happens from each matrix to the next: an arrow and its name, in the gap or before a new band."""
        line = self.line
        for band in self.layout.bands:
            for before, name in zip((band[0], *band), band, strict=False):
                if name == "q":
                    continue
                text = self.scene.scaling if name == "scaled" else _BEFORE[name]
                text = "no mask" if name == "masked" and self.scene.view.masked is None else text
                rect, room = self.layout.rects[name], self.layout.room
                left = self.layout.rects[before].right()
                gap = QRectF(left, rect.top(), rect.left() - left, rect.height())
                gap.setWidth(gap.width() - (room.row_label if name == "output" else 0.0))  # names of V's keys
                if self.layout.begins_band(name):
                    before_it = QRectF(rect.left() - 206, rect.top() - line - 6, 200, line)
                    self._draw_step_text(painter, before_it, f"{text} →", Qt.AlignmentFlag.AlignRight)
                    continue
                y = min(gap.center().y(), gap.top() + 4 * line)
                self._draw_arrow(painter, gap.left() + 6, gap.right() - 6, y)
                over = QRectF(gap.left() + 2, y - 3.2 * line, gap.width() - 4, 3 * line)
                self._draw_step_text(painter, over, text, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom)

    def _draw_step_text(self, painter: QPainter, rect: QRectF, text: str, side: Qt.AlignmentFlag) -> None:
        painter.setFont(self.font)
        painter.setPen(QColor(self.theme.text_dim))
        painter.drawText(rect, side.value | Qt.TextFlag.TextWordWrap.value, text)

    def _draw_arrow(self, painter: QPainter, left: float, right: float, y: float) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self.theme.text_dim), wide(1.4)))
        painter.drawLine(QPointF(left, y), QPointF(right, y))
        for up in (-4, 4):
            painter.drawLine(QPointF(right, y), QPointF(right - 5, y + up))
        painter.restore()

    def draw_lit(self, painter: QPainter, told: Place | None) -> None:
        """The number that is told of, and the rows and columns that made it."""
        if told is None:
            return
        for part in self.scene.made_of(told):
            rect, size = QRectF(self.layout.rects[part.name]), self.layout.cell_size(part.name)
            if part.row is not None:
                rect.setTop(self.layout.rects[part.name].top() + part.row * size.height())
                rect.setHeight(size.height())
            if part.column is not None:
                rect.setLeft(self.layout.rects[part.name].left() + part.column * size.width())
                rect.setWidth(size.width())
            is_row = part.column is None
            self._draw_frame(painter, rect, self.theme.query if is_row else self.theme.key)
        self._draw_frame(painter, self.layout.cell(told), self.theme.text)

    def _draw_frame(self, painter: QPainter, rect: QRectF, colour: str) -> None:
        painter.save()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for line, width, outset in ((self.theme.surface, 1.5, 3.0), (colour, 2.0, 1.0)):
            painter.setPen(QPen(QColor(line), wide(width), j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(rect.adjusted(-outset, -outset, outset, outset))
        painter.restore()


_ANGLE = -45.0


@dataclass(frozen=True)
class MatricesLabels(Look):
    """Those of `cell`, a query and a key, are bold and in the accents."""

    seen: QRectF  # what of the widget is in sight
    cell: tuple[int, int]

    def draw(self, painter: QPainter, name: Name) -> None:
        """Token names beside a matrix, or, where these are scrolled out of sight, at the edge of what shows of it."""
        rows, columns = SIDES[name]
        rect, seen = self.layout.rects[name], self.seen
        shown = rect.intersected(seen)
        if rows != "dim":
            beside = self.layout.begins_band(name) or name == "v"
            inside = shown.left() > rect.left() and not shown.isEmpty()
            if beside or inside:
                self._draw_row_labels(painter, name, shown.left() if inside else None)
        if columns == "key":
            above, inside = self.layout.is_topmost(name), shown.top() > rect.top() and not shown.isEmpty()
            if inside:
                self._draw_column_labels_inside(painter, shown)
            elif above:
                self._draw_column_labels(painter, name)

    def _draw_row_labels(self, painter: QPainter, name: Name, inside: float | None) -> None:
        """`inside` is where what shows of the matrix begins, where its names have to stand upon it."""
        side = SIDES[name][0]
        labels, chosen = (self.scene.queries, self.cell[0]) if side == "query" else (self.scene.keys, self.cell[1])
        rect, width, line = self.layout.rects[name], self.layout.room.row_label - 8, self.line
        for row in _thinned(len(labels), self.layout.token, line * 0.95, chosen):
            middle = rect.top() + (row + 0.5) * self.layout.token
            place = QRectF(rect.left() - width - 6, middle - line / 2, width, line)
            if inside is not None:
                place = self._draw_plate(painter, QPointF(inside + 2, middle), labels[row], width)
            self._take_pen(painter, row == chosen, side == "query")
            text = painter.fontMetrics().elidedText(labels[row], Qt.TextElideMode.ElideMiddle, ceil(width) + 1)
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)

    def _draw_plate(self, painter: QPainter, left: QPointF, label: str, most: float) -> QRectF:
        """What a name stands on that lies upon cells; where it is to be written."""
        width = min(most, QFontMetricsF(self.bold).horizontalAdvance(label))
        plate = QRectF(left.x(), left.y() - self.line / 2, width + 8, self.line)
        painter.fillRect(plate, QColor(self.theme.surface))
        return plate.adjusted(4, 0, -4, 0)

    def _draw_column_labels_inside(self, painter: QPainter, shown: QRectF) -> None:
        chosen, line, size = self.cell[1], self.line, self.layout.token
        rect = next(r for n, r in self.layout.rects.items() if SIDES[n][1] == "key" and r.contains(shown.center()))
        if size < self.layout.room.number:
            return  # names do not fit side by side
        for column, label in enumerate(self.scene.keys):
            x = rect.left() + column * size
            if x >= shown.left() - size and x < shown.right():
                painter.fillRect(QRectF(x + 1, shown.top() + 1, size - 2, line), QColor(self.theme.surface))
                self._take_pen(painter, column == chosen, is_query=False)
                text = painter.fontMetrics().elidedText(label, Qt.TextElideMode.ElideMiddle, round(size - 4))
                painter.drawText(QRectF(x, shown.top() + 1, size, line), _CENTRE, text)

    def _draw_column_labels(self, painter: QPainter, name: Name) -> None:
        rect, line, chosen = self.layout.rects[name], self.line, self.cell[1]
        width = self.layout.room.row_label - 8
        for column in _thinned(len(self.scene.keys), self.layout.token, line, chosen):
            painter.save()
            self._take_pen(painter, column == chosen, is_query=False)
            text = painter.fontMetrics().elidedText(
                self.scene.keys[column], Qt.TextElideMode.ElideMiddle, ceil(width) + 1
            )
            painter.translate(
                rect.left() + (column + 0.5) * self.layout.token + line * 0.2, rect.top() - line * 0.2 - 3
            )
            painter.rotate(_ANGLE)
            painter.drawText(QRectF(0, -line / 2, width + 4, line), Qt.AlignmentFlag.AlignVCenter, text)
            painter.restore()

    def _take_pen(self, painter: QPainter, accented: bool, is_query: bool) -> None:
        painter.setFont(self.bold if accented else self.font)
        accent = self.theme.query if is_query else self.theme.key
        painter.setPen(QColor(accent if accented else self.theme.text))


def _thinned(count: int, size: float, spacing: float, chosen: int) -> list[int]:
    """Which of `count` labels there is room for, the chosen one in any case."""
    step = 1
    while step * size < spacing:
        step += 1
    kept = [i for i in range(0, count, step) if i == chosen or abs(i - chosen) * size >= spacing or chosen < 0]
    return kept if not 0 <= chosen < count or chosen in kept else [*kept, chosen]


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
