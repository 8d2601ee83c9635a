"""All heads at once: one thumbnail a head, all coloured over the same range, so that they may be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QImage,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from attention_explorer.colour_maps import ColourTable, sequential
from attention_explorer.panels.head_atlas.atlas_layout import GAP, MEAN_GAP, SMALLEST, AtlasLayout
from attention_explorer.panels.head_atlas.atlas_paint import EDGE, LABEL_GAP, AtlasPainter, draw_sheet
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.cells_widget import NOWHERE, Cell, CellsWidget
from attention_explorer.widgets.padding_overlay import Share


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
