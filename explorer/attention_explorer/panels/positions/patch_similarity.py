"""A grid of small maps, one a patch of a picture, each in its patch's place: how alike the patch and all others are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.colour_maps import ColourTable, sequential
from attention_explorer.look.text_size import wide
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.themed import ThemedWidget

_GAP = 0.12  # of a map's side, between two maps
_LARGEST = 460.0  # pixels of the whole grid's longer side
_MOVES = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}

Patch = tuple[int, int]  # row, column
_NOWHERE = (-1, -1)


class PatchSimilarity(ThemedWidget):
    """A click or the arrow keys select a patch; the line above says what is under the pointer."""

    patch_selected = Signal(int)  # row * columns + column
    hovered = Signal(int, int)  # the patch whose map it is, and the one in it; -1, -1 when the pointer leaves

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("How alike the positions of patches are", parent)
        self.setMouseTracking(True)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._alike: NDArray[np.float32] | None = None  # (rows, columns, rows, columns)
        self._table = sequential()
        self._range = (-1.0, 1.0)
        self._query, self._key = _NOWHERE, _NOWHERE
        self._hover: tuple[Patch, Patch] | None = None
        self._picture: QPixmap | None = None

    def set_values(self, alike: NDArray[np.float32] | None, low: float, high: float, table: ColourTable) -> None:
        """alike: (rows, columns, rows, columns), the map of each patch, coloured from low to high; None for none."""
        self._alike, self._range, self._table = alike, (low, high), table
        self._picture, self._hover = None, None
        self.updateGeometry()
        self.update()

    def set_selection(self, query: int, key: int) -> None:
        """Frame the map of patch `query`, and in it patch `key`; -1 for a token that is no patch. Emits nothing."""
        found = self._patch(query), self._patch(key)
        if found != (self._query, self._key):
            self._query, self._key = found
            self.setAccessibleDescription(self.readout())
            self.update()

    def readout(self) -> str:
        """The sentence about what is under the pointer, else about what is selected."""
        patch, other = self._hover or (self._query, self._key)
        if self._alike is None or patch == _NOWHERE:
            return "" if self._alike is None else "Choose a patch."
        if other == _NOWHERE:
            return f"{_named(patch)}: its map is framed"
        return f"{_named(patch)} and {_named(other)}: {value_text(float(self._alike[*patch, *other]))}"

    def map_rect(self, patch: int) -> QRectF:
        """Where the map of a patch lies."""
        return self._map_rect(self._patch(patch))

    def _patch(self, number: int) -> Patch:
        if self._alike is None:
            return _NOWHERE
        rows, columns = self._alike.shape[:2]
        return divmod(number, columns) if 0 <= number < rows * columns else _NOWHERE

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(360, self.heightForWidth(360))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(200))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if self._alike is None:
            return round(3 * self._line())
        return round(self._grid(float(width)).bottom()) + 3

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height() + 6

    def _grid(self, width: float) -> QRectF:
        assert self._alike is not None
        rows, columns = self._alike.shape[:2]
        side = min((width - 6) / columns, _LARGEST / max(rows, columns))
        return QRectF(3, self._line() + 3, side * columns, side * rows)

    def _map_rect(self, patch: Patch) -> QRectF:
        if self._alike is None or patch == _NOWHERE:
            return QRectF()
        grid, side = self._grid(self.width()), self._grid(self.width()).width() / self._alike.shape[1]
        left, top = grid.left() + patch[1] * side, grid.top() + patch[0] * side
        gap = side * _GAP
        return QRectF(left + gap / 2, top + gap / 2, side - gap, side - gap)

    def _cell_rect(self, patch: Patch, other: Patch) -> QRectF:
        assert self._alike is not None
        rows, columns = self._alike.shape[:2]
        room = self._map_rect(patch)
        wide, high = room.width() / columns, room.height() / rows
        return QRectF(room.left() + other[1] * wide, room.top() + other[0] * high, wide, high)

    def _at(self, position: QPointF) -> tuple[Patch, Patch] | None:
        """The map under a point, and the cell of it; None beside the maps."""
        if self._alike is None:
            return None
        rows, columns = self._alike.shape[:2]
        grid = self._grid(self.width())
        if not grid.contains(position):
            return None
        side = grid.width() / columns
        row, column = int((position.y() - grid.top()) / side), int((position.x() - grid.left()) / side)
        patch = (min(row, rows - 1), min(column, columns - 1))
        room = self._map_rect(patch)
        down = int((position.y() - room.top()) / room.height() * rows)
        across = int((position.x() - room.left()) / room.width() * columns)
        return patch, (min(max(down, 0), rows - 1), min(max(across, 0), columns - 1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._picture = None

    def _look_changed(self) -> None:
        self._picture = None
        super()._look_changed()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._alike is None:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        if self._picture is None or self._picture.devicePixelRatio() != self.devicePixelRatioF():
            self._picture = self._maps()
        painter.drawPixmap(0, 0, self._picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._query != _NOWHERE:
            painter.setPen(QPen(QColor(self._theme.query), wide(2.5), j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(self._map_rect(self._query).adjusted(-1.5, -1.5, 1.5, 1.5))
        if _NOWHERE not in (self._query, self._key):
            painter.setPen(QPen(QColor(self._theme.key), wide(2), j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(self._cell_rect(self._query, self._key))
        painter.setPen(QColor(self._theme.text))
        line = QRectF(3, 0, self.width() - 6, self._line())
        shown = QFontMetricsF(self.font()).elidedText(self.readout(), Qt.TextElideMode.ElideRight, line.width())
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
        self._draw_focus_ring(painter)

    def _maps(self) -> QPixmap:
        """All maps, kept until they change."""
        assert self._alike is not None
        ratio = self.devicePixelRatioF()
        pixmap = QPixmap(self.size() * ratio)
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        colours = cell_image.colours(self._table, *self._range)
        for row, column in np.ndindex(*self._alike.shape[:2]):
            image = cell_image.to_image(cell_image.encode(self._alike[row, column], *self._range), colours)
            painter.drawImage(self._map_rect((row, column)), image)
        painter.end()
        return pixmap

    # pointer and keyboard

    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self._at(event.position())
        if found is None or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._choose(found[0])

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(self._at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point(None)

    def _point(self, found: tuple[Patch, Patch] | None) -> None:
        if found == self._hover or self._alike is None:
            return
        self._hover = found
        columns = self._alike.shape[1]
        numbers = [-1, -1] if found is None else [row * columns + column for row, column in found]
        self.hovered.emit(*numbers)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        move = _MOVES.get(Qt.Key(event.key()))
        if move is None or self._alike is None:
            event.ignore()
            return
        rows, columns = self._alike.shape[:2]
        row, column = (max(place, 0) for place in self._query)
        if self._query != _NOWHERE:
            row, column = row + move[0], column + move[1]
        self._choose((min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)))

    def _choose(self, patch: Patch) -> None:
        if patch != self._query and self._alike is not None:
            self.patch_selected.emit(patch[0] * self._alike.shape[1] + patch[1])


def _named(patch: Patch) -> str:
    return f"r{patch[0] + 1} c{patch[1] + 1}"
