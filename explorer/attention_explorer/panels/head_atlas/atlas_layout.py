"""Where the thumbnails of all heads lie. Pure geometry, no widget."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

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
