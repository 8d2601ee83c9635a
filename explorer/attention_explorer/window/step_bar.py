"""The line with the slider through the training of the open checkpoint; hidden where no snapshots lie beside it."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from attention_explorer.compute.background import Background
from attention_explorer.session.intents import FollowTraining, GoToStep, SnapshotsFound
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.step_slider import StepSlider
from attention_models.files.training_steps import steps_in

_LOOKED_EVERY = 400  # ms: whether the training has written another snapshot
_PATIENCE = 2.0  # seconds that the panels in sight have to be answered of one step, before the next is followed


class StepBar(QWidget):
    """While it can be seen it looks in the training's folder for snapshots that have come, whichever process trains."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._work = Background("snapshots", self)
        self._is_looking = False
        self._moved_at = time.monotonic()
        self.steps = StepSlider()
        self.steps.moved.connect(lambda step: session.dispatch(GoToStep(step)))
        self.steps.followed.connect(lambda on: session.dispatch(FollowTraining(on)))
        row = QHBoxLayout(self)
        row.setContentsMargins(6, 0, 6, 0)
        row.addWidget(self.steps)
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOKED_EVERY)
        self._timer.timeout.connect(self._look)
        session.changed.connect(lambda _old, new: self._show(new))
        session.live_changed.connect(self._on_live_changed)
        self._show(session.state)

    def _on_live_changed(self, old: Live, new: Live) -> None:
        if new.learning is not old.learning:
            self._show(self._session.state)  # the open training may be another window's from now on

    def stop(self, timeout: float) -> bool:
        """End its thread; whether it ended in time."""
        self._timer.stop()
        return self._work.stop(timeout)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _show(self, state: State) -> None:
        training = state.training
        if training is not None:
            asked = state.document.checkpoint if state.stepping is not None else training.at(training.step)
            step = None if asked == training.reference else int(asked.rpartition("@")[2])
            self.steps.show_steps(training.steps, step, state.following, has_end=not state.is_own_training)
        self.setVisible(training is not None)

    def _look(self) -> None:
        loaded = self._session.state.results.loaded
        if self._is_looking or loaded is None or loaded.info.training is None:
            return
        if self._session.state.following and self._session.live.busy and time.monotonic() - self._moved_at < _PATIENCE:
            return
        self._is_looking = True
        folder, reference = Path(loaded.info.folder), loaded.info.training.reference

        def found(steps: tuple[int, ...] | Exception) -> None:
            self._is_looking = False
            if not isinstance(steps, Exception):
                self._moved_at = time.monotonic()
                self._session.dispatch(SnapshotsFound(reference, steps))

        self._work.run(lambda: steps_in(folder), found)
