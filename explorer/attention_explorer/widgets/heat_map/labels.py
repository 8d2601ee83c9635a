"""The tokens' names along both axes, each drawn once and kept as a picture while place, text and look stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPixmap, QTransform

from attention_explorer.theme import Theme
from attention_explorer.widgets.arrow_text import elided
from attention_explorer.widgets.heat_map.frame import GAP, LEAN, Frame
from attention_explorer.widgets.heat_map.view import MapView, label_centre, labelled
from attention_explorer.widgets.kept_pictures import is_of_other_scale

Side = Literal["row", "column"]

_AS_WRITTEN = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignAbsolute
_MOST_PICTURES = 600  # the pointer may pass over thousands of cells
_COLUMN_ANGLE = -45.0


@dataclass(frozen=True, eq=False)
class LabelLook:
    """What the pictures of labels depend on. Compared by identity: a widget replaces it when anything changes."""

    theme: Theme
    frame: Frame
    view: MapView
    rows: Sequence[str]
    columns: Sequence[str]
    ratio: float  # device pixels a logical one


class _Picture(NamedTuple):
    corner: QPointF
    pixmap: QPixmap


class AxisLabels:
    """Draws labels, thinned out where they would overlap."""

    def __init__(self) -> None:
        self._look: LabelLook | None = None
        self._pictures: dict[tuple[Side, int, bool], _Picture] = {}

    def draw(self, painter: QPainter, look: LabelLook, selection: tuple[int, int], hover: tuple[int, int]) -> None:
        """All labels that have room; those of the selected cell and of the one pointed at are bold, in the accents.

        `selection` and `hover` are (query, key), -1 for none.
        """
        if look is not self._look or len(self._pictures) > _MOST_PICTURES:
            self._look = look
            self._pictures.clear()
        bold_rows, bold_columns = _foremost(selection[0], hover[0]), _foremost(selection[1], hover[1])
        for row in labelled(look.view.rows, look.frame.label_line * 0.95, bold_rows):
            self._draw_picture(painter, look, "row", row, row in bold_rows)
        for column in labelled(look.view.columns, look.frame.label_line, bold_columns):
            self._draw_picture(painter, look, "column", column, column in bold_columns)

    def _draw_picture(self, painter: QPainter, look: LabelLook, side: Side, cell: int, bold: bool) -> None:
        if is_of_other_scale(painter, look.ratio):
            painter.save()
            _write(painter, _label(look, side, cell, bold))
            painter.restore()
            return
        picture = self._pictures.get((side, cell, bold))
        if picture is None:
            picture = self._pictures[side, cell, bold] = draw_label(look, side, cell, bold)
        painter.drawPixmap(picture.corner, picture.pixmap)


class _Label(NamedTuple):
    text: str
    font: QFont
    colour: str
    rect: QRectF
    turned: QTransform  # of `rect` to its place in the widget
    alignment: Qt.AlignmentFlag


def draw_label(look: LabelLook, side: Side, cell: int, bold: bool) -> _Picture:
    """The picture of one label, and where its corner belongs in the widget."""
    label = _label(look, side, cell, bold)
    corner, pixmap = _blank(label.turned.mapRect(label.rect), look.ratio)
    painter = QPainter(pixmap)
    painter.translate(-corner)
    _write(painter, label)
    painter.end()
    return _Picture(corner, pixmap)


def _label(look: LabelLook, side: Side, cell: int, bold: bool) -> _Label:
    frame, view = look.frame, look.view
    font, line = (frame.label_bold if bold else frame.label_font), frame.label_line
    if side == "row":
        width = frame.row_label_width
        turned = QTransform.fromTranslate(view.columns.origin - GAP - width, label_centre(view.rows, cell, line))
        text = _elided(font, look.rows[cell], width)
        accent, alignment = look.theme.query, Qt.AlignmentFlag.AlignRight | _AS_WRITTEN
    else:
        middle = label_centre(view.columns, cell, line)
        turned = QTransform.fromTranslate(middle + line * LEAN, view.rows.origin - line * 0.2 - 3)
        turned = turned.rotate(_COLUMN_ANGLE)
        text = _elided(font, look.columns[cell], frame.column_room(middle))
        width = frame.label_limit + 2
        accent, alignment = look.theme.key, Qt.AlignmentFlag.AlignLeft | _AS_WRITTEN
    rect = QRectF(0, -line / 2, width, line)
    return _Label(text, font, accent if bold else look.theme.text, rect, turned, alignment)


def _write(painter: QPainter, label: _Label) -> None:
    """At its place in the widget that the painter is in."""
    painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    painter.setFont(label.font)
    painter.setPen(QColor(label.colour))
    painter.setTransform(label.turned, combine=True)
    painter.drawText(label.rect, label.alignment, label.text)


def _blank(area: QRectF, ratio: float) -> tuple[QPointF, QPixmap]:
    """A picture of `area`, on whole device pixels so that it looks as if drawn in place, and its corner."""
    left, top = math.floor(area.left() * ratio) - 1, math.floor(area.top() * ratio) - 1
    right, bottom = math.ceil(area.right() * ratio) + 1, math.ceil(area.bottom() * ratio) + 1
    pixmap = QPixmap(QSize(right - left, bottom - top))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    return QPointF(left / ratio, top / ratio), pixmap


def _elided(font: QFont, label: str, limit: float) -> str:
    return elided(QFontMetricsF(font), label, limit + 1)


def _foremost(selected: int, hovered: int) -> list[int]:
    """The cells of one axis that must have a label; the one pointed at comes first."""
    return [cell for cell in dict.fromkeys((hovered, selected)) if cell >= 0]
