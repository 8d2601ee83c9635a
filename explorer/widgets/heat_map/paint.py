"""How a heat map is drawn: room for labels, the map with its hatching, axes, selection, crosshair, readout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPen

from explorer.theme import Theme
from explorer.widgets.heat_map.view import Axis, MapView, labelled

QUERY_TITLE = "query (looks)"
KEY_TITLE = "key (is looked at)"
HINT = "wheel zooms, drag pans, 0 shows all"
STILL_HINT = "+ and − zoom, 0 shows all"

_LONGEST_LABEL = 112.0
_MOST_OVERHANG = 28.0  # the last column labels are elided rather than cost the map more than this
_NARROWEST = 16.0  # pixels of a piece of the readout that is cut: room for its dots
_GAP = 6.0
_SLANT = math.sqrt(0.5)  # column labels rise at 45 degrees
_LEAN = 0.2  # how far right of its cell's middle a column label starts, in lines
_HATCH_STEP = 11.0
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignAbsolute
_CENTRE = Qt.AlignmentFlag.AlignCenter


@dataclass(frozen=True)
class Frame:
    """The parts of the widget around the map, and the fonts they are measured in."""

    font: QFont
    bold: QFont
    room: QRectF  # what the map may take up
    strip: QRectF  # the readout
    label_limit: float  # pixels a label may take before it is elided
    row_label_width: float
    line: float  # height of a line of text


def frame_for(font: QFont, bold: QFont, size: QSize, rows: Sequence[str], columns: Sequence[str]) -> Frame:
    """Divide a widget of `size` between labels, titles, readout and map."""
    metrics = QFontMetricsF(bold)  # any label may turn bold, and must not move the map when it does
    line = metrics.height()
    limit = min(_LONGEST_LABEL, 0.2 * size.width(), 0.3 * size.height())
    widths = {label: min(limit, metrics.horizontalAdvance(label)) for label in {*rows, *columns}}  # thousands repeat
    row_width = max((widths[label] for label in rows), default=0.0)
    column_widths = [widths[label] for label in columns]
    left = line + _GAP + row_width + _GAP
    top = (max(column_widths, default=0.0) + line) * _SLANT + 2
    strip = QRectF(0, size.height() - line - 8, size.width(), line + 8)
    bottom = strip.height() + line + 2 * _GAP
    cell = max(1.0, (size.width() - left) / max(1, len(columns)))
    from_right = np.array(column_widths[::-1])
    beyond_middle = (from_right + line / 2) * _SLANT + line * _LEAN
    overhang = float(np.max(beyond_middle - (np.arange(len(columns)) + 0.5) * cell, initial=0.0))
    right = min(max(4.0, overhang + 2), _MOST_OVERHANG)
    room = QRectF(left, top, max(1.0, size.width() - left - right), max(1.0, size.height() - top - bottom))
    return Frame(font, bold, room, strip, limit, row_width, line)


@dataclass(frozen=True)
class HeatMapPainter:
    """Draws one state of the map; made anew for every paint."""

    theme: Theme
    frame: Frame
    view: MapView
    row_labels: Sequence[str]
    column_labels: Sequence[str]

    @property
    def map_rect(self) -> QRectF:
        rows, columns = self.view.rows, self.view.columns
        return QRectF(columns.origin, rows.origin, columns.extent, rows.extent)

    def draw_map(self, painter: QPainter, image: QImage, has_gaps: bool) -> None:
        """The cells; where the image is transparent, the hatching shows through."""
        area = self.map_rect
        if has_gaps:
            painter.save()
            painter.setClipRect(area)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(self.theme.hatch), 1.0))
            height = area.height()
            for step in range(1, int((area.width() + height) / _HATCH_STEP) + 1):
                x = area.left() + step * _HATCH_STEP
                painter.drawLine(QLineF(x, area.top(), x - height, area.bottom()))
            painter.restore()
            painter.setPen(QPen(QColor(self.theme.hatch), 1.0))
            painter.drawRect(area.adjusted(-0.5, -0.5, 0.5, 0.5))
        painter.drawImage(area.topLeft(), image)

    def draw_titles(self, painter: QPainter) -> None:
        """What each axis is."""
        painter.save()
        painter.setFont(self.frame.font)
        painter.setPen(QColor(self.theme.text_dim))
        area, line = self.map_rect, self.frame.line
        title = QRectF(area.left(), area.bottom() + _GAP, area.width(), line)
        painter.drawText(_widened(title, painter, KEY_TITLE), _CENTRE, KEY_TITLE)
        x = area.left() - 2 * _GAP - self.frame.row_label_width - line / 2
        painter.translate(x, area.center().y())
        painter.rotate(-90)
        painter.drawText(QRectF(-200, -line / 2, 400, line), _CENTRE, QUERY_TITLE)
        painter.restore()

    def draw_labels(self, painter: QPainter, selection: tuple[int, int], hover: tuple[int, int]) -> None:
        """Token labels, thinned out where they would overlap; those selected or pointed at are bold, in the accents."""
        painter.save()
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        bold_rows, bold_columns = _foremost(selection[0], hover[0]), _foremost(selection[1], hover[1])
        for row in labelled(self.view.rows, self.frame.line * 0.95, bold_rows):
            self._row_label(painter, row, bold=row in bold_rows)
        for column in labelled(self.view.columns, self.frame.line * 1.0, bold_columns):
            self._column_label(painter, column, bold=column in bold_columns)
        painter.restore()

    def draw_selection(self, painter: QPainter, query: int, key: int, ratio: float) -> None:
        """A frame in the query accent about the selected cell, set off from any colour beneath."""
        if query not in self.view.rows.visible() or key not in self.view.columns.visible():
            return
        rect = self.cell(query, key, ratio)
        smallest = 7.0  # a frame about a cell of a pixel or two must still be found
        if rect.width() < smallest or rect.height() < smallest:
            width, height = max(rect.width(), smallest), max(rect.height(), smallest)
            rect = QRectF(rect.center().x() - width / 2, rect.center().y() - height / 2, width, height)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for colour, width, outset in ((self.theme.surface, 1.0, 2.5), (self.theme.query, 2.0, 1.0)):
            painter.setPen(QPen(QColor(colour), width, j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(rect.adjusted(-outset, -outset, outset, outset))
        painter.restore()

    def draw_hover(self, painter: QPainter, query: int, key: int, ratio: float) -> None:
        """Lines along the row and the column under the pointer."""
        painter.save()
        area = self.map_rect
        painter.setClipRect(area.adjusted(-1, -1, 1, 1))
        if query in self.view.rows.visible():
            for y in _band(self.view.rows, query, ratio):
                self._hover_line(painter, QLineF(area.left(), y, area.right(), y))
        if key in self.view.columns.visible():
            for x in _band(self.view.columns, key, ratio):
                self._hover_line(painter, QLineF(x, area.top(), x, area.bottom()))
        painter.restore()

    def draw_strip(self, painter: QPainter, parts: list[tuple[str, str]], hint: str = HINT) -> None:
        """The readout, each part in the theme colour of its role; what the pointer can do, where there is room."""
        painter.save()
        strip = self.frame.strip
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.theme.surface_alt))
        painter.drawRoundedRect(strip, 6, 6)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # the sentence, whatever the script of its tokens
        painter.setFont(self.frame.bold)
        metrics = QFontMetricsF(self.frame.bold)
        x, widths = strip.left() + 10, [metrics.horizontalAdvance(text) for text, _ in parts]
        limits = piece_limits(widths, [role == "text_dim" for _, role in parts], strip.width() - 20)
        for (text, role), limit in zip(parts, limits, strict=True):
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, limit)
            width = metrics.horizontalAdvance(shown)
            painter.setPen(QColor(getattr(self.theme, role)))
            painter.drawText(QRectF(x, strip.top(), width + 2, strip.height()), Qt.AlignmentFlag.AlignVCenter, shown)
            x += width
        painter.setFont(self.frame.font)
        hint_width = QFontMetricsF(self.frame.font).horizontalAdvance(hint) + 10
        if strip.right() - x > hint_width + 16:
            painter.setPen(QColor(self.theme.text_dim))
            painter.drawText(strip.adjusted(0, 0, -10, 0), _RIGHT, hint)
        painter.restore()

    def _row_label(self, painter: QPainter, row: int, bold: bool) -> None:
        width, line = self.frame.row_label_width, self.frame.line
        rect = QRectF(self.map_rect.left() - _GAP - width, self.view.rows.centre(row) - line / 2, width, line)
        text = self._set_text(painter, self.row_labels[row], "query" if bold else "text", bold, width)
        painter.drawText(rect, _RIGHT, text)

    def _column_label(self, painter: QPainter, column: int, bold: bool) -> None:
        line = self.frame.line
        x = self.view.columns.centre(column) + line * _LEAN
        limit = min(self.frame.label_limit, (self.frame.strip.right() - x) / _SLANT - line / 2)
        text = self._set_text(painter, self.column_labels[column], "key" if bold else "text", bold, limit)
        painter.save()
        painter.translate(x, self.map_rect.top() - line * 0.2 - 3)
        painter.rotate(-45)
        rect = QRectF(0, -line / 2, self.frame.label_limit + 2, line)
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignAbsolute, text)
        painter.restore()

    def _set_text(self, painter: QPainter, label: str, role: str, bold: bool, limit: float) -> str:
        """Take the font and colour of a label, and return as much of it as fits."""
        font = self.frame.bold if bold else self.frame.font
        painter.setFont(font)
        painter.setPen(QColor(getattr(self.theme, role)))
        return QFontMetricsF(font).elidedText(label, Qt.TextElideMode.ElideMiddle, limit + 1)

    def _hover_line(self, painter: QPainter, line: QLineF) -> None:
        # a pale line on a dark halo reads on every colour of the map and on the hatching
        for colour, width in ((QColor(0, 0, 0, 110), 3.0), (QColor(255, 255, 255, 235), 1.0)):
            painter.setPen(QPen(colour, width, c=Qt.PenCapStyle.FlatCap))
            painter.drawLine(line)

    def cell(self, row: int, column: int, ratio: float) -> QRectF:
        """A cell's rectangle on whole device pixels, as the image draws it."""
        left, right = _snapped(self.view.columns, column, ratio), _snapped(self.view.columns, column + 1, ratio)
        top, bottom = _snapped(self.view.rows, row, ratio), _snapped(self.view.rows, row + 1, ratio)
        return QRectF(left, top, right - left, bottom - top)


def _foremost(selected: int, hovered: int) -> list[int]:
    """The cells of one axis that must have a label; the one pointed at comes first."""
    return [cell for cell in dict.fromkeys((hovered, selected)) if cell >= 0]


def _snapped(axis: Axis, cell: int, ratio: float) -> float:
    return axis.origin + round((cell - axis.offset) * axis.size * ratio) / ratio


def _band(axis: Axis, cell: int, ratio: float) -> list[float]:
    """Both sides of a row or column, or its middle where it is too narrow to stand between two lines."""
    if axis.size < 5:
        return [_snapped(axis, cell, ratio) + math.floor(axis.size * ratio / 2) / ratio + 0.5 / ratio]
    return [_snapped(axis, cell, ratio) - 0.5, _snapped(axis, cell + 1, ratio) + 0.5]


def _widened(rect: QRectF, painter: QPainter, text: str) -> QRectF:
    """The rectangle, grown about its middle until the text fits."""
    lacking = max(0.0, painter.fontMetrics().horizontalAdvance(text) + 4 - rect.width())
    return rect.adjusted(-lacking / 2, 0, lacking / 2, 0)


def label_at(frame: Frame, view: MapView, position: QPointF) -> tuple[str, int]:
    """Which label lies under a position: ("row", index), ("column", index), or ("", -1)."""
    map_left, map_top = view.columns.origin, view.rows.origin
    if map_left - _GAP - frame.row_label_width <= position.x() < map_left:
        row = view.rows.cell_at(position.y())
        return ("row", row) if row >= 0 else ("", -1)
    if position.y() < map_top:
        rise = map_top - position.y()  # labels lean right by as much as they rise
        column = view.columns.cell_at(position.x() - rise)
        return ("column", column) if column >= 0 else ("", -1)
    return ("", -1)


def piece_limits(widths: list[float], minor: list[bool], room: float) -> list[float]:
    """How wide each piece of a readout may be so that all fit.

    The longest are cut, those that are `minor` first, and the last, a value, never.
    """
    limits = list(widths)
    for cut in (True, False):
        these = [i for i, is_minor in enumerate(minor[:-1]) if is_minor is cut]
        left = room - sum(limits) + sum(limits[i] for i in these)
        low, high = _NARROWEST if cut else 0.0, max((limits[i] for i in these), default=0.0)
        if sum(limits[i] for i in these) <= left:
            continue
        for _ in range(20):  # to a thousandth of a pixel
            middle = (low + high) / 2
            fits = sum(min(limits[i], middle) for i in these) <= left
            low, high = (middle, high) if fits else (low, middle)
        for i in these:
            limits[i] = min(limits[i], low)
    return [limit + 1 for limit in limits]
