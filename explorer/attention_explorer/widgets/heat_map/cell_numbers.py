"""Values written in the cells of a map, where all of those that show have room for theirs."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QImage, QPainter

from attention_explorer.theme import contrast
from attention_explorer.widgets.heat_map.frame import enlarged
from attention_explorer.widgets.heat_map.painter import MapPainter
from attention_explorer.widgets.heat_map.tiled_values import TiledValues
from attention_explorer.widgets.heat_map.whole_values import WholeValues
from attention_explorer.widgets.number_text import MINUS

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
