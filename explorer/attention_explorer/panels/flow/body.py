"""The parts of the Flow panel and how they share its room: one picture, or two side by side where there is room."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QSlider,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.text_size import least_points, smaller
from attention_explorer.look.theme import SMALLEST_FONT
from attention_explorer.panels.flow.block_picture import BlockPicture
from attention_explorer.panels.flow.matrices import MatricesPage
from attention_explorer.panels.flow.model_picture import ModelPicture
from attention_explorer.panels.flow.numbers import NumbersTable
from attention_explorer.panels.flow.player import Player, PlayStep
from attention_explorer.panels.flow.recurrent_picture import RecurrentPicture
from attention_explorer.session.view_options import Distance
from attention_explorer.widgets.labels import SaidLabel
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.path_bar import PathBar

# Play, pause, step, back, and how fast.


_SLOWEST, _FASTEST = 6000, 500  # ms at each step
_NOTCHES = 10


class PlayBar(QWidget):
    back = Signal()
    toggled = Signal()
    step = Signal()
    paced = Signal(int)  # ms at each step

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.back_button = _button("◀", "Back", "One step back (Shift+P)")
        self.play_button = _button("▶ Play", "Play", "Follow the selected token through the model (P)")
        self.step_button = _button("▶|", "Step", "One step on (S)")
        self.speed = QSlider(Qt.Orientation.Horizontal)
        self.speed.setRange(0, _NOTCHES)
        self.speed.setValue(6)
        self.speed.setAccessibleName("Speed")
        self.speed.setToolTip("How fast it plays")
        self.speed.setMinimumWidth(24)
        self.speed.setMaximumWidth(70)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        for part in (self.back_button, self.play_button, self.step_button, self.speed):
            row.addWidget(part)
        self.back_button.clicked.connect(lambda: self.back.emit())
        self.play_button.clicked.connect(lambda: self.toggled.emit())
        self.step_button.clicked.connect(lambda: self.step.emit())
        self.speed.valueChanged.connect(lambda _: self.paced.emit(self.halt_ms))

    @property
    def halt_ms(self) -> int:
        """Milliseconds at each step."""
        left: float = 1 - self.speed.value() / _NOTCHES
        return round(_FASTEST + (_SLOWEST - _FASTEST) * left * left)

    def show_state(self, at: int, count: int, playing: bool) -> None:
        self.play_button.setText("❚❚ Pause" if playing else "▶ Play")
        self.play_button.setAccessibleName("Pause" if playing else "Play")
        self.play_button.setEnabled(count > 0)
        self.step_button.setEnabled(at + 1 < count)
        self.back_button.setEnabled(at > 0)


def _button(text: str, name: str, tooltip: str) -> QToolButton:
    button = QToolButton()
    button.setText(text)
    button.setAccessibleName(name)
    button.setToolTip(tooltip)
    return button


_BOTH = 64.0
"""Heights of a line that are wide enough for the model and a block side by side."""
_SHARE = 0.56
"""What the model gets of the width beside a block."""

_BETWEEN = 18
_LOW = 18
"""Heights of a line below which what is said of a step has one line, or two smaller ones."""
_SMALLER = 0.72


class FlowBody(QWidget):
    """A line with the path and the player, the pictures, and a line for what is said of a step."""

    def __init__(self, path: PathBar) -> None:
        super().__init__()
        self.path = path
        self.mark = _mark()
        self.play = PlayBar()
        self.effect = SaidLabel()
        self.effect.setProperty("role", "title")
        self.effect.setTextFormat(Qt.TextFormat.PlainText)
        self.effect.hide()
        self.model = ModelPicture()
        self.block = BlockPicture()
        self.numbers = NumbersTable()
        self.recurrent = RecurrentPicture()
        self.matrices = MatricesPage()
        self.reason = wrapped(role="dim")
        self.reason.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.sentence = wrapped()
        self.sentence.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.block_area = scrolling(self.block)
        self.block_area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.block_area.setFrameShape(QFrame.Shape.NoFrame)
        self._distance: Distance = "model"
        self._said = ""
        self._lay_out()

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.path, 1)
        top.addWidget(self.effect)
        top.addWidget(self.mark)
        top.addWidget(self.play)
        self._top = top
        self.block_side = QWidget()
        right = QVBoxLayout(self.block_side)
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(6)
        right.addWidget(self.block_area, 1)
        right.addWidget(self.numbers)
        both = QWidget()
        row = QHBoxLayout(both)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(_BETWEEN)
        row.addWidget(self.model, round(100 * _SHARE))
        row.addWidget(self.block_side, round(100 * (1 - _SHARE)))
        empty = QWidget()
        column = QVBoxLayout(empty)
        column.addWidget(self.reason)
        self.pages = QStackedWidget()
        for page in (empty, both, self.recurrent, self.matrices):
            self.pages.addWidget(page)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(6)
        whole.addLayout(top)
        whole.addWidget(self.pages, 1)
        whole.addWidget(self.sentence)

    def set_info(self, button: QWidget) -> None:
        """Put a button at the end of the line at the top."""
        self._top.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)

    # which picture is shown

    def show_reason(self, reason: str) -> None:
        """Say in the place of pictures why there is none."""
        self.reason.setText(reason)
        self.pages.setCurrentIndex(0)

    def show_distance(self, distance: Distance) -> None:
        """Show the model, a block, or both where there is room; or one head's attention as matrices.

        The keyboard goes along, where it was on a picture that goes away.
        """
        had_keyboard = self._picture()
        follows = had_keyboard.hasFocus()
        self._distance = distance
        self.pages.setCurrentIndex(3 if distance == "attention" else 1)
        self._share()
        if follows and not had_keyboard.isVisible():
            self._picture().setFocus(Qt.FocusReason.OtherFocusReason)

    def _picture(self) -> QWidget:
        """What the keyboard acts on at the distance that is shown."""
        pictures: dict[Distance, QWidget] = {
            "model": self.model,
            "block": self.block,
            "attention": self.matrices.picture,
        }
        return pictures[self._distance]

    def show_recurrent(self) -> None:
        self.pages.setCurrentIndex(2)

    @property
    def is_of_time(self) -> bool:
        """Whether the picture of a recurrent model is shown, which has no distances."""
        return self.pages.currentWidget() is self.recurrent

    @property
    def shows_both(self) -> bool:
        """Whether there is room for the model and a block side by side, and it costs the model no lane."""
        wide = self.width() >= _BOTH * self.fontMetrics().height()
        room = _SHARE * (self.width() - _BETWEEN)
        least = self.model.layout_now().least_width if self.model.scene.stacks else 0.0
        return wide and not room < least <= self.width()

    def _share(self) -> None:
        near = self._distance != "model"
        self.model.setVisible(not near or self.shows_both)
        self.block_side.setVisible(near or self.shows_both)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share()
        self.say(self._said)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.say(self._said)

    def show_step(self, player: Player, step: PlayStep | None, hint: str) -> None:
        """Where Play is, or without a step what pressing it would do."""
        self.play.show_state(player.at, player.count, player.playing)
        is_box = step is not None and step.kind == "box"
        self.block.set_playing(step.box if step is not None and is_box else -1, player.travel)
        self.recurrent.set_filled(player.at + 1 if step is not None else -1)
        self.say(step.sentence if step is not None else hint)

    def say(self, sentence: str) -> None:
        """The line below the pictures; its height stays, whatever it says."""
        self._said = sentence
        line, size = self.fontMetrics().lineSpacing(), self.font().pointSizeF()
        is_low = self.height() < _LOW * line
        is_large = is_low and size * _SMALLER >= max(SMALLEST_FONT, least_points())
        # two lines that are smaller leave more to the picture
        font = smaller(self.font(), _SMALLER) if is_large else self.font()
        self.sentence.setFont(font)
        metrics = QFontMetrics(font)
        cut = metrics.elidedText(sentence, Qt.TextElideMode.ElideRight, max(1, self.width()))
        self.sentence.setText(cut if is_low and not is_large else sentence)
        self.sentence.setVisible(bool(sentence))
        self.sentence.setFixedHeight((1 if is_low and not is_large else 2) * metrics.lineSpacing() + 2)
        self.sentence.setToolTip(sentence)


def _mark() -> QPushButton:
    button = QPushButton()
    button.setProperty("role", "mark")
    button.hide()
    return button
