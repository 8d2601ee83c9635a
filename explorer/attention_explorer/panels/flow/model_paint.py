"""How lanes, bars, arcs and chips of the picture of the whole model are drawn. Draws what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen

from attention_explorer.look.text_size import solid, wide
from attention_explorer.look.theme import Theme
from attention_explorer.panels.flow.model_layout import ModelLayout
from attention_explorer.panels.flow.model_scene import (
    Arcs,
    LaneLabel,
    ModelScene,
    OutputGroup,
    Place,
    Scales,
    StackScene,
)
from attention_models.protocol.flow import Written

LEAST_WEIGHT = 0.01  # arcs below this weight are not drawn
_FLAT = 1.3  # of a line: an arc that rises less is bowed
CORNER = 6.0

PART_ROLES = {"attention": "attention", "cross": "cross", "feed_forward": "feed_forward"}
"""The theme's colour of what a sublayer writes; of all others it is that of dim text."""

PART_NAMES = {
    "attention": "attention",
    "cross": "cross-attention",
    "feed_forward": "feed-forward",
    "other": "another module",
    "tokens": "token embedding",
    "positions": "position embedding",
    "segments": "segment embedding",
}
"""Who wrote, as it stands after "written by"."""


def part_colour(theme: Theme, part: str) -> QColor:
    return QColor(getattr(theme, PART_ROLES.get(part, "text_dim")))


def tinted(colour: str, share: float) -> QColor:
    """A colour to be laid over a surface."""
    result = QColor(colour)
    result.setAlphaF(share)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class ModelPainter:
    """Paints parts of a scene at their places."""

    layout: ModelLayout
    scene: ModelScene
    scales: Scales
    theme: Theme
    font: QFont
    bold: QFont

    # what follows neither pointer nor selection

    def draw_ground(self, painter: QPainter) -> None:
        """Lanes, bars and the lines between blocks."""
        for index, stack in enumerate(self.scene.stacks):
            self._draw_lines(painter, index)
            for position in self.layout.visible(index):
                self.draw_lane(painter, index, position, QColor(self.theme.stream))
            for position in self.layout.visible(index):
                self._draw_bars(painter, index, stack, position)

        self._draw_crossing(painter)

    def _draw_crossing(self, painter: QPainter) -> None:
        """What the encoder leaves goes to the cross-attention of every block of the decoder."""
        blocks = [(s, b) for s, stack in enumerate(self.scene.stacks) for b in self.layout.visible_blocks(s)]
        readers = []
        for stack, block in blocks:
            written = self.scene.stacks[stack].flow.blocks[block].written
            rows = [row for row, each in enumerate(written) if each.part == "cross"]
            readers += [(stack, block, self.layout.row_y(block, rows[0], len(written)))] if rows and stack else []
        if not readers:
            return
        colour = QColor(self.theme.cross)
        colour.setAlphaF(0.55)
        painter.setPen(QPen(colour, wide(2), c=Qt.PenCapStyle.RoundCap, j=Qt.PenJoinStyle.RoundJoin))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        top, x = self.layout.header + 1, self.layout.block_rect(readers[0][0], 0).left() - 12
        last = len(self.scene.stacks[0].labels) - 1
        path = QPainterPath(QPointF(self.layout.lane_x(0, 0), top))
        path.lineTo(self.layout.lane_x(0, last), top)
        path.lineTo(x - 8, top)
        path.quadTo(QPointF(x, top), QPointF(x, top + 8))
        path.lineTo(x, max(y for *_, y in readers))
        for *_, y in readers:
            path.moveTo(x, y)
            path.lineTo(x + 9, y)
            path.moveTo(x + 5, y - 4)
            path.lineTo(x + 9, y)
            path.lineTo(x + 5, y + 4)
        painter.drawPath(path)

    def _draw_lines(self, painter: QPainter, stack: int) -> None:
        painter.setPen(QPen(tinted(self.theme.border, 0.9), 1))
        for block in self.layout.visible_blocks(stack):
            rect = self.layout.block_rect(stack, block)
            y = round(rect.bottom()) + 0.5
            painter.drawLine(QPointF(rect.left() + self.layout.gutter, y), QPointF(rect.right(), y))

    def draw_lane(self, painter: QPainter, stack: int, position: int, colour: QColor) -> None:
        """The stream of one token, as wide as its norm at the top of every block."""
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawPath(self.lane(stack, position))

    def lane(self, stack: int, position: int) -> QPainterPath:
        layout, flow = self.layout, self.scene.stacks[stack].flow
        x = layout.lane_x(stack, position)
        norms = [flow.norms, *(block.norms for block in flow.blocks)]
        widths = [self._lane_width(float(norm[position])) for norm in norms]
        ys = [layout.block_bottom(block) for block in range(len(widths))]
        foot = layout.foot + layout.scroll_y
        path = QPainterPath(QPointF(x - widths[0] / 2, foot))
        path.lineTo(x - widths[0] / 2, ys[0])
        self._edge(path, x, [-width / 2 for width in widths], ys)
        if flow.blocks:
            path.lineTo(x - widths[-1] / 2, layout.header)
            path.lineTo(x + widths[-1] / 2, layout.header)
        self._edge(path, x, [width / 2 for width in widths[::-1]], ys[::-1])
        path.lineTo(x + widths[0] / 2, foot)
        path.closeSubpath()
        return path

    @staticmethod
    def _edge(path: QPainterPath, x: float, offsets: Sequence[float], ys: Sequence[float]) -> None:
        """From block to block without a corner, from the first of `ys` on."""
        path.lineTo(x + offsets[0], ys[0])
        for (before, after), (start, end) in zip(pairwise(offsets), pairwise(ys), strict=True):
            middle = (start + end) / 2
            path.cubicTo(QPointF(x + before, middle), QPointF(x + after, middle), QPointF(x + after, end))

    def _lane_width(self, norm: float) -> float:
        return max(1.2, self.layout.lane_room * self.scales.streams.share(norm))

    def lane_width_at(self, stack: int, block: int, position: int) -> float:
        """The wider of both ends of a lane in a block."""
        flow = self.scene.stacks[stack].flow
        norms = (
            flow.norms if block <= 0 else flow.blocks[block - 1].norms,
            *(b.norms for b in flow.blocks[block:][:1]),
        )
        return max(self._lane_width(float(norm[position])) for norm in norms)

    def _draw_bars(self, painter: QPainter, index: int, stack: StackScene, position: int) -> None:
        layout = self.layout
        for number in layout.visible_blocks(index):
            written = stack.flow.blocks[number].written
            x = layout.lane_x(index, position) + self.lane_width_at(index, number, position) / 2 + 3
            for row, each in enumerate(written):
                y = layout.row_y(number, row, len(written))
                self._draw_bar(painter, each, position, x, y, layout.bar_height(len(written)))
        written = stack.flow.embedding
        x = layout.lane_x(index, position) + self.lane_width_at(index, -1, position) / 2 + 3
        for row, each in enumerate(written):
            y = layout.embedding_y(row, len(written))
            if y < layout.foot:
                self._draw_bar(painter, each, position, x, y, min(5.0, layout.bar_height(len(written))))

    def _draw_bar(self, painter: QPainter, written: Written, position: int, x: float, y: float, height: float) -> None:
        norm, scale = float(written.norms[position]), self.scales.writes
        colour = part_colour(self.theme, written.part)
        width = max(1.5, self.layout.bar_room * scale.share(norm))
        rect = QRectF(x, y - height / 2, width, height)
        if written.off:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colour, wide(1), Qt.PenStyle.DotLine))
            painter.drawEllipse(QPointF(x + 3, y), 2.5, 2.5)
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawRoundedRect(rect, min(2.0, width / 2), min(2.0, height / 2))
        if scale.is_beyond(norm):
            draw_cut(painter, rect, self.theme)

    # what is selected

    def draw_selected_block(self, painter: QPainter, place: Place) -> None:
        rect = self.layout.block_rect(place.stack, place.block).adjusted(0, 1, 0, 0)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._chosen())
        painter.drawRoundedRect(rect.intersected(self.layout.area), CORNER, CORNER)

    def _chosen(self) -> QColor:
        return tinted(self.theme.query, 0.13 if self.theme.is_dark else 0.10)

    def draw_names(self, painter: QPainter, selected: Place) -> None:
        """The names of the blocks, left of each stack."""
        for index, stack in enumerate(self.scene.stacks):
            for block in (-1, *self.layout.visible_blocks(index)):
                rect = self.layout.gutter_rect(index, block)
                chosen = block >= 0 and (index, block) == selected[:2]
                if rect.left() > self.layout.block_rect(index, block).left() + 0.5:  # lanes were scrolled behind it
                    painter.fillRect(rect, QColor(self.theme.surface))
                    if chosen:
                        painter.fillRect(rect.adjusted(0, 1, 0, 0), self._chosen())
                if rect.center().y() < self.layout.header or rect.center().y() > self.layout.foot:
                    continue
                if index and chosen:  # what crosses from the other stack is drawn below it
                    painter.fillRect(rect.adjusted(0, 2, -4, -1), QColor(self.theme.surface))
                    painter.fillRect(rect.adjusted(0, 2, -4, -1), self._chosen())
                painter.setFont(self.bold if chosen else self.font)
                painter.setPen(QColor(self.theme.query if chosen else self.theme.text_dim))
                name = block_name(stack, block)
                room = rect.adjusted(0, 0, -10, 0)
                painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, name)

    def draw_arcs(self, painter: QPainter, arcs: Arcs, selected: Place, row: int) -> None:
        """From every key's lane to the query's, in the selected block; `row` is the bar of what attention wrote."""
        layout, colour = self.layout, QColor(self.theme.key)
        rows = len(self.scene.stacks[selected.stack].flow.blocks[selected.block].written) or 1
        target = QPointF(layout.lane_x(*selected[0::2]), layout.arc_y(selected.block, max(row, 0), rows))
        crosses = arcs.keys != selected.stack
        start = layout.header + 2 if crosses else layout.block_bottom(selected.block) - 2
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for position in np.argsort(arcs.weights):
            weight = float(min(1.0, arcs.weights[position]))
            if weight < LEAST_WEIGHT:
                continue
            colour.setAlphaF(solid(0.22 + 0.68 * weight**0.5))
            painter.setPen(QPen(colour, wide(0.9 + 4.6 * weight), c=Qt.PenCapStyle.RoundCap))
            source = QPointF(layout.lane_x(arcs.keys, int(position)), start)
            painter.drawPath(_arc(source, target, layout.block, layout.line, crosses))

    def draw_way_out(self, painter: QPainter, shown: OutputGroup, rect: QRectF) -> None:
        """From the top of a lane to what the model says there."""
        x = self.layout.lane_x(shown.stack, shown.position)
        if self.layout.is_under_names(shown.stack, shown.position):
            return
        top, colour = self.layout.header, QColor(self.theme.query)
        colour.setAlphaF(0.75)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour, wide(2), c=Qt.PenCapStyle.RoundCap, j=Qt.PenJoinStyle.RoundJoin))
        path = QPainterPath(QPointF(x, top))
        if rect.left() < x + 12:
            end = QPointF(x, rect.bottom() + 1)
            path.lineTo(end)
            path.moveTo(end + QPointF(-4, 4))
            path.lineTo(end)
            path.lineTo(end + QPointF(4, 4))
        else:
            end = QPointF(rect.left() - 8, rect.center().y())
            path.cubicTo(QPointF(x, end.y()), QPointF(x, end.y()), QPointF(min(x + 40, end.x()), end.y()))
            path.lineTo(end)
            path.moveTo(end + QPointF(-4, -4))
            path.lineTo(end)
            path.lineTo(end + QPointF(-4, 4))
        painter.drawPath(path)

    # the foot

    def draw_chips(
        self, painter: QPainter, query: tuple[int, int], key: tuple[int, int], hover: tuple[int, int]
    ) -> None:
        metrics = QFontMetricsF(self.font)
        last = []
        for index, stack in enumerate(self.scene.stacks):
            for position in self.layout.visible(index):
                here = (index, position)
                if self.layout.is_under_names(index, position):
                    continue
                if here in (query, key, hover):
                    last.append(here)  # drawn over their neighbours, for they are drawn whole
                else:
                    self._draw_chip(painter, metrics, stack.labels[position], here, hovered=False)
        for index, position in sorted(last, key=(hover, key, query).index):
            label = self.scene.stacks[index].labels[position]
            self._draw_chip(painter, metrics, label, (index, position), (index, position) == hover, whole=True)
        self._frame(painter, metrics, key, self.theme.key, 4.0 if key == query else 1.0)
        self._frame(painter, metrics, query, self.theme.query, 1.0)

    def chip_rect(self, metrics: QFontMetricsF, place: tuple[int, int], whole: bool = False) -> QRectF:
        """Where a token's chip lies: as wide as its word, within the room of its lane unless it is drawn whole."""
        slot = self.layout.chip_slot(*place)
        label = self.scene.stacks[place[0]].labels[place[1]]
        wanted = self.layout.chip_height if label.patch else metrics.horizontalAdvance(label.word) + 12
        width = max(16.0, wanted if whole else min(wanted, self._chip_room(metrics, place)))
        rect = QRectF(slot.center().x() - width / 2, slot.top(), width, slot.height())
        if whole:
            rect.moveLeft(min(max(rect.left(), 0.0), max(0.0, self.layout.width - width)))
        return rect

    def _chip_room(self, metrics: QFontMetricsF, place: tuple[int, int]) -> float:
        """More than the lane's own width where the words beside it are short."""
        labels, rows = self.scene.stacks[place[0]].labels, self.layout.chip_rows
        pitch = rows * self.layout.pitch
        beside = [labels[i] for i in (place[1] - rows, place[1] + rows) if 0 <= i < len(labels)]
        widths = [pitch if label.patch else min(pitch, metrics.horizontalAdvance(label.word) + 12) for label in beside]
        return max(pitch - 3, 2 * pitch - max(widths, default=pitch) - 3)

    def _draw_chip(
        self,
        painter: QPainter,
        metrics: QFontMetricsF,
        label: LaneLabel,
        place: tuple[int, int],
        hovered: bool,
        whole: bool = False,
    ) -> None:
        theme, rect = self.theme, self.chip_rect(metrics, place, whole)
        if label.patch is not None:
            painter.drawImage(rect, label.patch)
            return
        painter.setPen(QPen(QColor(theme.border_strong if hovered else theme.border), 1))
        painter.setBrush(QColor(theme.surface_hover if hovered else theme.surface_alt))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), CORNER, CORNER)
        painter.setFont(self.font)
        painter.setPen(QColor(theme.text_dim if label.special else theme.text))
        text = metrics.elidedText(label.word, Qt.TextElideMode.ElideRight, rect.width() - 7)
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)

    def _frame(
        self, painter: QPainter, metrics: QFontMetricsF, place: tuple[int, int], colour: str, inset: float
    ) -> None:
        if place[0] < 0 or place[1] not in self.layout.visible(place[0]) or self.layout.is_under_names(*place):
            return
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colour), wide(2)))
        rect = self.chip_rect(metrics, place, whole=True).adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(rect, CORNER, CORNER)


def block_name(stack: StackScene, block: int) -> str:
    """ "block 5"; "embedding" below them."""
    return "embedding" if block < 0 else f"block {stack.flow.blocks[block].ref.layer}"


def draw_cut(painter: QPainter, rect: QRectF, theme: Theme) -> None:
    """Two strokes through the end of a bar that is longer than it is drawn."""
    painter.setPen(QPen(QColor(theme.surface), 1.6))
    for offset in (7.0, 11.0):
        x = rect.right() - offset
        painter.drawLine(QPointF(x - 2, rect.bottom() + 1), QPointF(x + 2, rect.top() - 1))


def legend_rows(scene: ModelScene, scales: Scales) -> list[tuple[str, str]]:
    """What colours mean: the theme's role, and the words, short enough to stand beside what the model says."""
    rows = [(PART_ROLES.get(part, "text_dim"), f"written by {PART_NAMES[part]}") for part in scene.parts()]
    rows.append(("stream", "residual stream (width = norm)"))
    if scales.writes.cuts or scales.streams.cuts:
        rows.append(("", "⁄⁄  longer than drawn: point at it"))
    return rows


def _arc(source: QPointF, target: QPointF, block: float, line: float, crosses: bool) -> QPainterPath:
    path = QPainterPath(source)
    across = target.x() - source.x()
    if crosses:
        path.cubicTo(
            QPointF(source.x(), source.y() - 0.2 * block),
            QPointF(source.x() + 0.55 * across, target.y()),
            target,
        )
        return path
    if abs(across) < 1:  # a token that attends to itself
        size = min(9.0, 0.2 * block)
        path.moveTo(target.x(), target.y() + 0.6 * size)
        path.cubicTo(
            QPointF(target.x() - 2 * size, target.y() + 0.8 * size),
            QPointF(target.x() - 2 * size, target.y() - 1.4 * size),
            QPointF(target.x(), target.y() - size),
        )
        return path
    if source.y() - target.y() < _FLAT * line:  # in a low block it would be a line: it is bowed over the bars
        high = target.y() - min(0.72 * block, 0.28 * abs(across)) / 0.75
        path.cubicTo(QPointF(source.x() + 0.12 * across, high), QPointF(target.x() - 0.12 * across, high), target)
        return path
    reach = min(abs(across) * 0.8, 46.0) * (1 if across > 0 else -1)
    end = QPointF(source.x() + reach, target.y())
    path.cubicTo(QPointF(source.x(), target.y() + 2), QPointF(source.x() + 0.4 * reach, target.y()), end)
    path.lineTo(target)
    return path
