"""Between the session and the process that trains: a thread reads what it says, another one tells it what to do."""

from __future__ import annotations

import logging
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot

from explorer import training_folders
from explorer.session.intents import TrainingTold
from explorer.session.session import Session
from explorer.session.state import State
from explorer.session.training import TrainingState
from models.files.own_process import OwnProcess
from models.files.whole_files import not_written
from models.protocol.training_messages import (
    MOST_BYTES,
    TRAIN_HERE,
    Begin,
    Failed,
    Fell,
    FromProcess,
    Pause,
    Save,
    ToProcess,
    from_process,
    line_of,
)

log = logging.getLogger(__name__)

_KILLED_WITHIN = 0.5  # seconds
_REPLACED_WITHIN = 10.0
_MODULE = "models.training.training_process"


class TrainingProcess:
    """One process, from its start to its end, and the threads that talk with it."""

    def __init__(self, begin: Begin, deliver: Callable[[FromProcess | Fell], None]) -> None:
        """`deliver` is called in a thread of its own."""
        self._own = OwnProcess(_MODULE, TRAIN_HERE)
        self._begin, self._deliver = begin, deliver
        self._to_tell: queue.SimpleQueue[ToProcess | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ending = threading.Event()
        self._has_begun = False
        self._thread = threading.Thread(target=self._live, name="training", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def tell(self, message: ToProcess) -> None:
        self._to_tell.put(message)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def pid(self) -> int | None:
        """Of the process, once it is started."""
        return None if self._process is None else self._process.pid

    def end(self) -> None:
        """Tell it to end, without waiting: a file that it writes is finished first."""
        self._is_ending.set()
        self._to_tell.put(None)
        if not self._has_begun:
            self.kill()  # it is still importing, and has nothing to finish

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def wait(self, timeout: float) -> bool:
        """For its end, at most so many seconds; whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _live(self) -> None:
        try:
            process = self._process = self._own.running()
        except OSError as error:
            why = error.strerror or str(error)
            self._deliver(Failed(f"The process that trains cannot be started ({why}). Close other programs."))
            return
        if self._is_ending.is_set():
            process.kill()
        threading.Thread(target=self._tell, args=(process,), name="telling the training", daemon=True).start()
        has_failed = self._listen(process)
        self._to_tell.put(None)
        code = process.wait()
        self._own.end()
        if not (has_failed or self._is_ending.is_set()):
            self._deliver(Fell(code))

    def _tell(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        message: ToProcess | None = self._begin
        with suppress(OSError, ValueError):  # it has ended, which is told elsewhere
            while message is not None:
                process.stdin.write(line_of(message))
                process.stdin.flush()
                message = self._to_tell.get()
        with suppress(OSError, ValueError):
            process.stdin.close()

    def _listen(self, process: subprocess.Popen[bytes]) -> bool:
        """Until it says nothing more; whether it has said that it failed."""
        assert process.stdout is not None
        while True:
            try:
                line = process.stdout.readline(MOST_BYTES + 1)
                if not line:
                    return False
                message = from_process(line)
            except (OSError, ValueError) as error:
                if self._process_is_over(process):
                    return False  # it was ended in the middle of a line
                log.warning("the process that trains said what cannot be read: %s", error)
                process.kill()
                self._deliver(Failed("The process that trains said what cannot be read, and was ended. Train again."))
                return True
            self._has_begun = True
            if self._is_ending.is_set():
                continue
            self._deliver(message)
            if isinstance(message, Failed):
                if message.cause:
                    log.warning("%s\n%s", message.sentence, message.cause)
                return True

    @staticmethod
    def _process_is_over(process: subprocess.Popen[bytes]) -> bool:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        return process.poll() is not None


class TrainingLink(QObject):
    """Starts, tells and ends the process that the state speaks of. Every method is called in the GUI thread."""

    told = Signal(int, object)
    """What the process of the training of this number has said."""

    _said = Signal(int, object)  # emitted in a thread

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: TrainingProcess | None = None
        self._ending: list[TrainingProcess] = []  # of trainings that were replaced
        self._folder: Path | None = None
        self._is_stopped = False
        self._said.connect(self._on_said, Qt.ConnectionType.QueuedConnection)

    @property
    def process(self) -> TrainingProcess | None:
        return self._process

    def follow(self, old: State, new: State) -> None:
        """Do what a change of the state asks for."""
        before, now = old.learning, new.learning
        if self._is_stopped or now is before or now is None:
            return
        if before is None or now.number != before.number:
            self._begin(now)
        elif now.command is not None and now.command is not before.command:
            self._tell(now, now.command)

    @staticmethod
    def clean_up() -> None:
        """Remove what killed windows have left, without waiting for it."""
        threading.Thread(target=training_folders.remove_left_behind, daemon=True).start()

    def stop(self, timeout: float) -> bool:
        """End the process and remove its folder; whether that was done within `timeout` seconds.

        With a timeout of 0 it is only told; another call waits, and kills what does not end.
        """
        self._is_stopped = True
        deadline = time.monotonic() + timeout
        processes = [*self._ending, *([] if self._process is None else [self._process])]
        for process in processes:
            process.end()
        ended = [process.wait(max(0.0, deadline - time.monotonic())) for process in processes]
        if timeout and not all(ended):
            for process in processes:
                process.kill()
            ended = [process.wait(_KILLED_WITHIN) for process in processes]
        if all(ended) and self._folder is not None:
            training_folders.remove(self._folder)
            self._folder = None
        return all(ended)

    def _begin(self, training: TrainingState) -> None:
        self._let_go()
        try:
            self._folder = training_folders.new_folder(training.asked.task.partition(":")[0])
        except OSError as error:
            folder = training_folders.trainings_folder()
            self.told.emit(training.number, Failed(not_written("The model", folder, error)))
            return
        self._start(training, taken_up=False)

    def _let_go(self) -> None:
        """Of the training before this one, and of its folder once its process has ended."""
        self._ending = [process for process in self._ending if process.is_alive]
        process, folder = self._process, self._folder
        self._process = self._folder = None
        if process is not None:
            process.end()
            self._ending.append(process)
        if folder is not None:
            threading.Thread(target=_remove_after, args=(process, folder), daemon=True).start()

    def _start(self, training: TrainingState, taken_up: bool) -> None:
        number = training.number
        begin = Begin(training.asked, str(self._folder), taken_up)
        self._process = TrainingProcess(begin, lambda message: self._said.emit(number, message))
        self._process.start()

    def _tell(self, training: TrainingState, message: ToProcess) -> None:
        if self._folder is None:
            return
        if self._process is None or not self._process.is_alive:
            self._start(training, taken_up=True)
            assert self._process is not None
            if isinstance(message, Save):
                self._process.tell(Pause())  # it is not to learn on
        self._process.tell(message)

    @Slot(int, object)
    def _on_said(self, number: int, message: FromProcess | Fell) -> None:
        if not self._is_stopped:
            self.told.emit(number, message)


def _remove_after(process: TrainingProcess | None, folder: Path) -> None:
    if process is not None and not process.wait(_REPLACED_WITHIN):
        process.kill()
        process.wait(_KILLED_WITHIN)
    training_folders.remove(folder)


def connect_training(session: Session, link: TrainingLink) -> None:
    """Let `link` do what `session` says of its training."""
    session.changed.connect(link.follow)
    link.told.connect(lambda number, message: session.dispatch(TrainingTold(number, message)))
