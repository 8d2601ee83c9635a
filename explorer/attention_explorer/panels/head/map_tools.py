"""What stands above a map too large to be seen at once: its overview, finding a token, and what a square stands for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QSizePolicy, QWidget

from attention_explorer.look.colour_maps import ColourTable, sequential
from attention_explorer.panels.head.find_bar import FindBar
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.padding_overlay import Share, draw_padding_overlay
from attention_explorer.widgets.themed import ThemedWidget

_SIDE = 84
_STEP = 0.5  # of the frame, that an arrow key moves it
_SMALLEST = 5.0  # pixels a side of the frame, so that it can be found and held
_ARROWS = {
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
}


class MiniMap(ThemedWidget):
    """A click or a drag moves the frame's middle, so do the arrow keys by half a frame."""

    moved = Signal(float, float)  # where the middle of the visible part shall be, across and down, 0 to 1

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Overview of the map", parent)
        self.setAccessibleDescription("The frame is what the map shows. Drag it, or move it with the arrow keys.")
        self.setToolTip("The whole map; the frame is what shows. Drag the frame, or use the arrow keys.")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self._picture: NDArray[np.float32] | None = None  # (down, across)
        self._high = 1.0
        self._table = sequential()
        self._part = QRectF(0, 0, 1, 1)
        self._codes: cell_image.Codes | None = None  # at the widget's size
        self._faded: tuple[tuple[Share, ...], tuple[Share, ...]] = ((), ())  # rows and columns that fill up a text
        self._grip: QPointF | None = None  # from the pointer to the frame's middle, while it is held

    def set_picture(self, picture: NDArray[np.float32] | None, high: float, table: ColourTable) -> None:
        """Show the whole map, (down, across), coloured from 0 to `high`; NaN cells stay empty."""
        if picture is self._picture and high == self._high and table is self._table:
            return
        self._picture, self._high, self._table = picture, high, table
        self._codes = None
        self.update()

    def set_part(self, part: QRectF) -> None:
        """The visible part of the map, in shares of its width and height."""
        if part != self._part:
            self._part = QRectF(part)
            self.update()

    def set_faded(self, rows: tuple[Share, ...], columns: tuple[Share, ...]) -> None:
        """Draw these rows and columns faint: they fill up a text."""
        if (rows, columns) != self._faded:
            self._faded = (rows, columns)
            self.update()

    def frame(self) -> QRectF:
        """Where the frame is drawn."""
        area = self._area()
        part = self._part
        rect = QRectF(
            area.left() + part.left() * area.width(),
            area.top() + part.top() * area.height(),
            part.width() * area.width(),
            part.height() * area.height(),
        )
        wide, high = max(rect.width(), _SMALLEST), max(rect.height(), _SMALLEST)
        return QRectF(rect.center().x() - wide / 2, rect.center().y() - high / 2, wide, high)

    def sizeHint(self) -> QSize:
        return QSize(_SIDE, _SIDE)

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(2, 2, -2, -2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._codes = None

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        area = self._area()
        painter.fillRect(area, QColor(self._theme.surface_alt))
        if self._picture is not None:
            ratio = self.devicePixelRatioF()
            if self._codes is None:
                codes = cell_image.encode(self._picture, 0.0, self._high)
                for axis, length in enumerate((area.height(), area.width())):
                    pixels = max(1, round(length * ratio))
                    codes = cell_image.stretch(codes, axis, 0.0, pixels / codes.shape[axis], pixels)
                self._codes = codes
            image = cell_image.to_image(self._codes, cell_image.colours(self._table, 0.0, self._high))
            image.setDevicePixelRatio(ratio)
            painter.drawImage(area.topLeft(), image)
            draw_padding_overlay(painter, self._theme, area, *self._faded)
        painter.setPen(QPen(QColor(self._theme.border), 1))
        painter.drawRect(area.adjusted(-0.5, -0.5, 0.5, 0.5))
        for colour, width in ((self._theme.surface, 4.0), (self._theme.query, 2.0)):
            painter.setPen(QPen(QColor(colour), width, j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(self.frame())
        self._draw_focus_ring(painter)

    # pointer and keyboard

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        frame = self.frame()
        # a frame that is taken hold of stays under the pointer as it was
        self._grip = frame.center() - event.position() if frame.contains(event.position()) else QPointF(0, 0)
        self._move_to(event.position() + self._grip)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is not None:
            self._move_to(event.position() + self._grip)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _ARROWS.get(Qt.Key(event.key()))
        if step is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.ignore()
            return
        middle = self._part.center()
        self.moved.emit(
            middle.x() + step[0] * _STEP * self._part.width(), middle.y() + step[1] * _STEP * self._part.height()
        )

    def _move_to(self, position: QPointF) -> None:
        area = self._area()
        self.moved.emit((position.x() - area.left()) / area.width(), (position.y() - area.top()) / area.height())


_POOLINGS = {
    "max": ("largest", "Squares show the largest of their weights: nothing strong is lost"),
    "mean": ("mean", "Squares show the mean of their weights"),
}


class MapTools(QWidget):
    """Knows nothing of the map: `overview` and `search` say what a person asks for."""

    pooling_chosen = Signal(str)  # "max" or "mean"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.overview = MiniMap()
        self.search = FindBar()
        self.detail = ElidedLabel()
        self.detail.setProperty("role", "dim")
        self.pooling = QComboBox()
        self.pooling.setAccessibleName("What a square shows")
        self.pooling.setToolTip("What a square of many weights shows; the thumbnails of all heads are pooled alike")
        for how, (word, meaning) in _POOLINGS.items():
            self.pooling.addItem(word, how)
            self.pooling.setItemData(self.pooling.count() - 1, meaning, Qt.ItemDataRole.ToolTipRole)
        self.pooling.activated.connect(lambda i: self.pooling_chosen.emit(self.pooling.itemData(i)))
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(4)
        grid.addWidget(self.overview, 0, 0, 2, 1)
        grid.addWidget(self.search, 0, 1)
        below = QHBoxLayout()
        below.setSpacing(8)
        below.addWidget(self.search.position)
        below.addWidget(self.pooling)
        below.addWidget(self.detail, 1)
        grid.addLayout(below, 1, 1)
        grid.setColumnStretch(1, 1)

    def show_detail(self, pooling: str, cell: int) -> None:
        """Say what one square of the map is: of `cell` x `cell` weights the largest, or their mean."""
        self.pooling.setCurrentIndex(self.pooling.findData(pooling))
        self.pooling.setEnabled(cell > 1)
        self.detail.setText("each weight as it is" if cell == 1 else f"of {cell:,} × {cell:,} weights a square")
        word = _POOLINGS[pooling][0]
        more = f"Each square is the {word} of {cell:,} × {cell:,} weights. Zoom in for more detail."
        self.detail.setToolTip("Every weight is drawn, none is pooled." if cell == 1 else more)
