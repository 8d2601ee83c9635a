"""A recurrent model unrolled in time: the encoder's states from left to right, then the decoder's."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import solid, wide
from attention_explorer.panels.flow.box_paint import draw_arrowhead
from attention_explorer.panels.flow.box_text import fitting
from attention_explorer.panels.flow.ground import draw_stripes
from attention_explorer.panels.flow.model_paint import LEAST_WEIGHT, tinted
from attention_explorer.panels.flow.model_scene import RecurrentScene
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.themed import ThemedWidget

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter

_LEGENDS = (
    "A column a state, as high as its norm: the state goes from left to right, token by token.",
    "A column a state, as high as its norm; from left to right in time.",
    "A column a state, as high as its norm",
)


class RecurrentPicture(ThemedWidget):
    """Click a token that is written to choose the step, one that is read to choose the key; arrow keys walk.

    Items are counted through: the source first, then the target.
    """

    step_chosen = Signal(int)
    key_chosen = Signal(int)
    hovered = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("The recurrent model, unrolled in time", parent)
        self.setAccessibleDescription("Left and Right choose the step that is written, with Shift the token read.")
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._scene: RecurrentScene | None = None
        self._query, self._key, self._hover = -1, -1, -1
        self._filled = -1  # how many steps are drawn: Play fills it from the left; -1 for all

    @property
    def scene(self) -> RecurrentScene | None:
        return self._scene

    @property
    def filled(self) -> int:
        return self._filled

    def set_scene(self, scene: RecurrentScene | None, query: int, key: int) -> None:
        """Show a run, its selected step and token."""
        self._scene, self._query, self._key = scene, query, key
        self.update()

    def set_filled(self, steps: int) -> None:
        """Draw so many steps of reading and writing; -1 for all."""
        if steps != self._filled:
            self._filled = steps
            self.update()

    def minimumSizeHint(self) -> QSize:
        return QSize(220, 200)

    def sizeHint(self) -> QSize:
        return QSize(640, 460)

    # geometry: two rows of states, the encoder's below

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _names(self) -> float:
        return QFontMetricsF(self.bold_font()).horizontalAdvance("encoder ←") + 14

    def _pitch(self, count: int) -> float:
        return (self.width() - self._names() - 8) / max(1, count)

    def state_rect(self, item: int) -> QRectF:
        """Where the state after a step stands: as high as the norm of it allows."""
        assert self._scene is not None
        reads = item < len(self._scene.source)
        count = len(self._scene.source) if reads else len(self._scene.target)
        place = item if reads else item - len(self._scene.source)
        pitch = self._pitch(count)
        line = self._line()
        chips, between = 1.6 * line + 9, max(3.6 * line, 0.3 * self.height())
        high = max(1.2 * line, (self.height() - 2 * chips - 1.4 * line - between) / 2)
        bottom = self.height() - chips if reads else 1.4 * line + chips + high
        width = min(30.0, 0.62 * pitch)
        x = self._names() + (place + 0.5) * pitch
        return QRectF(x - width / 2, bottom - high, width, high)

    def chip_rect(self, item: int) -> QRectF:
        """Where the word of a step stands: below the state that reads it, above the one that writes it."""
        assert self._scene is not None
        reads = item < len(self._scene.source)
        count = len(self._scene.source) if reads else len(self._scene.target)
        rect, pitch = self.state_rect(item), self._pitch(count)
        y = rect.bottom() + 6 if reads else rect.top() - self._line() - 18
        word = (*self._scene.source, *self._scene.target)[item]
        width = min(pitch - 2, max(16.0, QFontMetricsF(self.font()).horizontalAdvance(word) + 12))
        return QRectF(rect.center().x() - width / 2, y, width, self._line() + 9)

    def bottleneck_rect(self) -> QRectF:
        """Where the one vector stands, between encoder and decoder."""
        middle = 0.5 * (self.state_rect(0).top() + self.state_rect(len(self._scene.source)).bottom())  # type: ignore[union-attr]
        width = 0.6 * (self.width() - self._names())
        return QRectF(self._names() + 0.2 * (self.width() - self._names()), middle - 13, width, 26)

    def item_at(self, point: QPointF) -> int:
        if self._scene is None:
            return -1
        for item in range(self._scene.steps):
            both = self.state_rect(item).united(self.chip_rect(item))
            if both.contains(point):
                return item
        return -1

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._scene is None or not self._scene.source or not self._scene.target:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        scene = self._scene
        filled = scene.steps if self._filled < 0 else self._filled
        self._draw_names(painter, scene)
        self._draw_arrows(painter, scene, filled)
        if scene.flow.bottleneck is not None:
            self._draw_bottleneck(painter, scene, filled)
        else:
            self._draw_looks(painter, scene, filled)
        for item in range(scene.steps):
            self._draw_state(painter, scene, item, is_there=item < filled)
        self._draw_focus_ring(painter)

    def _draw_names(self, painter: QPainter, scene: RecurrentScene) -> None:
        count = len(scene.source)
        for item, word in ((0, "encoder"), (count, "decoder")):
            rect = self.state_rect(item)
            painter.setFont(self.bold_font())
            painter.setPen(QColor(self._theme.text_dim))
            painter.drawText(QRectF(4, rect.top(), self._names(), rect.height()), _LEFT, word)
        painter.setFont(self.font())
        chip = self.chip_rect(0)
        painter.setPen(QColor(self._theme.text_dim))
        painter.drawText(QRectF(4, chip.top(), self._names(), chip.height()), _LEFT, "reads")
        chip = self.chip_rect(count)
        painter.drawText(QRectF(4, chip.top(), self._names(), chip.height()), _LEFT, "gets")
        room = QRectF(4, 0, self.width() - 8, self._line() + 4)
        painter.drawText(room, _LEFT, fitting(_LEGENDS, room.width(), QFontMetricsF(self.font()).horizontalAdvance))

    def _draw_arrows(self, painter: QPainter, scene: RecurrentScene, filled: int) -> None:
        """From each state to the next; of two directions the second runs back."""
        count, backwards = len(scene.source), len(scene.flow.encoder) > 1
        for item in range(1, scene.steps):
            if item == count:
                continue
            there = QColor(self._theme.border_strong if item < filled else self._theme.border)
            before, after = self.state_rect(item - 1), self.state_rect(item)
            y = before.bottom() - min(8.0, 0.3 * before.height())
            self._arrow(painter, QPointF(before.right() + 2, y), QPointF(after.left() - 2, y), there)
            if backwards and item < count:
                top = before.bottom() - min(18.0, 0.75 * before.height())
                self._arrow(painter, QPointF(after.left() - 2, top), QPointF(before.right() + 2, top), there)

    @staticmethod
    def _arrow(painter: QPainter, start: QPointF, end: QPointF, colour: QColor) -> None:
        painter.setPen(QPen(colour, wide(1.6)))
        painter.drawLine(start, end)
        way = -1 if end.x() < start.x() else 1
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawPolygon([end, end + QPointF(-5 * way, -3), end + QPointF(-5 * way, 3)])

    def _draw_state(self, painter: QPainter, scene: RecurrentScene, item: int, is_there: bool) -> None:
        count, theme, room = len(scene.source), self._theme, self.state_rect(item)
        reads = item < count
        norms = [each[item] for each in scene.flow.encoder] if reads else [scene.flow.decoder[item - count]]
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(QColor(theme.surface_alt))
        painter.drawRoundedRect(room.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        chosen = (reads and item == self._key and scene.weights is not None) or (
            not reads and item - count == self._query
        )
        accent = QColor(theme.key if reads else theme.query)
        if is_there:
            width = room.width() / len(norms)
            for direction, norm in enumerate(norms):
                tall = max(1.5, (room.height() - 2) * float(norm) / scene.largest())
                bar = QRectF(room.left() + direction * width + 1, room.bottom() - 1 - tall, width - 2, tall)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(tinted(accent.name(), 0.95 if chosen else 0.5))
                painter.drawRoundedRect(bar, 3, 3)
        self._draw_chip(painter, scene, item, accent if chosen else None, is_there)

    def _draw_chip(
        self, painter: QPainter, scene: RecurrentScene, item: int, frame: QColor | None, is_there: bool
    ) -> None:
        theme, rect = self._theme, self.chip_rect(item)
        hovered = item == self._hover
        painter.setPen(QPen(frame or QColor(theme.border_strong if hovered else theme.border), wide(2 if frame else 1)))
        painter.setBrush(QColor(theme.surface_hover if hovered else theme.surface_alt))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.setFont(self.font())
        painter.setPen(QColor(theme.text if is_there else theme.border_strong))
        word = (*scene.source, *scene.target)[item]
        text = QFontMetricsF(self.font()).elidedText(word, Qt.TextElideMode.ElideRight, max(8.0, rect.width() - 5))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)

    def _draw_bottleneck(self, painter: QPainter, scene: RecurrentScene, filled: int) -> None:
        """The last state of the encoder is the one vector that every step of the decoder is given."""
        assert scene.flow.bottleneck is not None
        count, rect, theme = len(scene.source), self.bottleneck_rect(), self._theme
        is_there = filled >= count
        colour = QColor(theme.query if is_there else theme.border)
        painter.setPen(QPen(colour, wide(2.5)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        last = self.state_rect(count - 1)
        path = QPainterPath(QPointF(last.center().x(), last.top()))
        path.cubicTo(
            QPointF(last.center().x(), rect.center().y()),
            QPointF(last.center().x(), rect.center().y()),
            QPointF(rect.right() + 2, rect.center().y()),
        )
        painter.drawPath(path)
        for step in range(len(scene.target)):
            state = self.state_rect(count + step)
            if filled > count + step:
                strong = step == self._query
                painter.setPen(QPen(tinted(theme.query, 0.9 if strong else 0.25), wide(2 if strong else 1.2)))
                x = min(max(state.center().x(), rect.left() + 6), rect.right() - 6)
                painter.drawLine(QPointF(x, rect.top()), QPointF(state.center().x(), state.bottom() + 1))
        if is_there:
            draw_stripes(painter, rect, scene.flow.bottleneck, theme)
        painter.setPen(QPen(colour, wide(2)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(rect.adjusted(-2, -2, 2, 2), 4, 4)
        painter.setPen(QColor(theme.text_dim))
        painter.setFont(self.font())
        what = f"one vector of {len(scene.flow.bottleneck):,} numbers"
        ways = (f"{what}: all that the decoder is told of {count} tokens", f"{what}: all it is told", what)
        below = QRectF(rect.left(), rect.bottom() + 3, rect.width(), self._line() + 4)
        painter.drawText(below, _LEFT, fitting(ways, below.width(), QFontMetricsF(self.font()).horizontalAdvance))

    def _draw_looks(self, painter: QPainter, scene: RecurrentScene, filled: int) -> None:
        """Where attention mixes the encoder's states from, for the selected step."""
        count = len(scene.source)
        if scene.weights is None or not 0 <= self._query < len(scene.target) or filled <= count + self._query:
            return
        state, colour = self.state_rect(count + self._query), QColor(self._theme.key)
        context = QPointF(state.center().x(), state.bottom() + 26)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for position in scene.weights.argsort():
            weight = float(scene.weights[position])
            if weight < LEAST_WEIGHT:
                continue
            rect = self.state_rect(int(position))
            source = QPointF(rect.center().x(), rect.top())
            colour.setAlphaF(solid(0.22 + 0.7 * min(1.0, weight) ** 0.5))
            painter.setPen(QPen(colour, wide(1 + 6 * min(1.0, weight)), c=Qt.PenCapStyle.RoundCap))
            path = QPainterPath(source)
            middle = 0.5 * (source.y() + context.y())
            path.cubicTo(QPointF(source.x(), middle), QPointF(context.x(), middle), context)
            painter.drawPath(path)
        painter.setPen(QPen(QColor(self._theme.attention), wide(2)))
        painter.setBrush(QColor(self._theme.surface))
        painter.drawEllipse(context, 9, 9)
        painter.setPen(QColor(self._theme.text))
        painter.setFont(self.font())
        painter.drawText(QRectF(context.x() - 9, context.y() - 9, 18, 18), Qt.AlignmentFlag.AlignCenter, "c")
        draw_arrowhead(painter, QPointF(context.x(), state.bottom() + 2), QColor(self._theme.attention), 5)
        if scene.flow.contexts is not None:
            painter.setPen(QColor(self._theme.text_dim))
            words = f"context c, norm {value_text(float(scene.flow.contexts[self._query]))}"
            right = context.x() < 0.6 * self.width()
            box = (
                QRectF(context.x() + 16, context.y() - 10, 300, 20)
                if right
                else QRectF(context.x() - 316, context.y() - 10, 300, 20)
            )
            flags = _LEFT if right else Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(box, flags, words)

    # pointer and keyboard

    def tooltip_of(self, item: int) -> str:
        scene = self._scene
        assert scene is not None
        count = len(scene.source)
        if item < count:
            norms = [value_text(float(each[item])) for each in scene.flow.encoder]
            both = f"{norms[0]} forward, {norms[1]} backward" if len(norms) > 1 else norms[0]
            weight = "" if scene.weights is None else f"\nweight {value_text(float(scene.weights[item]))}"
            return f"“{scene.source[item]}” is read: the state's norm is {both} now{weight}"
        norm = value_text(float(scene.flow.decoder[item - count]))
        return f"“{scene.target[item - count]}” goes in: the state's norm is {norm} now"

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self.item_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point_at(-1)

    def _point_at(self, item: int) -> None:
        if item != self._hover:
            self._hover = item
            self.setToolTip(self.tooltip_of(item) if item >= 0 else "")
            self.update()
            self.hovered.emit(item)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        item = self.item_at(event.position())
        if item < 0 or self._scene is None or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
        elif item < len(self._scene.source):
            self.key_chosen.emit(item)
        else:
            self.step_chosen.emit(item - len(self._scene.source))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if self._scene is None or step is None:
            event.ignore()
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.key_chosen.emit(min(max(self._key + step, 0), len(self._scene.source) - 1))
        else:
            self.step_chosen.emit(min(max(self._query + step, 0), len(self._scene.target) - 1))
