"""One block for one token: every module that ran, box by box, beside the residual stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.panels.flow.block_layout import LANE, Arrow, BlockLayout, block_layout, least_height
from attention_explorer.panels.flow.box_paint import BoxPainter, draw_arrowhead
from attention_explorer.panels.flow.box_text import Around, head_tooltip, neuron_tooltip, stripe_tooltip, tooltip
from attention_explorer.panels.flow.ground import Ground, number_at
from attention_explorer.panels.flow.model_paint import part_colour
from attention_explorer.widgets.scroll_areas import area_around
from attention_explorer.widgets.themed import ThemedWidget
from attention_models.protocol.flow import BlockView, Box, FeedForwardBox, HeadsBox, NormBox, OutputBox, SumBox

# How a block is drawn around its boxes: the residual stream, the arrows, the sums, and what is said of them.


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


class BlockPicture(ThemedWidget):
    """Click a box to see its numbers, a head to choose it (once more goes in), a switch to take a sublayer away.

    Up and Down go from box to box, Left and Right from head to head or from token to token; Enter shows numbers or goes
    in, X switches off.
    """

    box_chosen = Signal(int)  # its numbers are wanted
    head_chosen = Signal(int, int)  # box and head
    head_entered = Signal(int, int)
    switched = Signal(int)  # the box whose switch was pressed
    moved = Signal(int)  # -1, +1: the token before or after
    zoomed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("One block", parent)
        self.setAccessibleDescription(
            "Up and Down choose a box, Left and Right a head or a token. Enter shows its numbers, X switches it off."
        )
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._view: BlockView | None = None
        self._around = Around("")
        self._ends = ("", "")
        self._heading = ("", "")
        self._keys: Mapping[str, Sequence[str]] = {}
        self._head, self._head_part = -1, "attention"
        self._switches: Mapping[int, str] = {}
        self._layout: BlockLayout | None = None
        self._ground = Ground()
        self._hover = -1
        self._current = -1
        self._playing = -1
        self._travel: tuple[int, float] | None = None

    @property
    def view(self) -> BlockView | None:
        return self._view

    @property
    def around(self) -> Around:
        return self._around

    @property
    def ends(self) -> tuple[str, str]:
        """What is said of the stream below the boxes and above them."""
        return self._ends

    @property
    def current(self) -> int:
        """The box that the keyboard is on."""
        return self._current

    @property
    def head(self) -> int:
        """The framed head, -1 for none."""
        return self._head

    @property
    def head_part(self) -> str:
        """Of which attention it is: "attention" or "cross"."""
        return self._head_part

    def head_in(self, box: Box) -> int:
        """The framed head, where it is one of this box; else -1."""
        return self._head if box.part == self._head_part else -1

    @property
    def keys(self) -> Mapping[str, Sequence[str]]:
        """By part ("attention", "cross"): what the tokens are called that its heads attend to."""
        return self._keys

    @property
    def heading(self) -> tuple[str, str]:
        return self._heading

    @property
    def switches(self) -> Mapping[int, str]:
        return self._switches

    # what to show

    def set_block(
        self,
        view: BlockView | None,
        around: Around | None,
        ends: tuple[str, str],
        keys: Mapping[str, Sequence[str]],
        switches: Mapping[int, str],
    ) -> None:
        """Show a block. `ends` say where the stream comes from and goes; `keys` are called what heads attend to,
        by part.

        `switches` are the boxes that can be switched off (or on), and what their switches say.
        """
        shown = (view, around or Around(""), ends, dict(keys), dict(switches))
        if shown == (self._view, self._around, self._ends, self._keys, self._switches):
            return  # each answer of a run, whomever it is for, comes by here
        if view is None or self._view is None or len(view.boxes) != len(self._view.boxes):
            self._hover = self._current = -1
        self._view, self._around, self._ends, self._keys, self._switches = shown
        self._drop_layout()

    def set_heading(self, title: str, note: str) -> None:
        """What stands at the top right: which block it is, and how it is built."""
        if (title, note) != self._heading:
            self._heading = (title, note)
            self._ground.drop()
            self.update()

    def set_head(self, head: int, part: str = "attention") -> None:
        """Frame the selected head, which is one of `part`; -1 for none."""
        if (head, part) != (self._head, self._head_part):
            self._head, self._head_part = head, part
            self._ground.drop()
            self.update()

    def set_playing(self, box: int, travel: float = 1.0) -> None:
        """Ring the box where Play is, -1 for none. `travel` is how much of the way into it is gone, 0 to 1."""
        new = box != self._playing
        self._playing = box
        self._travel = (box, travel) if box >= 0 and travel < 1 else None
        if new and box >= 0:
            self._keep_visible(self.layout_now().rect(box))
        self.update()

    # geometry

    def minimumSizeHint(self) -> QSize:
        return QSize(260, 160)

    def sizeHint(self) -> QSize:
        return QSize(560, 460)

    def layout_now(self) -> BlockLayout:
        """Where everything lies."""
        if self._layout is None:
            line = QFontMetricsF(self.font()).height()
            if self._view is None:
                return BlockLayout(self.width(), self.height(), line, dense=True)
            self._layout = block_layout(self._view, self.width(), self.height(), line)
        return self._layout

    def painter_of(self, layout: BlockLayout) -> BoxPainter:
        def pill(number: int) -> str:
            return self._switches.get(number, "")

        return BoxPainter(layout, self._theme, self.font(), self.bold_font(), self._around, self.head_in, pill)

    def _drop_layout(self) -> None:
        self._layout = None
        self._ground.drop()
        if self._view is not None:
            least = round(least_height(self._view, self.width(), QFontMetricsF(self.font()).height()))
            if least != self.minimumHeight():
                self.setMinimumHeight(least)
        self.update()

    def _look_changed(self) -> None:
        self._drop_layout()
        super()._look_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._drop_layout()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        view = self._view
        if view is None:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        layout = self.layout_now()

        def draw(ground: QPainter) -> None:
            draw_block(ground, self.painter_of(layout), view, self._ends, self._heading)

        self._ground.lay(painter, self, draw)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._draw_way(painter, layout)
        self._draw_rings(painter, layout)

    def _draw_way(self, painter: QPainter, layout: BlockLayout) -> None:
        """The way that Play takes into its box."""
        colour = QColor(self._theme.query)
        for arrow in layout.arrows if self._playing >= 0 else ():
            if arrow.reader != self._playing:
                continue
            path = draw_arrow(painter, arrow, colour, 2.5)
            if self._travel is not None and self._travel[0] == arrow.reader:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(colour)
                painter.drawEllipse(path.pointAtPercent(min(1.0, max(0.0, self._travel[1]))), 5, 5)

    def _draw_rings(self, painter: QPainter, layout: BlockLayout) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._hover in layout.rects:
            painter.setPen(QPen(QColor(self._theme.border_strong), wide(1.5)))
            painter.drawRoundedRect(layout.rect(self._hover).adjusted(-1, -1, 1, 1), 8, 8)
        if self._playing >= 0:
            painter.setPen(QPen(QColor(self._theme.query), wide(3)))
            painter.drawRoundedRect(layout.rect(self._playing).adjusted(-2, -2, 2, 2), 9, 9)
        if self._current >= 0 and self.hasFocus():
            painter.setPen(QPen(QColor(self._theme.focus), wide(2)))
            painter.drawRoundedRect(layout.rect(self._current).adjusted(-2, -2, 2, 2), 9, 9)

    # pointer

    def box_rect(self, box: int) -> QRectF:
        return self.layout_now().rect(box)

    def head_rect(self, box: int, head: int) -> QRectF:
        shown = self._boxes()[box]
        assert isinstance(shown, HeadsBox)
        return self.layout_now().head_rect(box, head, shown.heads)

    def switch_rect(self, box: int) -> QRectF:
        return self.painter_of(self.layout_now()).pill_rect(box)

    def _boxes(self) -> tuple:  # type: ignore[type-arg]
        return self._view.boxes if self._view is not None else ()

    def _head_at(self, number: int, point: QPointF) -> int:
        box = self._boxes()[number]
        if not isinstance(box, HeadsBox):
            return -1
        layout = self.layout_now()
        return next((h for h in range(box.heads) if layout.head_rect(number, h, box.heads).contains(point)), -1)

    def _switch_at(self, number: int, point: QPointF) -> bool:
        return number in self._switches and self.switch_rect(number).contains(point)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        number = self.layout_now().box_at(event.position())
        if number != self._hover:
            self._hover = number
            self.setCursor(Qt.CursorShape.PointingHandCursor if number >= 0 else Qt.CursorShape.ArrowCursor)
            self.update()
        self.setToolTip(self.tooltip_at(number, event.position()) if number >= 0 else "")

    def tooltip_at(self, number: int, point: QPointF) -> str:
        """What is said of the part of a box that is under a point."""
        box = self._boxes()[number]
        artist = self.painter_of(self.layout_now())
        if self._switch_at(number, point):
            return f"{self._switches[number]}, and see the loss and the next token before and after (X)"
        if isinstance(box, NormBox):
            both = artist.stripes_rect(number)
            upper = box.before is not None and point.y() < both.center().y()
            dimension = number_at(box.before if upper and box.before is not None else box.after, both, point.x())
            if dimension >= 0:
                return stripe_tooltip(box, dimension)
        head = self._head_at(number, point)
        if head >= 0:
            return head_tooltip(box, self._output_of(number), head, self._keys.get(box.part, ()))
        if isinstance(box, FeedForwardBox) and box.neurons:
            count = artist.neurons_shown(number, box)
            for place in range(count):
                if self.layout_now().neuron_rect(number, place, count).contains(point):
                    return neuron_tooltip(box.neurons[place], self._around.target)
        return tooltip(box, self._around)

    def _output_of(self, heads: int) -> OutputBox | None:
        boxes = self._boxes()
        return next((b for b in boxes[heads + 1 :] if isinstance(b, OutputBox) and heads in b.reads), None)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover = -1
        self.setToolTip("")
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        number = self.layout_now().box_at(event.position())
        if number < 0 or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._current = number
        self.update()
        head = self._head_at(number, event.position())
        if self._switch_at(number, event.position()):
            self.switched.emit(number)
        elif head >= 0:
            is_chosen = head == self.head_in(self._boxes()[number])
            (self.head_entered if is_chosen else self.head_chosen).emit(number, head)
        elif not isinstance(self._boxes()[number], SumBox):
            self.box_chosen.emit(number)

    def wheelEvent(self, event: QWheelEvent) -> None:
        area = area_around(self)
        scrolls = area is not None and area.verticalScrollBar().maximum() > 0
        with_ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if (scrolls and not with_ctrl) or not event.angleDelta().y():
            event.ignore()
            return
        self.zoomed.emit(1 if event.angleDelta().y() > 0 else -1)
        event.accept()

    # keyboard

    def keyPressEvent(self, event: QKeyEvent) -> None:
        boxes, key = self._boxes(), Qt.Key(event.key())
        if not boxes:
            event.ignore()
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._walk(1 if key == Qt.Key.Key_Up else -1)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._sideways(1 if key == Qt.Key.Key_Right else -1)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self._current >= 0:
            if isinstance(boxes[self._current], HeadsBox) and self.head_in(boxes[self._current]) >= 0:
                self.head_entered.emit(self._current, self._head)
            elif not isinstance(boxes[self._current], SumBox):
                self.box_chosen.emit(self._current)
        elif key == Qt.Key.Key_X and self._current in self._switches:
            self.switched.emit(self._current)
        else:
            event.ignore()

    def _walk(self, up: int) -> None:
        last = len(self._boxes()) - 1
        self._current = min(max(self._current + up, 0), last) if self._current >= 0 else (0 if up > 0 else last)
        self._keep_visible(self.layout_now().rect(self._current))
        self.update()

    def _sideways(self, right: int) -> None:
        box = self._boxes()[self._current] if self._current >= 0 else None
        if isinstance(box, HeadsBox):
            head = min(max(self.head_in(box) + right, 0), box.heads - 1)
            if head != self.head_in(box):
                self.head_chosen.emit(self._current, head)
        else:
            self.moved.emit(right)
