"""How a block is drawn around its boxes: the residual stream, the arrows, the sums, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen

from attention_explorer.panels.flow.block_layout import LANE, Arrow
from attention_explorer.panels.flow.box_paint import BoxPainter, draw_arrowhead
from attention_explorer.panels.flow.model_paint import part_colour
from attention_explorer.text_size import wide
from attention_models.protocol.flow import BlockView


def draw_block(
    painter: QPainter, artist: BoxPainter, view: BlockView, ends: tuple[str, str], heading: tuple[str, str]
) -> None:
    """All that follows neither pointer nor Play. `ends` and `heading` as `BlockPicture` has them."""
    layout = artist.layout
    _draw_stream(painter, artist, ends, heading)
    for arrow in layout.arrows:
        colour = part_colour(artist.theme, arrow.part) if arrow.part else QColor(artist.theme.border_strong)
        draw_arrow(painter, arrow, colour, 2.0)
        if arrow.has_head:
            draw_arrowhead(painter, arrow.points[-1] - QPointF(0, 1), colour, 4.5)
    for number, box in enumerate(view.boxes):
        if number in layout.rects:
            artist.draw(painter, number, box)
    for number, at in layout.sums.items():
        _draw_sum(painter, artist, at, view.boxes[number].part)


def draw_arrow(painter: QPainter, arrow: Arrow, colour: QColor, width: float) -> QPainterPath:
    path = _path(arrow.points)
    painter.setPen(QPen(colour, wide(width), c=Qt.PenCapStyle.FlatCap, j=Qt.PenJoinStyle.RoundJoin))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)
    return path


def _draw_stream(painter: QPainter, artist: BoxPainter, ends: tuple[str, str], heading: tuple[str, str]) -> None:
    layout, theme = artist.layout, artist.theme
    below, above = ends
    metrics = QFontMetricsF(artist.font)
    colour = QColor(theme.query)
    painter.setPen(QPen(colour, 6, c=Qt.PenCapStyle.FlatCap))
    painter.drawLine(QPointF(LANE, layout.foot), QPointF(LANE, layout.top + 11))
    draw_arrowhead(painter, QPointF(LANE, layout.top + 1), colour, 9)
    painter.setFont(artist.font)
    painter.setPen(QColor(theme.text))
    title, note = heading
    bold = QFontMetricsF(artist.bold)
    widths = bold.horizontalAdvance(title), metrics.horizontalAdvance(note) + (12 if note else 0)
    room = layout.width - 4.0 - (LANE + 20 + metrics.horizontalAdvance(above) + 14)
    note, widths = (note, widths) if sum(widths) <= room else ("", (widths[0], 0.0))
    if widths[0] <= room:
        left = layout.width - 4.0 - sum(widths)
        painter.setFont(artist.bold)
        painter.setPen(QColor(theme.text))
        painter.drawText(QRectF(left, layout.top, widths[0] + 1, metrics.height()), _VCENTRE, title)
        painter.setFont(artist.font)
        painter.setPen(QColor(theme.text_dim))
        right = QRectF(left + widths[0] + 12, layout.top, widths[1], metrics.height())
        painter.drawText(right, _VCENTRE, note)
    painter.setFont(artist.font)
    painter.setPen(QColor(theme.text))
    room = layout.width - LANE - 24
    for words, y in ((above, layout.top), (below, layout.foot - metrics.height())):
        text = metrics.elidedText(words, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRectF(LANE + 20, y, room, metrics.height()), _VCENTRE, text)


def _draw_sum(painter: QPainter, artist: BoxPainter, at: QPointF, part: str) -> None:
    painter.setPen(QPen(part_colour(artist.theme, part), wide(2)))
    painter.setBrush(QColor(artist.theme.surface))
    painter.drawEllipse(at, 11, 11)
    painter.drawLine(at - QPointF(5, 0), at + QPointF(5, 0))
    painter.drawLine(at - QPointF(0, 5), at + QPointF(0, 5))


_VCENTRE = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


def _path(points: Sequence[QPointF]) -> QPainterPath:
    """Straight runs with rounded corners."""
    path = QPainterPath(points[0])
    for corner, after in pairwise(points[1:]):
        before = path.currentPosition()
        radius = min(8.0, _length(corner - before) / 2, _length(after - corner) / 2)
        path.lineTo(corner + (before - corner) * (radius / max(_length(corner - before), 1e-6)))
        path.quadTo(corner, corner + (after - corner) * (radius / max(_length(after - corner), 1e-6)))
    path.lineTo(points[-1])
    return path


def _length(vector: QPointF) -> float:
    return float((vector.x() ** 2 + vector.y() ** 2) ** 0.5)
