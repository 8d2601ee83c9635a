"""How the map itself is drawn: cells with their hatching, titles, the selected cell, the crosshair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPen

from attention_explorer.look.text_size import line_scale, wide
from attention_explorer.look.theme import Theme
from attention_explorer.widgets.heat_map.frame import GAP, KEY_CORNER, QUERY_CORNER, Frame
from attention_explorer.widgets.heat_map.view import Axis, MapView
from attention_explorer.widgets.padding_overlay import draw_hatching, fade_parts, runs

QUERY_TITLE = "query (looks)"
KEY_TITLE = "key (is looked at)"

_HATCH_STEP = 11.0
_SMALLEST_FRAME = 7.0  # a frame about a cell of a pixel or two must still be found
_NARROWEST_BAND = 5.0  # pixels between the two lines of the crosshair
_CENTRE = Qt.AlignmentFlag.AlignCenter


@dataclass(frozen=True)
class MapPainter:
    """Draws one state of the map; made anew for every paint."""

    theme: Theme
    frame: Frame
    view: MapView
    ratio: float  # device pixels a logical one
    key_note: str = ""  # what the title of the keys adds

    @property
    def map_rect(self) -> QRectF:
        rows, columns = self.view.rows, self.view.columns
        return QRectF(columns.origin, rows.origin, columns.extent, rows.extent)

    def cell(self, row: int, column: int) -> QRectF:
        """A cell's rectangle on whole device pixels, as the image draws it."""
        left, right = self._snapped(self.view.columns, column), self._snapped(self.view.columns, column + 1)
        top, bottom = self._snapped(self.view.rows, row), self._snapped(self.view.rows, row + 1)
        return QRectF(left, top, right - left, bottom - top)

    def draw_map(self, painter: QPainter, image: QImage, has_gaps: bool) -> None:
        """The cells; where the image is transparent, the hatching shows through."""
        area = self.map_rect
        if has_gaps:
            self._draw_hatching(painter, area)
        painter.drawImage(area.topLeft(), image)

    def _draw_hatching(self, painter: QPainter, area: QRectF) -> None:
        draw_hatching(painter, self.theme, area, _HATCH_STEP)
        painter.setPen(QPen(QColor(self.theme.hatch), 1.0))
        painter.drawRect(area.adjusted(-0.5, -0.5, 0.5, 0.5))

    def draw_faded(self, painter: QPainter, rows: Sequence[int], columns: Sequence[int]) -> None:
        """Lay the ground's colour over whole rows and columns."""
        last_row, last_column = self.view.rows.count - 1, self.view.columns.count - 1
        across = (self.cell(first, 0).united(self.cell(last, last_column)) for first, last in runs(rows))
        down = (self.cell(0, first).united(self.cell(last_row, last)) for first, last in runs(columns))
        fade_parts(painter, self.theme, self.map_rect, (*across, *down))

    def draw_titles(self, painter: QPainter) -> None:
        """What each axis is, where there is room to say it."""
        if self.frame.titles == "none":
            return
        painter.save()
        painter.setFont(self.frame.font)
        painter.setPen(QColor(self.theme.text_dim))
        area, line = self.map_rect, self.frame.line
        if self.frame.titles == "corner":
            width = self.frame.row_label_width
            for lines, name in ((2, KEY_CORNER), (1, QUERY_CORNER)):
                rect = QRectF(area.left() - GAP - width, area.top() - lines * line - 2, width, line)
                painter.drawText(rect, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, name)
            painter.restore()
            return
        painter.drawText(*self.key_title())
        x = area.left() - 2 * GAP - self.frame.row_label_width - line / 2
        painter.translate(x, area.center().y())
        painter.rotate(-90)
        painter.drawText(QRectF(-200, -line / 2, 400, line), _CENTRE, QUERY_TITLE)
        painter.restore()

    def key_title(self) -> tuple[QRectF, Qt.AlignmentFlag, str]:
        """Where the title of the keys stands, below the map's middle as far as the widget goes, and what it says."""
        metrics, room = QFontMetricsF(self.frame.font), self.frame.strip.width()
        texts = [f"{KEY_TITLE} · {self.key_note}", f"key · {self.key_note}"] if self.key_note else [KEY_TITLE]
        text = next((text for text in texts if metrics.horizontalAdvance(text) + 4 <= room), texts[-1])
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room - 4)
        width = metrics.horizontalAdvance(text) + 4
        left = min(max(0.0, self.map_rect.center().x() - width / 2), room - width)
        return QRectF(left, self.map_rect.bottom() + GAP, width, self.frame.line), _CENTRE, text

    def draw_selection(self, painter: QPainter, query: int, key: int) -> None:
        """A frame in the query accent about the selected cell, set off from any colour beneath."""
        if query not in self.view.rows.visible() or key not in self.view.columns.visible():
            return
        rect = self.cell(query, key)
        if rect.width() < _SMALLEST_FRAME or rect.height() < _SMALLEST_FRAME:
            width, height = max(rect.width(), _SMALLEST_FRAME), max(rect.height(), _SMALLEST_FRAME)
            rect = QRectF(rect.center().x() - width / 2, rect.center().y() - height / 2, width, height)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        scale = line_scale()
        for colour, width, outset in ((self.theme.surface, 1.0, 2.5), (self.theme.query, 2.0, 1.0)):
            outset *= scale
            painter.setPen(QPen(QColor(colour), width * scale, j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(rect.adjusted(-outset, -outset, outset, outset))
        painter.restore()

    def draw_crosshair(self, painter: QPainter, query: int, key: int) -> None:
        """Lines along the row and the column under the pointer."""
        painter.save()
        area = self.map_rect
        painter.setClipRect(area.adjusted(-1, -1, 1, 1))
        if query in self.view.rows.visible():
            for y in self._band(self.view.rows, query):
                _draw_crosshair_line(painter, QLineF(area.left(), y, area.right(), y))
        if key in self.view.columns.visible():
            for x in self._band(self.view.columns, key):
                _draw_crosshair_line(painter, QLineF(x, area.top(), x, area.bottom()))
        painter.restore()

    def _snapped(self, axis: Axis, cell: int) -> float:
        return axis.origin + round((cell - axis.offset) * axis.size * self.ratio) / self.ratio

    def _band(self, axis: Axis, cell: int) -> list[float]:
        """Both sides of a row or column, or its middle where it is too narrow to stand between two lines."""
        if axis.size < _NARROWEST_BAND:
            half = math.floor(axis.size * self.ratio / 2) / self.ratio
            return [self._snapped(axis, cell) + half + 0.5 / self.ratio]
        return [self._snapped(axis, cell) - 0.5, self._snapped(axis, cell + 1) + 0.5]


def _draw_crosshair_line(painter: QPainter, line: QLineF) -> None:
    # a pale line on a dark halo reads on every colour of the map and on the hatching
    for colour, width in ((QColor(0, 0, 0, 110), 3.0), (QColor(255, 255, 255, 235), 1.0)):
        painter.setPen(QPen(colour, wide(width), c=Qt.PenCapStyle.FlatCap))
        painter.drawLine(line)
