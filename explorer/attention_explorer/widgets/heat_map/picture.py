"""What of a map is kept from one paint to the next: its cells as a picture, and the pictures of its labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QImage, QPainter, QPixmap, QTransform

from attention_explorer.look.colour_maps import ColourTable
from attention_explorer.look.theme import Theme, contrast
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.cell_image import is_of_other_scale
from attention_explorer.widgets.heat_map.frame import GAP, LEAN, Frame, enlarged
from attention_explorer.widgets.heat_map.painter import MapPainter
from attention_explorer.widgets.heat_map.values import TiledValues, WholeValues
from attention_explorer.widgets.heat_map.view import MapView, label_centre, labelled
from attention_explorer.widgets.labels import elided
from attention_explorer.widgets.number_text import MINUS

# The tokens' names along both axes, each drawn once and kept as a picture while place, text and look stay.


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


# Values written in the cells of a map, where all of those that show have room for theirs.


_MOST_CELLS = 900
_AROUND = 4.0  # pixels beside a number, both sides together
_LARGEST = 40.0  # pixels, of numbers that grow with their cells
_FILLED = 0.6  # of a cell, by a number that has grown
_HIGH = 1.4  # heights of a capital letter that a cell has at least
_BLACK, _WHITE = "#000000", "#ffffff"


def draw_numbers(
    painter: QPainter, artist: MapPainter, image: QImage, source: WholeValues | TiledValues, font: QFont
) -> None:
    """Write the value of each cell that wholly shows; of none, where one would not fit or they are too many.

    Args:
        image: the cells as drawn, from which a number takes black or white, whichever reads better.
    """
    view, metrics = artist.view, QFontMetricsF(font)
    rows, columns = view.rows.visible(), view.columns.visible()
    if view.rows.size < _HIGH * metrics.capHeight() or len(rows) * len(columns) > _MOST_CELLS:
        return
    values = {
        (row, column): value
        for row in rows
        for column in columns
        if (value := source.value_of(row, column, view, artist.ratio)) is not None
    }
    for short in (False, True):
        texts = {cell: number(value, short) for cell, value in values.items()}
        widest = max(map(metrics.horizontalAdvance, set(texts.values())), default=0.0)
        if widest + _AROUND <= view.columns.size:
            break
    else:
        return
    larger = min(
        _LARGEST / QFontInfo(font).pixelSize(),
        _FILLED * view.columns.size / max(widest, 1.0),
        _FILLED * view.rows.size / (_HIGH * metrics.capHeight()),
    )
    painter.save()
    painter.setFont(enlarged(font, larger))
    area = artist.map_rect
    for cell, text in texts.items():
        rect = artist.cell(*cell)
        if not area.adjusted(-1, -1, 1, 1).contains(rect):
            continue
        at = (rect.center() - area.topLeft()) * artist.ratio
        ground = image.pixelColor(round(at.x()), round(at.y())).name()
        painter.setPen(QColor(max((_BLACK, _WHITE), key=lambda ink: contrast(ink, ground))))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)
    painter.restore()


def number(value: float, short: bool) -> str:
    """Two decimals, fewer from 10 on; 0 is 0 itself. A `short` one leaves out the 0 before the point."""
    size = abs(value)
    if size == 0:
        return "0"
    text = f"{size:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"
    text = text.removeprefix("0") if short and size < 1 else text
    return MINUS + text if value < 0 else text


Source = WholeValues | TiledValues


class MapPicture:
    """Draws what follows neither pointer nor selection once, until somebody says that it is another one."""

    def __init__(self) -> None:
        self._cells: QPixmap | None = None
        self._labels = AxisLabels()
        self._look: LabelLook | None = None

    def forget_cells(self) -> None:
        """Values, colours or the view are others now."""
        self._cells = None

    def forget_labels(self) -> None:
        """Names, fonts, theme or the view are others now."""
        self._look = None

    def draw_cells(
        self, painter: QPainter, artist: MapPainter, source: Source, table: ColourTable, size: QSize
    ) -> None:
        """The cells and the titles of the axes, in a widget of `size`."""
        if is_of_other_scale(painter, artist.ratio):
            painter.save()
            _draw(painter, artist, source, table)
            painter.restore()
            return
        if self._cells is None or self._cells.devicePixelRatio() != artist.ratio:
            self._cells = _drawn(artist, source, table, size)
        painter.drawPixmap(0, 0, self._cells)

    def draw_labels(
        self,
        painter: QPainter,
        artist: MapPainter,
        rows: Sequence[str],
        columns: Sequence[str],
        selection: tuple[int, int],
        hover: tuple[int, int],
    ) -> None:
        """The names along both axes; see `AxisLabels.draw`."""
        if self._look is None or self._look.ratio != artist.ratio:
            self._look = LabelLook(artist.theme, artist.frame, artist.view, rows, columns, artist.ratio)
        self._labels.draw(painter, self._look, selection, hover)


def _drawn(artist: MapPainter, source: Source, table: ColourTable, size: QSize) -> QPixmap:
    pixmap = QPixmap(size * artist.ratio)
    pixmap.setDevicePixelRatio(artist.ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    _draw(painter, artist, source, table)
    painter.end()
    return pixmap


def _draw(painter: QPainter, artist: MapPainter, source: Source, table: ColourTable) -> None:
    image = cell_image.to_image(source.pixels(artist.view, artist.ratio), cell_image.colours(table, *source.span))
    image.setDevicePixelRatio(artist.ratio)
    artist.draw_map(painter, image, source.has_gaps)
    if artist.frame.has_numbers:
        draw_numbers(painter, artist, image, source, artist.frame.font)
    artist.draw_titles(painter)
