"""One row of a batch, painted: what is read, what is to be said beneath it, and what each token costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.cells_widget import NOWHERE, Cell, CellsWidget

_PAD = 6.0
_LEAST = 42.0  # width of a column: a loss of three digits
_DARKEST = 0.6  # opacity of the colour of a loss


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the grid; "" where there is nothing in a column. `shades` are from 0 to 1."""

    caption: str
    cells: tuple[str, ...]
    shades: tuple[float, ...] = ()


class BatchGrid(CellsWidget):
    """Columns are positions. A click or the arrow keys choose one at which something is to be said."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("One row of the batch", parent)
        self._lines: tuple[Line, ...] = ()
        self._tips: dict[int, str] = {}
        self._widths: tuple[float, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._lines

    def show_row(self, lines: Sequence[Line], tips: dict[int, str]) -> None:
        """`tips` are those of the columns that can be chosen, by column."""
        self._lines, self._tips = tuple(lines), tips
        self._measure()
        self._keep_cells()
        heard = (f"{line.caption}: {' '.join(cell or '–' for cell in line.cells)}" for line in self._lines)
        self.setAccessibleDescription(". ".join(heard))
        self.updateGeometry()
        self.update()

    # cells

    def shape(self) -> tuple[int, int]:
        return (1, len(self._widths)) if self._lines else (0, 0)

    def cell_rect(self, row: int, column: int) -> QRectF:
        left = self._caption_width() + sum(self._widths[:column])
        return QRectF(left, 0, self._widths[column], self._line_height() * len(self._lines))

    def tooltip_of(self, cell: Cell) -> str:
        return self._tips.get(cell[1], "")

    def _holds(self, cell: Cell) -> bool:
        return super()._holds(cell) and cell[1] in self._tips

    def _cell_at(self, position: QPointF) -> Cell:
        columns = range(len(self._widths))
        return next(((0, c) for c in columns if self.cell_rect(0, c).contains(position)), NOWHERE)

    def _with_labels(self, rect: QRectF) -> QRectF:
        return rect.adjusted(-self._caption_width(), 0, 0, 0)

    # geometry

    def _measure(self) -> None:
        metrics = QFontMetricsF(self.bold_font())
        cells = zip(*(line.cells for line in self._lines), strict=True)
        widths = (max(metrics.horizontalAdvance(text) for text in column) for column in cells)
        self._widths = tuple(max(_LEAST, width + 10) for width in widths)

    def _look_changed(self) -> None:
        self._measure()
        super()._look_changed()

    def _caption_width(self) -> float:
        metrics = QFontMetricsF(self.font())
        return max((metrics.horizontalAdvance(line.caption) for line in self._lines), default=0.0) + 2 * _PAD

    def _line_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 8

    def sizeHint(self) -> QSize:
        width = self._caption_width() + sum(self._widths) + 1
        return QSize(round(width), round(self._line_height() * len(self._lines)) + 2)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for column in range(len(self._widths)):
            if self.cell_rect(0, column).intersects(QRectF(event.rect())):
                self._draw_column(painter, column)
        self._draw_captions(painter)
        self._draw_focus_ring(painter)

    def _draw_column(self, painter: QPainter, column: int) -> None:
        theme, rect, height = self._theme, self.cell_rect(0, column), self._line_height()
        is_chosen = (0, column) == self._selection
        if is_chosen or (0, column) == self._hover:
            painter.fillRect(rect, QColor(theme.surface_hover if is_chosen else theme.surface_alt))
        painter.setFont(self.bold_font() if is_chosen else self.font())
        for number, line in enumerate(self._lines):
            cell = QRectF(rect.left(), number * height, rect.width(), height)
            if line.shades and line.cells[column]:
                shade = QColor(theme.error)
                shade.setAlphaF(_DARKEST * min(1.0, max(0.0, line.shades[column])))
                painter.fillRect(cell.adjusted(1, 1, -1, -1), shade)
            painter.setPen(QColor(theme.text))
            painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, line.cells[column])
        if is_chosen:
            painter.setPen(QPen(QColor(theme.focus), 1.5))
            painter.drawRect(rect.adjusted(1, 1, -1, -1))

    def _draw_captions(self, painter: QPainter) -> None:
        """At the left of what can be seen."""
        seen = self.visibleRegion().boundingRect()
        height = self._line_height()
        box = QRectF(seen.left(), 0, self._caption_width(), height * len(self._lines))
        painter.fillRect(box, QColor(self._theme.surface))
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text_dim))
        for number, line in enumerate(self._lines):
            cell = QRectF(box.left(), number * height, box.width() - _PAD, height)
            painter.drawText(cell, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, line.caption)
