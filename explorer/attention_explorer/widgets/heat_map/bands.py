"""The blocks of a map whose tokens are of two texts: lines between them, and what each of them is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from attention_explorer.look.text_size import smaller, wide
from attention_explorer.look.theme import SMALLEST_FONT
from attention_explorer.widgets.heat_map.painter import MapPainter

_PAD = 5.0  # left and right of a caption
_INSET = 4.0  # between a caption and the corner of its block
_LEAST_SHARE = 2.2  # of a caption's width that its block must have, so that cells are left to see


@dataclass(frozen=True, slots=True)
class Band:
    """The rows (or columns) of one text."""

    name: str
    cells: range


@dataclass(frozen=True, slots=True)
class Bands:
    """The texts along both axes; an axis of a single text has none."""

    rows: Sequence[Band] = ()
    columns: Sequence[Band] = ()

    def draw(self, painter: QPainter, artist: MapPainter) -> None:
        """Dashed lines where one text ends, and a caption in each block that has room for it."""
        if not (self.rows or self.columns):
            return
        painter.save()
        painter.setClipRect(artist.map_rect)
        self._draw_lines(painter, artist)
        font = artist.frame.font
        painter.setFont(smaller(font, 1 - 1 / font.pointSizeF(), least=SMALLEST_FONT))
        everywhere = (Band("", range(artist.view.rows.count)), Band("", range(artist.view.columns.count)))
        for row in self.rows or everywhere[:1]:
            for column in self.columns or everywhere[1:]:
                _draw_caption(painter, artist, row, column)
        painter.restore()

    def _draw_lines(self, painter: QPainter, artist: MapPainter) -> None:
        area = artist.map_rect
        lines = [
            QLineF(area.left(), y, area.right(), y)
            for y in (artist.cell(edge, 0).top() for edge in _edges(self.rows, artist.view.rows.count))
            if area.top() < y < area.bottom()
        ]
        lines += [
            QLineF(x, area.top(), x, area.bottom())
            for x in (artist.cell(0, edge).left() for edge in _edges(self.columns, artist.view.columns.count))
            if area.left() < x < area.right()
        ]
        for colour, width, dashed in ((QColor(0, 0, 0, 130), 3.0, False), (QColor(255, 255, 255, 240), 1.5, True)):
            pen = QPen(colour, wide(width), c=Qt.PenCapStyle.FlatCap)
            if dashed:
                pen.setDashPattern([5.0, 3.0])
            painter.setPen(pen)
            painter.drawLines(lines)


def _edges(bands: Sequence[Band], count: int) -> list[int]:
    """Where a band begins or ends within an axis of so many cells."""
    return sorted({edge for band in bands for edge in (band.cells.start, band.cells.stop) if 0 < edge < count})


def _draw_caption(painter: QPainter, artist: MapPainter, row: Band, column: Band) -> None:
    first = artist.cell(row.cells.start, column.cells.start)
    last = artist.cell(row.cells.stop - 1, column.cells.stop - 1)
    block = first.united(last).intersected(artist.map_rect)
    text = caption(row.name, column.name)
    metrics = QFontMetricsF(painter.font())
    width, height = metrics.horizontalAdvance(text) + 2 * _PAD, metrics.height() + 2
    if block.width() < _LEAST_SHARE * width or block.height() < _LEAST_SHARE * height:
        return
    sign = QRectF(block.right() - width - _INSET, block.top() + _INSET, width, height)
    ground = QColor(artist.theme.surface)
    ground.setAlphaF(0.9)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(artist.theme.border_strong), 1.0))
    painter.setBrush(ground)
    painter.drawRoundedRect(sign, 4, 4)
    painter.setPen(QColor(artist.theme.text))
    painter.drawText(sign, Qt.AlignmentFlag.AlignCenter, text)


def caption(row: str, column: str) -> str:
    """ "A → B"; "→ B" where the queries are of one text."""
    return f"{row} → {column}".strip() if column else f"{row} →"
