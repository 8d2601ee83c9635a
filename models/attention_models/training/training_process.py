"""The process in which a model learns while a window looks on. It is told what to do over its pipe.

The window's interpreter lock is not shared, so neither waits for the other. What the two say to each other stands in
`attention_models.protocol.training_messages`. The process ends with its standard input.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import IO, Literal

from attention_models.files.safe_files import not_written
from attention_models.files.training_steps import SNAPSHOTS, steps_in
from attention_models.protocol.errors import ExplorerError, as_sentence
from attention_models.protocol.training_messages import (
    MOST_BYTES,
    AskedTuning,
    Began,
    Begin,
    Dissect,
    Dissected,
    Ended,
    Failed,
    Go,
    HeldOutPoint,
    Learned,
    Measure,
    Measured,
    NotDissected,
    OneBatch,
    Pause,
    Said,
    Save,
    Saved,
    SnapshotWritten,
    Stop,
    ToProcess,
    TrainingPoint,
    Write,
    line_of,
    to_process,
)
from attention_models.training.common import Budget
from attention_models.training.folders import why_not
from attention_models.training.gradient_breakdown import break_down_gradient
from attention_models.training.pipe import Pipe, be_process, sentence_of_crash
from attention_models.training.snapshots import NEWEST, Snapshots
from attention_models.training.taught import taught
from attention_models.training.training import Training
from attention_models.training.training_loop import Command, Diverged, Outcome, Point

TOLD_EVERY = 0.2  # seconds
MEASURED_SHARE = 0.03  # of the time may be spent on held-out rows, and
_MEASURED_EVERY = 1.0  # seconds lie between two measurements at least


def serve() -> None:
    """Be that process."""
    be_process(lambda source, out, on_closed: Learner(source, out, on_closed).serve())


class Learner:
    """Does what `source` says, a message a line, and tells `out` of it."""

    def __init__(self, source: IO[bytes], out: IO[bytes], on_closed: Callable[[], None] = lambda: None) -> None:
        """`on_closed` is called, in a thread of its own, when the source has ended."""
        self._pipe = Pipe(source, out, to_process, on_closed)
        self._say = self._pipe.say
        self._command: Command = "go"
        self._is_paused = False
        self._points: list[TrainingPoint] = []
        self._told_at = self._measured_at = self._begun = 0.0
        self._measuring_takes = math.inf
        self._seconds, self._first = 0.0, 0
        self._budget = Budget(steps=1)
        self._notice, self._prompt = "", ("", "")
        self._saved_in = set[Path]()

    def serve(self) -> None:
        """Until the source ends."""
        begin = self._pipe.next()
        while begin is not None and not isinstance(begin, Begin):
            self._say(Said("Nothing is being trained yet."))
            begin = self._pipe.next()
        if begin is None:
            return
        try:
            self._train(begin)
        except Exception as error:
            self._say(Failed(sentence_of_crash(error), traceback.format_exc()))

    # ------------------------------------------------------------------ a training

    def _train(self, begin: Begin) -> None:
        folder = Path(begin.folder)
        taken_up = begin.taken_up and bool(steps_in(folder))
        try:
            self._budget = Budget(begin.asked.seconds, begin.asked.steps)
            self.taught = taught(begin.asked, folder, taken_up)
        except ExplorerError as error:
            self._say(Failed(str(error)))
            return
        except ValueError as error:
            self._say(Failed(as_sentence(str(error))))
            return
        self.training, self.folder = self.taught.course, folder
        if not self._begin(taken_up):
            return
        for found in self.training.held_out:
            self._say(Measured(HeldOutPoint(*astuple(found))))
        self._measure(self.taught.watched)
        if isinstance(begin.asked, AskedTuning):
            self._write(begin.asked.prompt, begin.asked.second)
        self._run()
        while (asked := self._pipe.next()) is not None:
            self._obey(asked)
            if isinstance(asked, Go | OneBatch):
                self._command = "go" if isinstance(asked, Go) else "step"
                if isinstance(asked, OneBatch):
                    self._one_batch()
                else:
                    self._run()

    def _begin(self, taken_up: bool) -> bool:
        """Write the folder; whether that could be done."""
        training, snapshots = self.training, self.training.snapshots
        assert snapshots is not None
        try:
            self.taught.save(self.folder)
        except OSError as error:
            self._say(Failed(not_written("The model", self.folder, error)))
            return False
        if not taken_up:
            snapshots.clear()
            training.snapshot()
        points = tuple(TrainingPoint(*astuple(point)) for point in training.points)
        it = self.taught
        began = (str(self.folder), it.title, it.example, training.parameters, training.step_number, points)
        eased = training.dropout, training.smoothing
        self._say(Began(*began, *eased, it.classifies))
        self._tell_snapshot(training.step_number)
        return True

    def _run(self) -> None:
        self._seconds, self._first = 0.0, self.training.step_number
        outcome = self.training.run(self._budget, self._next_command, self._told, cool_down=self.taught.cools_down)
        self._flush("paused")
        self._keep()
        self._end(outcome)

    def _one_batch(self) -> None:
        """A step after the end of a run."""
        outcome = self.training.run(Budget(steps=1), self._next_command, self._told)
        self._flush("paused")
        self._keep()
        self._end(Outcome("stopped" if outcome.ended == "done" else outcome.ended, outcome.step, 0.0, outcome.notice))

    def _end(self, outcome: Outcome) -> None:
        if not self._pipe.is_closed:
            self._measure()
            self._write(*self._prompt)
            self._say(Ended(outcome.ended, outcome.step, outcome.seconds, outcome.notice))

    def _keep(self) -> None:
        """Let the folder hold the model as it is now, also as a snapshot."""
        if self._pipe.is_closed:
            return
        step, snapshots = self.training.step_number, self.training.snapshots
        assert snapshots is not None
        if not snapshots.path(step).is_file():
            self.training.snapshot()
            self._tell_snapshot(step)
        try:
            self.taught.save(self.folder)
        except OSError as error:
            self._say(Said(not_written("The model", self.folder, error)))

    # ------------------------------------------------------------------ between two steps

    def _next_command(self) -> Command:
        """What `Course.run` is to do next; what else was asked for is done first."""
        for asked in self._pipe.said_by_now():
            self._obey(asked)
        if self._pipe.is_closed:
            return "stop"
        command = self._command
        if command == "step":
            self._command = "pause"
        if command == "pause" and not self._is_paused:
            self._is_paused = True
            self._flush("paused")
            self._keep()
            self._measure()
            self._write(*self._prompt)
        elif command in ("go", "step"):
            self._is_paused = False
            self._measure_now_and_then()
            self._begun = time.perf_counter()
        return command

    def _obey(self, asked: ToProcess) -> None:
        match asked:
            case Go():
                self._command = "go"
            case Pause():
                self._command = "pause"
            case OneBatch():
                self._command = "step"
            case Stop():
                self._command = "stop"
            case Measure():
                self._measure()
            case Save():
                self._save(Path(asked.folder))
            case Dissect():
                self._dissect(asked)
            case Write():
                self._write(asked.prompt, asked.second)
            case Begin():
                self._say(Said("A training is under way in this process."))

    def _told(self, point: Point) -> None:
        now = time.perf_counter()
        self._seconds += now - self._begun
        self._points.append(TrainingPoint(*astuple(point)))
        if now - self._told_at > TOLD_EVERY:
            self._flush("running")
        if point.step % self.training.snapshot_every == 0:
            self._tell_snapshot(point.step)

    def _flush(self, phase: Literal["running", "paused"]) -> None:
        self._told_at = time.perf_counter()
        fraction = self._budget.fraction(self.training.step_number - self._first, self._seconds)
        points, self._points = tuple(self._points), []
        self._say(Learned(points, self._seconds, min(1.0, fraction), phase))

    def _tell_snapshot(self, step: int) -> None:
        snapshots = self.training.snapshots
        assert snapshots is not None
        if snapshots.path(step).is_file():
            self._notice = ""
            self._say(SnapshotWritten(step))
        elif not self._notice:  # once, and not at every snapshot that a full disk refuses
            self._notice = self.training.notice
            self._say(Said(self.training.notice))

    def _measure_now_and_then(self) -> None:
        if time.perf_counter() - self._measured_at > max(_MEASURED_EVERY, self._measuring_takes / MEASURED_SHARE):
            self._measure(self.taught.watched)

    def _measure(self, most: int | None = None) -> None:
        begun = time.perf_counter()
        found = self.training.measure(most)
        self._measured_at = time.perf_counter()
        if most is not None:  # the least: one that the window's own work held up says nothing of the others
            self._measuring_takes = min(self._measuring_takes, self._measured_at - begun)
        if math.isfinite(found.loss):
            self._say(Measured(HeldOutPoint(*astuple(found))))
        else:
            self._say(Said(f"At step {found.step:,} the loss on held-out rows is no number."))

    def _dissect(self, asked: Dissect) -> None:
        training = self.training
        if not isinstance(training, Training):
            self._say(NotDissected("The next batch is shown of models that learn from nothing; this one is tuned."))
            return
        try:
            with training.untouched():
                found = Dissected(break_down_gradient(training, asked.token, asked.dimension))
        except (TypeError, IndexError, Diverged) as error:
            self._say(NotDissected(str(error)))
            return
        if len(line_of(found)) > MOST_BYTES:
            why = "This batch is too large to be shown number by number. Train with fewer rows a batch."
            self._say(NotDissected(why))
        else:
            self._say(found)

    def _write(self, prompt: str, second: str) -> None:
        """Say what the model writes after `prompt`, or what it says of it, before it learned and now.

        Nothing is said after an empty one.
        """
        self._prompt = prompt, second
        if not prompt.strip():
            return
        try:
            found = self.taught.write(prompt, second)
        except ExplorerError as error:
            self._say(Said(str(error)))
            return
        if found is not None:
            self._say(found)

    def _save(self, folder: Path) -> None:
        assert self.training.snapshots is not None
        if folder.resolve() == self.folder.resolve():
            self._say(Said(f"{folder} is where the program itself keeps the training. Name another folder."))
            return
        is_own = folder.resolve() in self._saved_in  # an earlier step of this training may be replaced
        if sentence := "" if is_own else why_not(folder):
            self._say(Said(sentence))
            return
        if self.taught.made_from is not None and folder.resolve() == self.taught.made_from.resolve():
            self._say(Said(f"{folder} is the checkpoint that is tuned, and would be lost. Name another folder."))
            return
        try:
            self.taught.save(folder)
            there = Snapshots(folder / SNAPSHOTS)
            there.clear()  # of an earlier training
            here = self.training.snapshots
            for path in (*(here.path(step) for step in here.steps), here.folder / NEWEST):
                if path.is_file():
                    there.copy(path)
        except OSError as error:
            self._say(Said(not_written("The model", folder, error)))
        else:
            self._saved_in.add(folder.resolve())
            self._say(Saved(str(folder)))
