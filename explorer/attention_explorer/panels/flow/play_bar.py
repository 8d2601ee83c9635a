"""Play, pause, step, back, and how fast."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QSlider, QToolButton, QWidget

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
