"""A picture divided into patches: one is selected by a click or the arrow keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.widgets.themed import ThemedWidget

SMALLEST, LARGEST = 120, 500  # pixels of the longer side
_LEAST_PATCH = 6  # pixels: lines around smaller ones would hide the picture
_LEAST_FRAME = 7  # pixels: a smaller one would not be seen
_MOST_OPAQUE = 215  # of 255: what covers the patch with the largest weight
_DIMMED = QColor(0, 0, 0, 110)  # over a picture whose weights are shown
_MOVES = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}


class PatchView(ThemedWidget):
    """The picture as the model sees it, with the lines along which it is cut, and where one token looks."""

    patch_selected = Signal(int)  # row * columns + column
    hovered = Signal(int)  # -1 when the pointer leaves

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Picture", parent)
        self._image = QImage()
        self._weights: NDArray[np.float32] | None = None
        self._veil: QImage | None = None
        self._rows = self._columns = 0
        self._side = SMALLEST
        self._query = self._key = self._hover = -1
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self.setToolTip("The picture as the model sees it. Click a patch to see where it looks.")

    def _look_changed(self) -> None:
        self._make_veil()
        super()._look_changed()

    def set_picture(self, pixels: NDArray[np.uint8] | None, rows: int = 0, columns: int = 0) -> None:
        """Show `pixels`, (height, width, 3), in `rows` x `columns` patches; nothing for None."""
        if pixels is None:
            self._image, self._rows, self._columns = QImage(), 0, 0
        else:
            height, width, _ = pixels.shape
            data = np.ascontiguousarray(pixels)
            self._image = QImage(data.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()
            self._rows, self._columns = rows, columns
        self._make_veil()
        self.updateGeometry()
        self.update()

    def set_side(self, pixels: int) -> None:
        """How long the longer side is to be, within bounds."""
        side = min(max(pixels, SMALLEST), LARGEST)
        if side != self._side:
            self._side = side
            self.updateGeometry()

    def set_weights(self, weights: NDArray[np.float32] | None) -> None:
        """Colour each patch by its share of the largest weight, over the picture dimmed.

        weights: (rows * columns,), as patches are numbered; None for the picture as it is.
        """
        self._weights = weights
        self._make_veil()
        self.update()

    def _make_veil(self) -> None:
        weights = self._weights
        largest = 0.0 if weights is None else float(weights.max(initial=0.0))
        if weights is None or weights.size != self._rows * self._columns or not 0 < largest < np.inf:
            self._veil = None
            return
        accent = QColor(self._theme.query)
        veil = np.empty((self._rows, self._columns, 4), np.uint8)
        veil[..., :3] = accent.red(), accent.green(), accent.blue()
        veil[..., 3] = np.round(_MOST_OPAQUE * weights.reshape(self._rows, self._columns) / largest)
        form = QImage.Format.Format_RGBA8888
        self._veil = QImage(veil.data, self._columns, self._rows, 4 * self._columns, form).copy()

    def set_selection(self, query: int, key: int) -> None:
        """Frame the query's patch and the key's; -1 for a token that is no patch."""
        if (query, key) != (self._query, self._key):
            self._query, self._key = query, key
            self.update()

    def set_hover(self, patch: int) -> None:
        if patch != self._hover:
            self._hover = patch
            self.update()

    def sizeHint(self) -> QSize:
        size = self._image.size()
        square = QSize(self._side, self._side)
        return square if size.isEmpty() else size.scaled(square, Qt.AspectRatioMode.KeepAspectRatio)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def patch_at(self, where: QPointF) -> int:
        """The patch under a point of the widget, -1 beside the picture."""
        if not (0 <= where.x() < self.width() and 0 <= where.y() < self.height() and self._rows):
            return -1
        row, column = int(where.y() * self._rows / self.height()), int(where.x() * self._columns / self.width())
        return row * self._columns + column

    def patch_rect(self, patch: int) -> QRectF:
        """Where a patch is drawn."""
        row, column = divmod(patch, self._columns)
        wide, high = self.width() / self._columns, self.height() / self._rows
        return QRectF(column * wide, row * high, wide, high)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._image.isNull():
            painter.setPen(QColor(self._theme.border_strong))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
            return
        # pixels stay sharp: a patch is made of few
        painter.drawImage(self.rect(), self._image)
        if self._veil is not None:
            painter.fillRect(self.rect(), _DIMMED)
            painter.drawImage(self.rect(), self._veil)
        line = QColor(255, 255, 255, 60)
        painter.setPen(QPen(line, 1))
        lines = self.width() >= _LEAST_PATCH * self._columns
        for row in range(1, self._rows if lines else 0):
            y = round(row * self.height() / self._rows)
            painter.drawLine(0, y, self.width(), y)
        for column in range(1, self._columns if lines else 0):
            x = round(column * self.width() / self._columns)
            painter.drawLine(x, 0, x, self.height())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frames = ((self._hover, self._theme.focus), (self._key, self._theme.key), (self._query, self._theme.query))
        for patch, colour in frames:
            if 0 <= patch < self._rows * self._columns:
                inside = self.patch_rect(patch).adjusted(1, 1, -1, -1)
                lacks = max(0.0, (_LEAST_FRAME - min(inside.width(), inside.height())) / 2)
                inside.adjust(-lacks, -lacks, lacks, lacks)
                painter.setPen(QPen(QColor(self._theme.surface), wide(4)))  # stands out from any picture
                painter.drawRect(inside)
                painter.setPen(QPen(QColor(colour), wide(2)))
                painter.drawRect(inside)
        if self._shows_ring and self.hasFocus():
            painter.setPen(QPen(QColor(self._theme.surface), wide(4)))  # below the ring, as below the frames
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(2, 2, -2, -2), 5, 5)
        self._draw_focus_ring(painter)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        patch = self.patch_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and patch >= 0:
            self.patch_selected.emit(patch)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.hovered.emit(self.patch_at(event.position()))

    def leaveEvent(self, event: object) -> None:
        self.hovered.emit(-1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        move = _MOVES.get(Qt.Key(event.key()))
        if move is None or not self._rows:
            super().keyPressEvent(event)
            return
        row, column = divmod(max(self._query, 0), self._columns)
        row = min(max(row + move[0], 0), self._rows - 1)
        column = min(max(column + move[1], 0), self._columns - 1)
        self.patch_selected.emit(row * self._columns + column)
