"""A slider through the snapshots of a training, and whether the newest one is followed."""

from __future__ import annotations

from bisect import bisect_left

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QSlider, QWidget

_END = "the end"


class StepSlider(QWidget):
    """Each place of the slider is one snapshot, and the last the end of the training, where it has one. Arrow keys go
    by one.
    """

    moved = Signal(object)  # by a person: to a step, or None for the end
    followed = Signal(bool)  # by a person

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._steps: tuple[int, ...] = ()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Step of the training")
        self.slider.setToolTip("The model as it was after a step of its training (Alt+, and Alt+.)")
        self.slider.setMinimumWidth(60)
        self.slider.setPageStep(10)
        self.slider.valueChanged.connect(self._tell)
        name = QLabel("Training")
        name.setBuddy(self.slider)
        self.label = QLabel()
        self.label.setProperty("role", "dim")
        self.label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.follow = QPushButton("Follow")
        self.follow.setCheckable(True)
        self.follow.setToolTip("Show the newest snapshot, and each that comes while it is trained")
        self.follow.clicked.connect(lambda on: self.followed.emit(on))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(name)
        row.addWidget(self.slider, 1)
        row.addWidget(self.label)
        row.addWidget(self.follow)

    def show_steps(self, steps: tuple[int, ...], step: int | None, following: bool, has_end: bool = True) -> None:
        """Without emitting anything: the steps that there are, ascending, and the one that is shown, None for the end.

        `has_end` says whether that can be chosen. A step whose snapshot has gone is shown at the place where it was.
        """
        self._steps = steps
        self.slider.blockSignals(True)
        self.slider.setRange(0, len(steps) if has_end else max(0, len(steps) - 1))
        self.slider.setValue(len(steps) if step is None else min(bisect_left(steps, step), len(steps) - 1))
        self.slider.blockSignals(False)
        longest = f"step {steps[-1]:,} of {steps[-1]:,}" if steps else _END
        self.label.setFixedWidth(self.label.fontMetrics().horizontalAdvance(longest) + 4)  # it does not move the slider
        self.label.setText(_END if step is None or not steps else f"step {step:,} of {steps[-1]:,}")
        self.follow.setChecked(following)

    def walk(self, places: int) -> None:
        """So many places on, or back; as if the slider was moved. At its ends nothing happens."""
        self.slider.setValue(self.slider.value() + places)

    def _tell(self, place: int) -> None:
        self.moved.emit(self._steps[place] if place < len(self._steps) else None)
