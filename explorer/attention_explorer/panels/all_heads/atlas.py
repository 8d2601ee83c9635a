"""All heads at once: one thumbnail a head, all coloured over the same range, so that they may be compared."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from attention_explorer.look.colour_maps import ColourTable, sequential
from attention_explorer.look.text_size import smaller, wide
from attention_explorer.look.theme import Theme
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.cells_widget import NOWHERE, Cell, CellsWidget
from attention_explorer.widgets.padding_overlay import Share, draw_hatching, draw_padding_overlay

LARGEST = 96  # pixels
SMALLEST = 22  # pixels; more heads than fit at this size are scrolled
GAP = 5
MEAN_GAP = 10  # sets the column of means off from the heads


@dataclass(frozen=True)
class AtlasLayout:
    """A grid of square thumbnails: layers down, heads across, the means of the layers perhaps in a last column."""

    rows: int
    columns: int
    has_mean: bool
    left: float
    top: float
    thumb: int  # pixels

    @classmethod
    def fit(
        cls, rows: int, columns: int, has_mean: bool, left: float, top: float, width: float, height: float
    ) -> AtlasLayout:
        """The largest whole-pixel thumbnails that fill a room of width by height, between SMALLEST and LARGEST."""
        across = columns + int(has_mean)
        wide = (width - MEAN_GAP * has_mean + GAP) / max(1, across) - GAP
        high = (height + GAP) / max(1, rows) - GAP
        return cls(rows, columns, has_mean, left, top, int(min(max(min(wide, high), SMALLEST), LARGEST)))

    @property
    def step(self) -> int:
        return self.thumb + GAP

    @property
    def across(self) -> int:
        """Columns with the one of the means."""
        return self.columns + int(self.has_mean)

    @property
    def right(self) -> float:
        if self.has_mean:
            return self.column_x(self.columns) + self.thumb
        return self.left + self.columns * self.step - GAP

    @property
    def bottom(self) -> float:
        return self.top + self.rows * self.step - GAP

    def column_x(self, column: int) -> float:
        """The left edge of a column; the column of means has the index `columns`."""
        return self.left + column * self.step + (MEAN_GAP if column == self.columns else 0)

    def rect(self, row: int, column: int) -> QRectF:
        return QRectF(self.column_x(column), self.top + row * self.step, self.thumb, self.thumb)

    def at(self, position: QPointF) -> tuple[int, int]:
        """The (row, column) whose thumbnail lies under a position, or (-1, -1) between and beside them."""
        row = int((position.y() - self.top) // self.step)
        column = int((position.x() - self.left) // self.step)
        if self.has_mean and position.x() >= self.column_x(self.columns):
            column = self.columns
        inside = 0 <= row < self.rows and 0 <= column < self.across
        return (row, column) if inside and self.rect(row, column).contains(position) else (-1, -1)


# How the atlas of heads is drawn: one sheet of thumbnails, frames, badges, labels and the caption.


EDGE = 5.0  # around everything: room for the selection's glow
HATCH_STEP = 6.0
LABEL_GAP = 8.0  # between the row labels and the thumbnails
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


def draw_sheet(
    layout: AtlasLayout, heads: cell_image.Codes, means: cell_image.Codes | None, colours: list[int], ratio: float
) -> QImage:
    """All thumbnails in one image at the device's own pixels, with transparent gaps.

    heads: (rows, columns, height, width); means: (rows, height, width) when the layout has a column for them.
    """
    thumb = round(layout.thumb * ratio)
    xs = [round((layout.column_x(column) - layout.left) * ratio) for column in range(layout.across)]
    ys = [round(row * layout.step * ratio) for row in range(layout.rows)]
    sheet = np.zeros((ys[-1] + thumb, xs[-1] + thumb), dtype=np.uint8)
    heads = _scaled(heads, thumb)  # (rows, columns, thumb, thumb)
    means = None if means is None else _scaled(means, thumb)  # (rows, thumb, thumb)
    for row, y in enumerate(ys):
        for column, x in enumerate(xs):
            picture = heads[row, column] if means is None or column < layout.columns else means[row]
            sheet[y : y + thumb, x : x + thumb] = picture
    image = cell_image.to_image(sheet, colours)
    image.setDevicePixelRatio(ratio)
    return image


def _scaled(codes: cell_image.Codes, pixels: int) -> cell_image.Codes:
    """The last two axes of `codes` drawn in pixels by pixels."""
    for axis in (codes.ndim - 2, codes.ndim - 1):
        codes = cell_image.stretch(codes, axis, 0.0, pixels / codes.shape[axis], pixels)
    return codes


@dataclass(frozen=True)
class AtlasPainter:
    """Draws one state of the atlas; made for each paint.

    `shown` is the part of the widget that a scroll area lets through: column labels and caption keep to it.
    """

    theme: Theme
    font: QFont
    bold: QFont
    layout: AtlasLayout
    shown: QRectF

    def draw_tiles(self, painter: QPainter, exposed: QRectF, hatched: Collection[tuple[int, int]] = ()) -> None:
        """What shows where a thumbnail has no value: the hatching of the large map where that is for a mask."""
        for row in range(self.layout.rows):
            for column in range(self.layout.across):
                rect = self.layout.rect(row, column)
                if rect.intersects(exposed):
                    painter.fillRect(rect, QColor(self.theme.surface_alt))
                    if (row, column) in hatched:
                        draw_hatching(painter, self.theme, rect, HATCH_STEP)

    def draw_faded(self, painter: QPainter, rows: Sequence[Share], columns: Sequence[Share]) -> None:
        """Lay the ground's colour over some rows and columns of every thumbnail."""
        if not (rows or columns):
            return
        for row in range(self.layout.rows):
            for column in range(self.layout.across):
                draw_padding_overlay(painter, self.theme, self.layout.rect(row, column), rows, columns)

    def draw_hover_frame(self, painter: QPainter, row: int, column: int) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self.theme.text), wide(1.5)))
        painter.drawRoundedRect(self.layout.rect(row, column).adjusted(-1.5, -1.5, 1.5, 1.5), 2, 2)

    def draw_selection_frame(self, painter: QPainter, row: int, column: int) -> None:
        """A frame in the query accent with a faint glow."""
        rect = self.layout.rect(row, column)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        glow = QColor(self.theme.query)
        for outset, alpha in ((4.0, 45), (2.5, 90)):
            glow.setAlpha(alpha)
            painter.setPen(QPen(glow, 2.0))
            painter.drawRoundedRect(rect.adjusted(-outset, -outset, outset, outset), 4, 4)
        painter.setPen(QPen(QColor(self.theme.query), wide(2.5)))
        painter.drawRoundedRect(rect.adjusted(-1.25, -1.25, 1.25, 1.25), 2, 2)

    def draw_badges(self, painter: QPainter, badges: Mapping[tuple[int, int], str]) -> None:
        """The names of some heads, at the foot of their thumbnails; a dot where the word has no room."""
        font = smaller(self.bold, 0.78, least=7.5)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        for head, text in badges.items():
            thumb = self.layout.rect(*head)
            width, height = metrics.horizontalAdvance(text) + 4, metrics.height()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.theme.query))
            if width > thumb.width() or 2 * height > thumb.height():
                painter.drawEllipse(QRectF(thumb.right() - 8, thumb.bottom() - 8, 7, 7))
                continue
            badge = QRectF(thumb.right() - width, thumb.bottom() - height, width, height)
            painter.drawRoundedRect(badge, 3, 3)
            painter.setPen(QColor(self.theme.on_accent))
            painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, text)

    def draw_labels(
        self, painter: QPainter, rows: Sequence[str], columns: Sequence[str], chosen: tuple[int, int]
    ) -> None:
        """Every row's label, the columns' as far as they fit beside each other; the chosen ones in the accent."""
        layout, metrics = self.layout, QFontMetricsF(self.font)
        for row, label in enumerate(rows):
            y = layout.rect(row, 0).center().y() - metrics.height() / 2
            rect = QRectF(0, y, layout.left - LABEL_GAP, metrics.height())
            self._label(painter, rect, Qt.AlignmentFlag.AlignRight, label, row == chosen[0])
        head = QRectF(self.shown.left(), self.shown.top(), self.shown.width(), layout.top - 4)
        if self.shown.top() > 0:
            painter.fillRect(head, QColor(self.theme.surface))
        step = math.ceil((max(metrics.horizontalAdvance(label) for label in columns) + 4) / layout.step)
        for column, label in enumerate(columns):
            is_chosen = column == chosen[1]
            if is_chosen or (column % step == 0 and (step == 1 or abs(column - chosen[1]) >= step)):
                self._label(painter, self._above(column, head), Qt.AlignmentFlag.AlignHCenter, label, is_chosen)
        if layout.has_mean:
            self._label(painter, self._above(layout.columns, head), Qt.AlignmentFlag.AlignHCenter, "mean", False)

    def draw_caption(self, painter: QPainter, name: str, scale: str, height: float, has_masked: bool = False) -> None:
        """A line below the thumbnails: which head, over which range all are coloured, and what is hatched.

        height: the widget's.
        """
        metrics, bold = QFontMetricsF(self.font), QFontMetricsF(self.bold)
        line_height = metrics.height() + 6
        y = min(self.shown.bottom() - line_height, self.layout.bottom + GAP)
        line = QRectF(self.shown.left(), y, self.shown.width(), line_height)
        if self.shown.bottom() < height:
            painter.fillRect(line, QColor(self.theme.surface))
        line.adjust(EDGE, 0, -EDGE, 0)
        painter.setFont(self.bold)
        painter.setPen(QColor(self.theme.text))
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft | _MIDDLE, name)
        painter.setFont(self.font)
        painter.setPen(QColor(self.theme.text_dim))
        left_over = line.width() - bold.horizontalAdvance(name) - 12
        hatched = "hatched: masked · " if has_masked else ""
        for text in (f"{hatched}one range for all: {scale}", f"{hatched}{scale}", scale):
            if metrics.horizontalAdvance(text) <= left_over:
                painter.drawText(line, Qt.AlignmentFlag.AlignRight | _MIDDLE, text)
                break

    def _above(self, column: int, head: QRectF) -> QRectF:
        return QRectF(self.layout.column_x(column) - 20, head.top(), self.layout.thumb + 40, head.height())

    def _label(self, painter: QPainter, rect: QRectF, side: Qt.AlignmentFlag, label: str, chosen: bool) -> None:
        painter.setFont(self.bold if chosen else self.font)
        painter.setPen(QColor(self.theme.query if chosen else self.theme.text_dim))
        painter.drawText(rect, side | _MIDDLE, label)


class HeadAtlas(CellsWidget):
    """Layers down, heads across; a click or the arrows choose a head.

    Inside a QScrollArea the labels of the columns and the caption stay in view.
    """

    page_wanted = Signal(int, int)  # row, column of a head with a badge

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("All heads", parent)
        self.setAccessibleDescription("Arrow keys choose a head.")
        self._codes: cell_image.Codes | None = None  # (rows, columns, height, width)
        self._means: cell_image.Codes | None = None  # (rows, height, width)
        self._mean_values: NDArray[np.float32] | None = None  # (rows, height, width)
        self._row_labels: tuple[str, ...] = ()
        self._column_labels: tuple[str, ...] = ()
        self._axis_names = ("layer", "head")
        self._low, self._high = 0.0, 1.0
        self._masked: NDArray[np.bool_] | None = None  # (rows, columns or 1, height, width)
        self._hatched: frozenset[Cell] = frozenset()  # whole thumbnails in which something is masked
        self._table = sequential()
        self._badges: dict[tuple[int, int], str] = {}
        self._meanings: dict[tuple[int, int], str] = {}
        self._picture: QImage | None = None
        self._faded: tuple[tuple[Share, ...], tuple[Share, ...]] = ((), ())  # rows and columns that fill up a text
        self._layout = AtlasLayout.fit(1, 1, False, 0, 0, 0, 0)

    # what to show

    def set_images(
        self,
        images: NDArray[np.float32] | None,
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        high: float,
        low: float = 0.0,
        masked: NDArray[np.bool_] | None = None,
    ) -> None:
        """Show images (rows, columns, height, width), coloured from low to high; NaN cells stay empty, `masked` ones,
        (rows, columns or 1, height, width), are hatched.

        None shows the empty text. Raises ValueError when the labels do not match the images.
        """
        if images is not None and (images.ndim != 4 or images.shape[:2] != (len(row_labels), len(column_labels))):
            raise ValueError(
                f"The images have shape {images.shape}, the labels name {len(row_labels)} rows "
                f"and {len(column_labels)} columns."
            )
        self._low, self._high = low, high
        self._row_labels, self._column_labels = tuple(row_labels), tuple(column_labels)
        self._masked = masked if masked is not None and masked.any() else None
        self._hatched = frozenset()
        self._codes = None
        if images is not None and images.size:
            cells: NDArray[np.bool_] | None = None
            if self._masked is not None:
                cells = np.broadcast_to(self._masked, images.shape)
            self._codes = cell_image.encode(images, low, high, cells)
            if cells is not None:  # one that is being computed has gaps for which no mask is the reason
                hatched = cells.any(axis=(2, 3)) & ~np.isnan(images).any(axis=(2, 3))
                self._hatched = frozenset((int(row), int(column)) for row, column in np.argwhere(hatched))
        self._encode_means()
        self._keep_cells()
        self._lay_out()

    def set_mean_column(self, images: NDArray[np.float32] | None) -> None:
        """Show the mean of each row's heads, (rows, height, width), in a last column that cannot be selected."""
        self._mean_values = images
        self._encode_means()
        self._lay_out()

    def _encode_means(self) -> None:
        means = self._mean_values
        masked: NDArray[np.bool_] | None = None
        if means is not None and self._masked is not None and self._masked[:, 0].shape == means.shape:
            masked = np.asarray(self._masked.all(axis=1))
        self._means = None if means is None else cell_image.encode(means, self._low, self._high, masked)
        if means is not None and masked is not None:
            last = len(self._column_labels)
            whole = masked.any(axis=(1, 2)) & ~np.isnan(means).any(axis=(1, 2))
            self._hatched |= {(int(row), last) for row in np.flatnonzero(whole)}

    def set_faded(self, rows: tuple[Share, ...], columns: tuple[Share, ...]) -> None:
        """Draw these rows and columns of every thumbnail faint: they fill up a text, and say nothing of it."""
        if (rows, columns) != self._faded:
            self._faded = (rows, columns)
            self.update()

    def set_badges(
        self, badges: Mapping[tuple[int, int], str], meanings: Mapping[tuple[int, int], str] | None = None
    ) -> None:
        """Name some heads, by (row, column), and say of them what hovering one tells beside its name."""
        self._meanings = dict(meanings or {})
        if dict(badges) != self._badges:
            self._badges = dict(badges)
            self.update()

    def set_axis_names(self, row: str, column: str) -> None:
        """What a row and a column are called in the caption: "layer" and "head" unless told otherwise."""
        self._axis_names = (row, column)
        self.update()

    def set_colour_map(self, table: ColourTable) -> None:
        """Colour by another table, (256, 3) uint8, from 0 to high."""
        self._table = table
        self._picture = None
        self.update()

    def cell_rect(self, row: int, column: int) -> QRectF:
        """Where a head's thumbnail lies."""
        return self._layout.rect(row, column)

    def head_name(self, row: int, column: int) -> str:
        """What the caption says of a head: "layer 5, head 3", and its badge if it has one."""
        if not 0 <= row < len(self._row_labels):
            return ""
        layer = f"{self._axis_names[0]} {self._row_labels[row]}"
        if column == len(self._column_labels):
            return f"{layer}, mean of its {self._axis_names[1]}s"
        badge = self._badges.get((row, column), "")
        return self._plain_name(row, column) + (f": {badge}" if badge else "")

    def _plain_name(self, row: int, column: int) -> str:
        names = self._axis_names
        return f"{names[0]} {self._row_labels[row]}, {names[1]} {self._column_labels[column]}"

    def shape(self) -> tuple[int, int]:
        """Rows and columns of heads; the column of means holds none."""
        return (0, 0) if self._codes is None else (len(self._row_labels), len(self._column_labels))

    def _cell_at(self, position: QPointF) -> Cell:
        return self._layout.at(position)

    def _with_labels(self, rect: QRectF) -> QRectF:
        around = self._layout.top  # what the labels of the columns and the caption would cover
        return rect.adjusted(-GAP, -around, GAP, around)

    def tooltip_of(self, cell: Cell) -> str:
        if self._codes is None:
            return ""
        meaning = self._meanings.get(cell, "")
        return f"{self._plain_name(*cell)}\n{meaning}" if meaning else self.head_name(*cell)

    # geometry

    def sizeHint(self) -> QSize:
        return self._size_with(44)

    def minimumSizeHint(self) -> QSize:
        return self._size_with(SMALLEST)

    def _size_with(self, thumb: int) -> QSize:
        left, top, bottom = self._margins()
        mean = self._means is not None
        across, down = len(self._column_labels) + int(mean), len(self._row_labels)
        width = left + max(4, across) * (thumb + GAP) + MEAN_GAP * mean + EDGE
        return QSize(round(width), round(top + max(3, down) * (thumb + GAP) + bottom))

    def _margins(self) -> tuple[float, float, float]:
        """Room for the row labels, the column labels, and the caption."""
        metrics = QFontMetricsF(self.font())
        widest = max((metrics.horizontalAdvance(label) for label in self._row_labels), default=0.0)
        return round(EDGE + widest + LABEL_GAP), round(metrics.height() + 8), round(metrics.height() + 12)

    def _lay_out(self) -> None:
        left, top, bottom = self._margins()
        room = (self.width() - left - EDGE, self.height() - top - bottom)
        has_mean = self._means is not None
        self._layout = AtlasLayout.fit(len(self._row_labels), len(self._column_labels), has_mean, left, top, *room)
        self._picture = None
        self.updateGeometry()
        self.update()

    def _look_changed(self) -> None:
        self._lay_out()
        super()._look_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _visible_part(self) -> QRectF:
        shown = self.visibleRegion().boundingRect()
        return QRectF(self.rect() if shown.isEmpty() else shown)

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._codes is None:
            self._draw_empty_text(painter)
        else:
            ratio = self.devicePixelRatioF()
            if self._picture is None or self._picture.devicePixelRatio() != ratio:
                colours = cell_image.colours(self._table, self._low, self._high)
                self._picture = draw_sheet(self._layout, self._codes, self._means, colours, ratio)
            artist = AtlasPainter(self._theme, self.font(), self.bold_font(), self._layout, self._visible_part())
            artist.draw_tiles(painter, QRectF(event.rect()), self._hatched)
            painter.drawImage(QPointF(self._layout.left, self._layout.top), self._picture)
            artist.draw_faded(painter, *self._faded)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self._hover not in (NOWHERE, self._selection):
                artist.draw_hover_frame(painter, *self._hover)
            if self._selection != NOWHERE:
                artist.draw_selection_frame(painter, *self._selection)
            artist.draw_badges(painter, {head: text for head, text in self._badges.items() if self._holds(head)})
            artist.draw_labels(painter, self._row_labels, self._column_labels, self._selection)
            named = self._selection if self._hover == NOWHERE else self._hover
            scale = f"{self._low:.3g} to {self._high:.3g}"
            artist.draw_caption(painter, self.head_name(*named), scale, self.height(), bool(self._hatched))
        self._draw_focus_ring(painter)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        head = self._cell_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and head in self._badges and self._holds(head):
            self.page_wanted.emit(*head)
        else:
            super().mouseDoubleClickEvent(event)
