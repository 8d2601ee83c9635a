"""How the boxes of a block are drawn: each kind with what there is to see of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPen

from attention_explorer.look.text_size import wide
from attention_explorer.look.theme import Theme
from attention_explorer.panels.flow.block_layout import NAMES, PAD, BlockLayout, strip_height
from attention_explorer.panels.flow.box_text import Around, fitting, is_off, neuron_name, title, ways_to_say
from attention_explorer.panels.flow.ground import draw_stripes
from attention_explorer.panels.flow.model_paint import part_colour, tinted
from attention_explorer.widgets.number_text import signed
from attention_explorer.widgets.token_text import isolated
from attention_models.protocol.flow import Box, FeedForwardBox, HeadsBox, NormBox, OutputBox, ProjectionBox

_CORNER = 7.0
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_STRIPES = 0.22  # of a box's width
_MOST_STRIPES = 230.0
NEURON_WIDTH = 3.3
"""The least room for a neuron with the numbers below it, in heights of a line."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxPainter:
    layout: BlockLayout
    theme: Theme
    font: QFont
    bold: QFont
    around: Around
    head_of: Callable[[Box], int]  # the selected one, -1 for none of a box
    pill: Callable[[int], str]  # what the switch in a box says, "" for none

    def draw(self, painter: QPainter, number: int, box: Box) -> None:
        rect = self.layout.rects[number]
        self._frame(painter, rect, box)
        self._title(painter, number, rect, box)
        match box:
            case NormBox():
                self._norm(painter, number, rect, box)
            case HeadsBox():
                self._heads(painter, number, box)
            case OutputBox(norms=norms) if norms is not None and self.shows_norms(number, box):
                self._head_norms(painter, number, rect, norms, self.head_of(box))
            case FeedForwardBox(neurons=neurons) if neurons:
                self._neurons(painter, number, box)

    def _frame(self, painter: QPainter, rect: QRectF, box: Box) -> None:
        theme = self.theme
        writes = isinstance(box, (OutputBox, FeedForwardBox))
        colour = QColor(theme.border)
        if writes:
            colour = part_colour(theme, box.part)
        elif isinstance(box, ProjectionBox):
            colour = QColor({"q": theme.query, "k": theme.key}.get(box.makes, theme.border_strong))
        style = Qt.PenStyle.DashLine if is_off(box) else Qt.PenStyle.SolidLine
        painter.setPen(QPen(colour, wide(1.6 if writes or isinstance(box, ProjectionBox) else 1.0), style))
        painter.setBrush(QColor(theme.surface_alt))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), _CORNER, _CORNER)

    def _title(self, painter: QPainter, number: int, rect: QRectF, box: Box) -> None:
        layout, metrics = self.layout, QFontMetricsF(self.bold)
        head = title(box)
        right = self._title_end(number, rect, box)
        room = max(20.0, right - rect.left() - PAD)
        painter.setFont(self.bold)
        painter.setPen(QColor(self.theme.text))
        first = QRectF(rect.left() + PAD, rect.top() + (4 if layout.dense else 7), room, layout.line + 2)
        shown = metrics.elidedText(head, Qt.TextElideMode.ElideRight, room)
        painter.drawText(first, _LEFT, shown)
        painter.setFont(self.font)
        painter.setPen(QColor(self.theme.text_dim))
        start = first.left() + metrics.horizontalAdvance(shown) + 10
        second = first.translated(0, layout.line + 1)
        second.setRight(self._words_end(number, rect, box))
        if layout.dense:
            end = min(right, self._words_end(number, rect, box))
            second = QRectF(start, first.top(), max(0.0, end - start), first.height())
        plain = QFontMetricsF(self.font)
        words = fitting(ways_to_say(box, self.around), second.width(), plain.horizontalAdvance)
        painter.drawText(second, _LEFT, isolated(words))
        label = self.pill(number)
        if label:
            self._pill(painter, self.pill_rect(number), label, is_off(box))

    def _words_end(self, number: int, rect: QRectF, box: Box) -> float:
        """Where there is no more room in the second line: switches stand in the first."""
        if isinstance(box, NormBox):
            return self.stripes_rect(number).left() - 10
        return self.norms_rect(number).left() - 10 if self.shows_norms(number, box) else rect.right() - PAD

    def _title_end(self, number: int, rect: QRectF, box: Box) -> float:
        """Where there is no more room for words."""
        if isinstance(box, NormBox) and self.layout.dense:
            return self.stripes_rect(number).left() - 10
        end = rect.right() - PAD
        if self.shows_norms(number, box):
            end = self.norms_rect(number).left() - 10
        return self.pill_rect(number).left() - 8 if self.pill(number) else end

    def pill_rect(self, number: int) -> QRectF:
        """Where the switch of a box lies: at the right of its title, of a norm left of its stripes."""
        rect, metrics = self.layout.rects[number], QFontMetricsF(self.font)
        width = metrics.horizontalAdvance(self.pill(number)) + 16
        return QRectF(rect.right() - PAD + 4 - width, rect.top() + 4, width, self.layout.line + 3)

    def _pill(self, painter: QPainter, rect: QRectF, label: str, is_off: bool) -> None:
        theme = self.theme
        painter.setPen(QPen(QColor(theme.warning if is_off else theme.border_strong), 1))
        painter.setBrush(QColor(theme.surface))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        painter.setPen(QColor(theme.warning if is_off else theme.text))
        painter.setFont(self.font)
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, label)

    # a norm: before above, after below

    def stripes_rect(self, number: int) -> QRectF:
        """Both rows of stripes."""
        rect = self.layout.rects[number]
        width = min(_MOST_STRIPES, _STRIPES * rect.width())
        if not self.layout.dense:  # below the switch
            top = rect.top() + self.layout.line + 10
            return QRectF(rect.right() - PAD - width, top, width, rect.bottom() - top - 7)
        right = self.pill_rect(number).left() - 10 if self.pill(number) else rect.right() - PAD
        return QRectF(right - width, rect.top() + 6, width, rect.height() - 12)

    def _norm(self, painter: QPainter, number: int, rect: QRectF, box: NormBox) -> None:
        both = self.stripes_rect(number)
        gap = 4 if self.layout.dense else 3
        high = (both.height() - gap) / 2
        if box.before is not None:
            draw_stripes(painter, QRectF(both.left(), both.top(), both.width(), high), box.before, self.theme)
        below = QRectF(both.left(), both.top() + high + gap, both.width(), high)
        draw_stripes(painter, below, box.after, self.theme)

    # heads: each a row of weights

    def _heads(self, painter: QPainter, number: int, box: HeadsBox) -> None:
        for head in range(box.heads):
            slot = self.layout.head_rect(number, head, box.heads)
            strip = QRectF(slot.left(), slot.top(), slot.width(), strip_height(self.layout.line, self.layout.tight))
            written = head not in box.off
            painter.setPen(
                QPen(QColor(self.theme.border), 1, Qt.PenStyle.SolidLine if written else Qt.PenStyle.DashLine)
            )
            painter.setBrush(QColor(self.theme.surface))
            painter.drawRect(strip.adjusted(-0.5, -0.5, 0.5, 0.5))
            if written:
                painter.drawImage(strip, weights_image(box.weights[head], round(strip.width()), self.theme))
            chosen = head == self.head_of(box)
            painter.setFont(self.bold if chosen else self.font)
            painter.setPen(QColor(self.theme.query if chosen else self.theme.text_dim))
            below = QRectF(slot.left(), strip.bottom(), slot.width(), slot.bottom() - strip.bottom())
            painter.drawText(below, Qt.AlignmentFlag.AlignCenter, str(head))
            if chosen:
                painter.setPen(QPen(QColor(self.theme.query), wide(2)))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(strip.adjusted(-3, -3, 3, 3), 3, 3)

    def shows_norms(self, number: int, box: Box) -> bool:
        """Whether there are bars of what each head writes; a title that needs their room goes before them."""
        if not isinstance(box, OutputBox) or box.norms is None:
            return False
        room = self.norms_rect(number).left() - 10 - self.layout.rects[number].left() - PAD
        return QFontMetricsF(self.bold).horizontalAdvance(title(box)) <= room

    def norms_rect(self, number: int) -> QRectF:
        """What each head writes through W_O, as bars."""
        rect = self.layout.rects[number]
        right = self.pill_rect(number).left() - 12 if self.pill(number) else rect.right() - PAD
        width = min(130.0, 0.2 * rect.width())
        return QRectF(right - width, rect.top() + 7, width, rect.height() - 14)

    def _head_norms(self, painter: QPainter, number: int, rect: QRectF, norms: np.ndarray, selected: int) -> None:
        room = self.norms_rect(number)
        step, high = room.width() / max(1, len(norms)), float(norms.max(initial=0.0)) or 1.0
        wide = max(1, int(step - 2))
        for head, norm in enumerate(norms):
            tall = max(1, round(room.height() * float(norm) / high))
            colour = QColor(self.theme.query) if head == selected else tinted(self.theme.attention, 0.75)
            # whole pixels: many times as fast as an outline that is filled
            painter.fillRect(QRect(round(room.left() + head * step), round(room.bottom()) - tall, wide, tall), colour)

    # a feed-forward network: the neurons that write most

    def neurons_shown(self, number: int, box: FeedForwardBox) -> int:
        room = self.layout.rects[number].width() - 2 * PAD - NAMES * self.layout.line
        return min(len(box.neurons), max(1, int(room / (NEURON_WIDTH * self.layout.line))))

    def _neurons(self, painter: QPainter, number: int, box: FeedForwardBox) -> None:
        count = self.neurons_shown(number, box)
        high = max((neuron.write_norm for neuron in box.neurons[:count]), default=0.0) or 1.0
        metrics = QFontMetricsF(self.font)
        has_effects = any(neuron.effect is not None for neuron in box.neurons)
        words = (2 if has_effects else 1) * (metrics.height() + 1)
        names = self.layout.neuron_rect(number, -1, count)
        room = names.height() - words - 3
        painter.setFont(self.font)
        painter.setPen(QColor(self.theme.text_dim))
        lines = [(names.top() + room + 2, "neuron")]
        if room >= metrics.height():
            lines.insert(0, (names.top() + room - metrics.height() - 1, "writes"))
        if has_effects:
            lines.append((names.top() + room + metrics.height() + 3, isolated(f"to “{self.around.target}”")))
        for y, text in lines:
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, names.width() - 4)
            painter.drawText(QRectF(names.left(), y, names.width(), metrics.height()), _LEFT, text)
        for place, neuron in enumerate(box.neurons[:count]):
            slot = self.layout.neuron_rect(number, place, count)
            tall = max(1.5, room * neuron.write_norm / high)
            bar = QRectF(slot.left() + 3, slot.top() + room - tall, slot.width() - 12, tall)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(part_colour(self.theme, box.part))
            painter.drawRoundedRect(bar, 2, 2)
            line = QRectF(bar.left() - 8, slot.top() + room + 2, bar.width() + 16, metrics.height())
            painter.setPen(QColor(self.theme.text_dim))
            painter.drawText(line, Qt.AlignmentFlag.AlignCenter, neuron_name(neuron))
            if neuron.effect is not None:
                painter.setPen(QColor(self.theme.text))
                text = signed(round(neuron.effect, 3)) if abs(neuron.effect) >= 0.0005 else "0.000"
                painter.drawText(line.translated(0, metrics.height() + 1), Qt.AlignmentFlag.AlignCenter, _short(text))


def _short(text: str) -> str:
    """Three decimals and no more: "+0.057"."""
    whole, point, decimals = text.partition(".")
    return f"{whole}{point}{decimals[:3]}" if "e" not in decimals else text


def weights_image(weights: np.ndarray, pixels: int, theme: Theme) -> QImage:
    """A row of weights, the key's colour the stronger the larger. Where several share a pixel it shows the largest."""
    values = np.nan_to_num(np.asarray(weights, np.float64))
    if len(values) > max(1, pixels):
        edges = np.linspace(0, len(values), max(1, pixels) + 1).astype(int)
        values = np.maximum.reduceat(values, edges[:-1])
    elif len(values):
        values = np.repeat(values, max(1, -(-pixels // len(values))))
    colour = QColor(theme.key)
    rgba = np.empty((1, max(1, len(values)), 4), np.uint8)
    rgba[0, :, :3] = (colour.red(), colour.green(), colour.blue())
    rgba[0, :, 3] = np.round(255 * np.clip(values, 0, 1) ** 0.7) if len(values) else 0
    return QImage(rgba.data, rgba.shape[1], 1, 4 * rgba.shape[1], QImage.Format.Format_RGBA8888).copy()


def draw_arrowhead(painter: QPainter, tip: QPointF, colour: QColor, size: float = 6.0) -> None:
    """A filled triangle that points upward."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawPolygon([tip, tip + QPointF(-size, size * 1.3), tip + QPointF(size, size * 1.3)])
