"""The whole model as one picture: a lane a token, a block upon a block, and what each of them writes."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QScrollBar, QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.panels.flow.flow_sentences import crossing_text
from attention_explorer.panels.flow.ground import Ground
from attention_explorer.panels.flow.model_header import ModelHeader
from attention_explorer.panels.flow.model_layout import CHIP, ModelLayout, StackSize, model_layout
from attention_explorer.panels.flow.model_paint import ModelPainter, block_name, tinted
from attention_explorer.panels.flow.model_scene import NOWHERE, Arcs, Marks, ModelScene, OutputGroup, Place, scales_of
from attention_explorer.widgets.themed import ThemedWidget

_BAR = 12  # thickness of a scroll bar


class ModelPicture(ThemedWidget):
    """Click a block's name to choose the layer, a chip the token, and where both meet both; once more goes in.

    The arrow keys move over tokens and blocks, Enter goes in. The wheel scrolls where there is more than fits, and
    goes in and out (`zoomed`) where there is not; with Ctrl it always does.
    """

    chosen = Signal(object)  # Place: its block or its position is -1 where the other alone was chosen
    key_chosen = Signal(int, int)  # stack and position: Shift, or the right button
    entered = Signal(object)  # Place
    zoomed = Signal(int)  # +1 in, -1 out
    hovered = Signal(int, int)  # stack and position under the pointer, -1 where it is over none

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("The whole model", parent)
        self.setAccessibleDescription("Left and Right choose the token, Up and Down the block; Enter goes into it.")
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._scene = ModelScene()
        self._scales = scales_of(self._scene)
        self._outputs: tuple[OutputGroup, ...] = ()
        self._marks = Marks()
        self._arcs: Arcs | None = None
        self._arc_row = 0
        self._layout: ModelLayout | None = None
        self._ground = Ground()
        self._pointed = NOWHERE
        self._across = QScrollBar(Qt.Orientation.Horizontal, self)
        self._upwards = QScrollBar(Qt.Orientation.Vertical, self)
        for bar in (self._across, self._upwards):
            bar.hide()
            bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            bar.valueChanged.connect(lambda _: self._scroll())

    @property
    def scene(self) -> ModelScene:
        return self._scene

    @property
    def marks(self) -> Marks:
        return self._marks

    @property
    def outputs(self) -> tuple[OutputGroup, ...]:
        return self._outputs

    @property
    def arcs(self) -> Arcs | None:
        return self._arcs

    # what to show

    def set_scene(self, scene: ModelScene) -> None:
        if scene is not self._scene:
            self._scene, self._scales = scene, scales_of(scene)
            self._pointed = NOWHERE
            self._drop_layout()

    def set_outputs(self, groups: Sequence[OutputGroup]) -> None:
        self._outputs = tuple(groups)
        self.update()

    def set_marks(self, marks: Marks) -> None:
        """Mark what is selected, and scroll to it where that is new. Emits nothing."""
        if marks == self._marks:
            return
        before, self._marks = self._marks, marks
        if marks.selected != before.selected or marks.playing != before.playing:
            self._show_place(marks.playing or marks.selected)
        self.update()

    def set_arcs(self, arcs: Arcs | None, row: int = 0) -> None:
        """Arcs of the selected block; `row` is the place of attention among what the block wrote."""
        self._arcs, self._arc_row = arcs, row
        self.update()

    # geometry

    def minimumSizeHint(self) -> QSize:
        return QSize(220, 180)

    def sizeHint(self) -> QSize:
        return QSize(640, 460)

    def layout_now(self) -> ModelLayout:
        """Where everything lies."""
        if self._layout is None:
            fresh = self._laid_out(self.width(), self.height())
            if fresh.most_scroll_y:
                fresh = self._laid_out(self.width() - _BAR, self.height())
            if fresh.most_scroll_x:
                fresh = self._laid_out(self.width() - (_BAR if fresh.most_scroll_y else 0), self.height() - _BAR)
            self._layout = fresh
            self._show_bars()
            self._show_place(self._marks.selected)
        return self._layout

    def _laid_out(self, width: float, height: float) -> ModelLayout:
        metrics = QFontMetricsF(self.font())
        names = [
            block_name(stack, block) for stack in self._scene.stacks for block in range(-1, len(stack.flow.blocks))
        ]
        bold = QFontMetricsF(self.bold_font())
        gutter = max((bold.horizontalAdvance(name) for name in names), default=0.0) + 16
        sizes = tuple(
            StackSize(len(stack.labels), len(stack.flow.blocks), len(stack.flow.embedding))
            for stack in self._scene.stacks
        )
        return model_layout(sizes, width, height, metrics.height(), gutter, self.header().height)

    def said_at(self, position: QPoint) -> str:
        """The legend's words, where it lies."""
        return self.header().said_at(position.toPointF())

    def header(self) -> ModelHeader:
        """What stands above the lanes."""
        return ModelHeader(self._scene, self._scales, self._outputs, self.size().toSizeF(), self.font())

    def _drop_layout(self) -> None:
        self._layout = None
        self._ground.drop()
        self.updateGeometry()
        self.update()

    def _look_changed(self) -> None:
        self._drop_layout()
        super()._look_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._drop_layout()

    # scrolling

    def _show_bars(self) -> None:
        layout = self._layout
        assert layout is not None
        for bar, most, page in (
            (self._across, layout.most_scroll_x, layout.width),
            (self._upwards, layout.most_scroll_y, layout.area.height()),
        ):
            bar.blockSignals(True)
            bar.setRange(0, round(most))
            bar.setPageStep(round(page))
            bar.setSingleStep(round(2 * layout.line))
            bar.setVisible(most > 0)
            bar.blockSignals(False)
        self._across.setGeometry(0, self.height() - _BAR, round(layout.width), _BAR)
        self._upwards.setGeometry(self.width() - _BAR, round(layout.header), _BAR, round(layout.area.height()))
        self._place_bars()

    def _place_bars(self) -> None:
        layout = self._layout
        assert layout is not None
        for bar, value in ((self._across, layout.scroll_x), (self._upwards, layout.most_scroll_y - layout.scroll_y)):
            bar.blockSignals(True)
            bar.setValue(round(value))
            bar.blockSignals(False)

    def _scroll(self) -> None:
        layout = self.layout_now()
        self._put(layout.scrolled(self._across.value(), layout.most_scroll_y - self._upwards.value()))

    def _put(self, layout: ModelLayout) -> None:
        if layout != self._layout:
            self._layout = layout
            self._ground.drop()
            self._place_bars()
            self.update()

    def _show_place(self, place: Place) -> None:
        if self._layout is not None and 0 <= place.stack < len(self._scene.stacks):
            stack = self._scene.stacks[place.stack]
            if place.block < len(stack.flow.blocks) and place.position < len(stack.labels):
                self._put(self._layout.showing(place))

    # painting

    def painter_of(self, layout: ModelLayout) -> ModelPainter:
        return ModelPainter(layout, self._scene, self._scales, self._theme, self.font(), self.bold_font())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not self._scene.stacks:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        layout = self.layout_now()
        artist, marks = self.painter_of(layout), self._marks
        outputs = self.header().draw(painter, self._theme, self.bold_font())
        for group, shown in enumerate(outputs.shown):
            if shown.position >= 0 and shown.position in layout.visible(shown.stack):
                artist.draw_way_out(painter, shown, outputs.group_rect(group))
        painter.save()
        painter.setClipRect(QRectF(0, layout.header - 2, layout.width, layout.foot - layout.header + 2))
        at = marks.selected
        if at.stack >= 0 and at.block >= 0:
            artist.draw_selected_block(painter, at)
        if self._pointed.block != CHIP and min(self._pointed) >= 0:
            painter.fillRect(layout.crossing(self._pointed), tinted(self._theme.border_strong, 0.18))
        self._ground.lay(painter, self, artist.draw_ground)
        self._draw_selected(painter, artist)
        artist.draw_names(painter, at)
        self._draw_places(painter, layout)
        painter.restore()
        hover = self._pointed[0::2] if self._pointed.position >= 0 else marks.hovered
        artist.draw_chips(painter, (at.stack, at.position), marks.key, hover)

    def _draw_selected(self, painter: QPainter, artist: ModelPainter) -> None:
        at, key = self._marks.selected, self._marks.key
        for stack, position, colour in ((*key, self._theme.key), (at.stack, at.position, self._theme.query)):
            if stack >= 0 and position in artist.layout.visible(stack):
                is_query = colour == self._theme.query
                artist.draw_lane(painter, stack, position, tinted(colour, 1.0 if is_query else 0.4))
        if self._arcs is not None and at.stack >= 0 and at.block >= 0 and at.position >= 0:
            artist.draw_arcs(painter, self._arcs, at, self._arc_row)

    def _draw_places(self, painter: QPainter, layout: ModelLayout) -> None:
        """Where Play is, and where the keyboard is."""
        playing, at = self._marks.playing, self._marks.selected
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if playing is not None and playing.stack >= 0:
            whole = playing.position < 0
            rect = layout.block_rect(playing.stack, playing.block) if whole else layout.crossing(playing)
            painter.setPen(QPen(QColor(self._theme.query), wide(2.5)))
            painter.drawRoundedRect(rect.adjusted(1.5, 1.5, -1.5, -1.5), 6, 6)
        if self._shows_ring and self.hasFocus() and min(at.stack, at.position) >= 0:
            painter.setPen(QPen(QColor(self._theme.focus), wide(2)))
            painter.drawRoundedRect(layout.crossing(at).adjusted(1, 1, -1, -1), 6, 6)

    # pointer and keyboard

    def place_at(self, point: QPointF) -> Place | None:
        return self.layout_now().place_at(point) if self._scene.stacks else None

    def crossing_rect(self, place: Place) -> QRectF:
        """Where a block meets a lane."""
        return self.layout_now().crossing(place)

    def chip_rect(self, stack: int, position: int) -> QRectF:
        return self.layout_now().chip_slot(stack, position)

    def name_rect(self, stack: int, block: int) -> QRectF:
        return self.layout_now().gutter_rect(stack, block)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self.place_at(event.position()) or NOWHERE)
        self._tell(event.position())

    def _tell(self, point: QPointF) -> None:
        place = self._pointed
        if place.stack < 0:
            self.setToolTip(self.header().tooltip_at(point))
        elif place.block == CHIP:
            self.setToolTip(self._scene.stacks[place.stack].labels[place.position].tooltip)
        else:
            self.setToolTip(crossing_text(self._scene.stacks[place.stack], place))

    def _point_at(self, place: Place) -> None:
        if place == self._pointed:
            return
        before, self._pointed = self._pointed, place
        self.setCursor(Qt.CursorShape.PointingHandCursor if place.stack >= 0 else Qt.CursorShape.ArrowCursor)
        self.update()
        if before[0::2] != place[0::2]:
            here = place.position >= 0
            self.hovered.emit(place.stack if here else -1, place.position if here else -1)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.setToolTip("")
        self._point_at(NOWHERE)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self.place_at(event.position())
        shifted = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if place is None or event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton):
            event.ignore()
        elif event.button() == Qt.MouseButton.RightButton or shifted:
            if place.position >= 0:
                self.key_chosen.emit(place.stack, place.position)
        else:
            self._choose(place)

    def _choose(self, place: Place) -> None:
        """Choose what was clicked; what is chosen already is gone into."""
        at = self._marks.selected
        if place.block < 0:
            if place.position >= 0:
                self.chosen.emit(Place(place.stack, -1, place.position))
            return
        same_lane = place.position in (-1, at.position)
        if place[:2] == at[:2] and same_lane:
            self.entered.emit(at)
        else:
            self.chosen.emit(place)

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta, layout = event.angleDelta(), self.layout_now()
        zooms = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        across = delta.x() or (delta.y() if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 0)
        pixels = _pixels(event, layout.line)
        if not zooms and across and layout.most_scroll_x:
            self._put(layout.scrolled(layout.scroll_x - (pixels.x() or pixels.y()), layout.scroll_y))
        elif not zooms and layout.most_scroll_y:
            self._put(layout.scrolled(layout.scroll_x, layout.scroll_y + pixels.y()))
        elif delta.y():
            self.zoomed.emit(1 if delta.y() > 0 else -1)
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        at = self._marks.selected
        step = _STEPS.get(Qt.Key(event.key()))
        if at.stack < 0 or not self._scene.stacks:
            event.ignore()
        elif step is not None and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            self._shows_ring = True
            self._move(at, *step)
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            last = len(self._scene.stacks[at.stack].labels) - 1
            self.chosen.emit(at._replace(position=0 if event.key() == Qt.Key.Key_Home else last))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.entered.emit(at)
        else:
            event.ignore()

    def _move(self, at: Place, across: int, up: int) -> None:
        """To the next lane or block; from the last lane of one stack to the first of the next."""
        stacks = self._scene.stacks
        stack, position = at.stack, at.position + across
        if position >= len(stacks[stack].labels) and stack + 1 < len(stacks):
            stack, position = stack + 1, 0
        elif position < 0 and stack > 0:
            stack, position = stack - 1, len(stacks[stack - 1].labels) - 1
        place = Place(
            stack,
            min(max(at.block + up, 0), len(stacks[stack].flow.blocks) - 1),
            min(max(position, 0), len(stacks[stack].labels) - 1),
        )
        if place != at:
            self.chosen.emit(place)


_STEPS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, 1),
    Qt.Key.Key_Down: (0, -1),
}


def _pixels(event: QWheelEvent, line: float) -> QPoint:
    """How far a wheel's turn scrolls."""
    if not event.pixelDelta().isNull():
        return event.pixelDelta()
    return QPoint(round(event.angleDelta().x() / 120 * 3 * line), round(event.angleDelta().y() / 120 * 3 * line))
