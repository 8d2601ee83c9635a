"""Between the session and the process in which the runs of an experiment learn: started, stopped and ended as the
state says.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot

from explorer import training_folders
from explorer.compute.told_process import ToldProcess, Work
from explorer.session.experiment import ExperimentState
from explorer.session.intents import ExperimentTold
from explorer.session.session import Session
from explorer.session.state import State
from models.files.whole_files import not_written
from models.protocol.experiment_messages import EXPERIMENT_HERE, BeginRuns, FromExperiment, from_experiment
from models.protocol.training_messages import Failed, Fell, Stop

WORK = Work("models.training.experiment_process", EXPERIMENT_HERE, from_experiment, "Press Run again.")

_KEPT = 8  # experiments whose models can still be opened

ExperimentProcess = ToldProcess[FromExperiment]


class ExperimentLink(QObject):
    """Every method is called in the GUI thread."""

    told = Signal(int, object)
    """What the process of the experiment of this number has said."""

    _said = Signal(int, object)  # emitted in a thread

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: ExperimentProcess | None = None
        self._ending: list[ExperimentProcess] = []
        self._folders: list[Path] = []  # of models that may be open, the newest last
        self._is_stopped = False
        self._said.connect(self._on_said, Qt.ConnectionType.QueuedConnection)

    @property
    def process(self) -> ExperimentProcess | None:
        return self._process

    def follow(self, old: State, new: State) -> None:
        """Do what a change of the state asks for."""
        before, now = old.experiment, new.experiment
        if self._is_stopped or now is before or now is None:
            return
        if before is None or now.number != before.number:
            self._let_go()
            self._start(now)
        elif not now.is_under_way:
            self._let_go()
        elif now.is_stopping and not before.is_stopping and self._process is not None:
            self._process.tell(Stop())

    def stop(self, timeout: float) -> bool:
        """End the process and remove what it wrote; whether it has ended within `timeout` seconds."""
        self._is_stopped = True
        self._let_go()
        deadline = time.monotonic() + timeout
        has_ended = all(process.wait(max(0.0, deadline - time.monotonic())) for process in self._ending)
        if has_ended:
            self._remove_folders(0)
        return has_ended

    def _start(self, experiment: ExperimentState) -> None:
        number = experiment.number
        try:
            self._folders.append(training_folders.new_folder_of_runs())
        except OSError as error:
            folder = training_folders.trainings_folder()
            self.told.emit(number, Failed(not_written("A model", folder, error)))
            return
        self._remove_folders(_KEPT)
        folder = self._folders[-1]
        first = BeginRuns(experiment.file, experiment.prepared.name, experiment.seed, str(folder))
        self._process = ToldProcess(WORK, first, lambda message: self._said.emit(number, message))
        self._process.start()

    def _let_go(self) -> None:
        """End the process, which has nothing to finish."""
        self._ending = [process for process in self._ending if process.is_alive]
        if self._process is not None:
            self._process.end()
            self._process.kill()
            self._ending.append(self._process)
            self._process = None

    def _remove_folders(self, kept: int) -> None:
        """But for the newest ones."""
        while len(self._folders) > kept:
            shutil.rmtree(self._folders.pop(0), ignore_errors=True)

    @Slot(int, object)
    def _on_said(self, number: int, message: FromExperiment | Failed | Fell) -> None:
        if not self._is_stopped:
            self.told.emit(number, message)


def connect_experiment(session: Session, link: ExperimentLink) -> None:
    """Let `link` do what `session` says of its experiment."""
    session.changed.connect(link.follow)
    link.told.connect(lambda number, message: session.dispatch(ExperimentTold(number, message)))
