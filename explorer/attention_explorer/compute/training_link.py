"""Between the session and the process that trains: it is started, told and ended as the state says."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.compute.message_process import MessageProcess, Work, end_all
from attention_explorer.compute.process_link import ProcessLink
from attention_explorer.recovery import training_folders
from attention_explorer.session.intents import TrainingsLeft, TrainingTold
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.session.training import LeftTraining, TrainingState
from attention_models.files.safe_files import not_written
from attention_models.protocol.training_messages import (
    TRAIN_HERE,
    Asked,
    AskedTuning,
    Begin,
    Failed,
    FromProcess,
    Pause,
    Save,
    ToProcess,
    Write,
    from_process,
)

_REPLACED_WITHIN = 10.0  # seconds
_GONE = "This training is not there any more: another window has gone on with it, or it was deleted."

WORK = Work("attention_models.training.training_process", TRAIN_HERE, from_process, "Train again.")

TrainingProcess = MessageProcess[FromProcess]


class TrainingLink(ProcessLink[FromProcess]):
    """Starts, tells and ends the process that the state speaks of, by the number of its training."""

    found = Signal(object)
    """Those of ended windows and of this one that can be gone on with, the newest first: `LeftTraining` in a tuple."""

    def __init__(self, turns: GuiQueue, parent: QObject | None = None) -> None:
        super().__init__(turns, parent)
        self._folder: Path | None = None
        self.keeps_unsaved = False
        """Whether what is not saved stays, for this window or another; else it is deleted with this one."""
        self._saved_step = -1
        self._replaced: list[Path] = []  # trainings of this window that were not saved before the next began

    def follow(self, old: State, new: State) -> None:
        """Delete what the person does not want."""
        if new.discarded_trainings is not old.discarded_trainings:
            self._discard(new.discarded_trainings[len(old.discarded_trainings) :])

    def follow_live(self, old: Live, new: Live) -> None:
        """Do what a change of the training asks for."""
        before, now = old.learning, new.learning
        if now is before or now is None:
            return
        if not self._is_stopped:
            if before is None or now.number != before.number:
                self._begin(now)
            elif now.command is not None and now.command is not before.command:
                self._tell(now, now.command)
        self._saved_step = now.saved_step

    def look_for_left(self) -> None:
        """Say, a moment later, what can be gone on with."""
        threading.Thread(target=self._look, name="trainings left", daemon=True).start()

    def stop(self, timeout: float) -> bool:
        """End the process; whether that was done within `timeout` seconds. A folder of which all is saved is deleted.

        With a timeout of 0 it is only told; another call waits, and kills what does not end.
        """
        has_ended = self._end(timeout)
        if has_ended and self._folder is not None:
            if not self._is_kept(self._folder, self._saved_step):
                training_folders.remove(self._folder)
            self._folder = None
        return has_ended

    def _is_kept(self, folder: Path, saved_step: int) -> bool:
        """Whether there is more in `folder` than the person has saved.

        The disk says so, and not the state: of a training that is gone on with nothing may have been heard yet.
        """
        return self.keeps_unsaved and training_folders.last_step(folder) > max(0, saved_step)

    def _begin(self, training: TrainingState) -> None:
        self._let_go()
        if training.left is not None:
            self._take_up(training, training.left)
            return
        folder = self._folder = training_folders.new_folder(training.asked)
        begin = Begin(training.asked, str(folder))
        self._start(WORK, training.number, begin, partial(_make, folder, training.asked))

    def _take_up(self, training: TrainingState, left: LeftTraining) -> None:
        try:
            self._folder = training_folders.take(left)
        except OSError:
            self.told.emit(training.number, Failed(_GONE))
            return
        self._go_on(training).tell(Pause())  # it is looked at first

    def _let_go(self) -> None:
        """Of the training before this one: once its process has ended it is offered, or deleted if all is saved."""
        process, folder = self._part(), self._folder
        self._folder = None
        if folder is not None:
            threading.Thread(target=self._put_aside, args=(process, folder, self._saved_step), daemon=True).start()

    def _put_aside(self, process: TrainingProcess | None, folder: Path, saved_step: int) -> None:
        """In a thread of its own."""
        if process is not None:
            end_all([process], _REPLACED_WITHIN)
        if self._is_kept(folder, saved_step):
            self._replaced.append(folder)
            self._look()
        else:
            training_folders.remove(folder)

    def _look(self) -> None:
        """In a thread of its own."""
        found = training_folders.left_behind(tuple(self._replaced))
        with suppress(RuntimeError):  # the window is gone by now
            self._turns.do(lambda: self._on_looked(found))

    def _discard(self, discarded: tuple[LeftTraining, ...]) -> None:
        def delete() -> None:
            for left in discarded:
                training_folders.discard(left)

        threading.Thread(target=delete, name="trainings discarded", daemon=True).start()

    def _go_on(self, training: TrainingState) -> TrainingProcess:
        return self._start(WORK, training.number, Begin(training.asked, str(self._folder), taken_up=True))

    def _tell(self, training: TrainingState, message: ToProcess) -> None:
        if self._folder is None:
            self.told.emit(training.number, Failed(_GONE))
            return
        process = self._process
        if process is None or not process.is_alive:
            process = self._go_on(training)
            if isinstance(message, Save | Write):
                process.tell(Pause())  # it is not to learn on
        process.tell(message)

    def _on_looked(self, found: tuple[LeftTraining, ...]) -> None:
        if found and not self._is_stopped:
            self.found.emit(found)


def _make(folder: Path, asked: Asked | AskedTuning) -> str:
    """Why it cannot be made, as a sentence; "" once it is there."""
    try:
        training_folders.make(folder, asked)
    except OSError as error:
        return not_written("The model", training_folders.trainings_folder(), error)
    return ""


def connect_training(session: Session, link: TrainingLink) -> None:
    """Let `link` do what `session` says of its training."""
    session.changed.connect(link.follow)
    session.live_changed.connect(link.follow_live)
    link.found.connect(lambda found: session.dispatch(TrainingsLeft(found)))
    link.told.connect(lambda number, message: session.dispatch(TrainingTold(number, message)))
