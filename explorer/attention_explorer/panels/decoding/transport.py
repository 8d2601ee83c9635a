"""The player's buttons: restart, back, play or pause, step, and how fast it plays."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSlider, QWidget

from attention_explorer.panels.decoding.layout import count
from attention_explorer.widgets.flow_layout import FlowLayout

_SLOWEST, _FASTEST = 2000, 0  # ms between an answer and the next step
_NOTCHES = 10


class Transport(QWidget):
    restart = Signal()
    back = Signal()
    play = Signal(bool)  # False: pause
    step = Signal()
    paced = Signal()  # `pause_ms` has another value

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.restart_button = _button("Restart", "Go back to the prompt. What was written stays in Branches")
        self.back_button = _button("Back", "One step back")
        self.play_button = _PlayButton("Play")
        self.play_button.setCheckable(True)
        self.step_button = _button("Step", "Let the model write one token")
        self.step_button.setProperty("role", "primary")
        self.speed = QSlider(Qt.Orientation.Horizontal)
        self.speed.setRange(0, _NOTCHES)
        self.speed.setValue(7)
        self.speed.setAccessibleName("Speed")
        self.speed.setToolTip("How fast it plays")
        self.speed.setFixedWidth(90)
        label = QLabel("Speed")
        label.setProperty("role", "dim")
        group = QWidget()
        line = QHBoxLayout(group)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(6)
        line.addWidget(label)
        line.addWidget(self.speed)
        self._row = FlowLayout(self, gap=6)
        for widget in (self.restart_button, self.back_button, self.play_button, self.step_button, group):
            self.add(widget)
        self.restart_button.clicked.connect(lambda: self.restart.emit())
        self.back_button.clicked.connect(lambda: self.back.emit())
        self.play_button.clicked.connect(lambda on: self.play.emit(on))
        self.step_button.clicked.connect(lambda: self.step.emit())
        self.speed.valueChanged.connect(lambda _: self.paced.emit())

    def add(self, widget: QWidget) -> None:
        """Put a widget at the end."""
        self._row.addWidget(widget)

    @property
    def pause_ms(self) -> int:
        """Milliseconds between an answer and the next step."""
        left = 1 - self.speed.value() / _NOTCHES
        return round(_FASTEST + (_SLOWEST - _FASTEST) * left**2)

    def show_state(self, playing: bool, can_go_back: bool, can_step: bool, steps: int) -> None:
        """`steps` is how many the model writes at most."""
        self.play_button.setToolTip(
            f"Let the model write until it ends the text or has written {count(steps, 'token')} (Steps, under Settings)"
        )
        self.play_button.setText("Pause" if playing else "Play")
        self.play_button.setChecked(playing)
        self.play_button.setEnabled(playing or can_step)
        self.step_button.setEnabled(can_step and not playing)
        self.back_button.setEnabled(can_go_back)
        self.restart_button.setEnabled(can_go_back)


class _PlayButton(QPushButton):
    """As wide as the wider of its names, so that the buttons beside it stay where they are."""

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        widest = max(self._width_of(name) for name in ("Play", "Pause"))
        return QSize(hint.width() + widest - self._width_of(self.text()), hint.height())

    def _width_of(self, name: str) -> int:
        return self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, name).width()  # as Qt's own hint measures it


def _button(text: str, tooltip: str) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(tooltip)
    return button
