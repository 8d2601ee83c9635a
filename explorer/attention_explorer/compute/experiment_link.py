"""Between the session and the process in which the runs of an experiment learn: started, stopped and ended as the
state says.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from PySide6.QtCore import QObject

from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.compute.message_process import Work
from attention_explorer.compute.process_link import ProcessLink
from attention_explorer.recovery import training_folders
from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.intents import ExperimentTold
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_models.files.safe_files import not_written
from attention_models.protocol.experiment_messages import EXPERIMENT_HERE, BeginRuns, FromExperiment, from_experiment
from attention_models.protocol.training_messages import Failed, Stop

WORK = Work("attention_models.training.experiment_process", EXPERIMENT_HERE, from_experiment, "Press Run again.")

_KEPT = 8  # experiments whose models can still be opened


class ExperimentLink(ProcessLink[FromExperiment]):
    """Starts, stops and ends the process that the state speaks of, by the number of its experiment."""

    def __init__(self, turns: GuiQueue, parent: QObject | None = None) -> None:
        super().__init__(turns, parent)
        self._folders: list[Path] = []  # of models that may be open, the newest last

    def follow(self, old: Live, new: Live) -> None:
        """Do what a change of the experiment asks for."""
        before, now = old.experiment, new.experiment
        if self._is_stopped or now is before or now is None:
            return
        if before is None or now.number != before.number:
            self._let_go()
            self._run(now)
        elif not now.is_under_way:
            self._let_go()
        elif now.is_stopping and not before.is_stopping and self._process is not None:
            self._process.tell(Stop())

    def stop(self, timeout: float) -> bool:
        """End the process and remove what it wrote; whether it has ended within `timeout` seconds."""
        self._let_go()
        has_ended = self._end(timeout)
        if has_ended:
            self._remove_folders(0)
        return has_ended

    def _run(self, experiment: ExperimentState) -> None:
        number = experiment.number
        try:
            self._folders.append(training_folders.own_folder())
        except OSError as error:
            folder = training_folders.trainings_folder()
            self.told.emit(number, Failed(not_written("A model", folder, error)))
            return
        self._remove_folders(_KEPT)
        folder = self._folders[-1]
        self._start(WORK, number, BeginRuns(experiment.file, experiment.prepared.name, experiment.seed, str(folder)))

    def _let_go(self) -> None:
        """End the process, which has nothing to finish."""
        if (process := self._part()) is not None:
            process.kill()

    def _remove_folders(self, kept: int) -> None:
        """But for the newest ones."""
        while len(self._folders) > kept:
            shutil.rmtree(self._folders.pop(0), ignore_errors=True)


def connect_experiment(session: Session, link: ExperimentLink) -> None:
    """Let `link` do what `session` says of its experiment."""
    session.live_changed.connect(link.follow)
    link.told.connect(lambda number, message: session.dispatch(ExperimentTold(number, message)))
