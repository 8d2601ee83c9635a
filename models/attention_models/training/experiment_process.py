"""The process in which the runs of a prepared experiment learn side by side while a window looks on.

What the two say to each other stands in `attention_models.protocol.experiment_messages`.
"""

from __future__ import annotations

import math
import re
import time
import traceback
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import IO, Literal

from attention_models.files.safe_files import not_written
from attention_models.protocol.errors import as_sentence
from attention_models.protocol.experiment_messages import (
    BeginRuns,
    Finding,
    Measure,
    RunModel,
    RunsBegan,
    RunsEnded,
    RunsLearned,
    RunsMeasured,
    to_experiment,
)
from attention_models.protocol.training_messages import Failed, HeldOutPoint, Said, Stop, TrainingPoint
from attention_models.training.comparison import Comparison, Verdict, figure
from attention_models.training.folders import save
from attention_models.training.measures import Learner
from attention_models.training.pipe import Pipe, be_process, sentence_of_crash
from attention_models.training.prepared import Prepared, read_prepared

TOLD_EVERY = 0.2  # seconds
MEASURED = 20  # times held-out rows are looked at, at evenly spaced steps, besides before the first one


def serve() -> None:
    """Be that process."""
    be_process(lambda source, out, on_closed: Runs(source, out, on_closed).serve())


class Runs:
    """Does what `source` says, a message a line, and tells `out` of it."""

    def __init__(self, source: IO[bytes], out: IO[bytes], on_closed: Callable[[], None] = lambda: None) -> None:
        """`on_closed` is called, in a thread of its own, when the source has ended."""
        self._pipe = Pipe(source, out, to_experiment, on_closed)
        self._is_stopped = False
        self._begun = self._told_at = 0.0

    def serve(self) -> None:
        """Until the runs are over and the source ends."""
        begin = self._pipe.next()
        while begin is not None and not isinstance(begin, BeginRuns):
            begin = self._pipe.next()
        if begin is None:
            return
        try:
            self._run(begin)
        except Exception as error:
            self._pipe.say(Failed(sentence_of_crash(error), traceback.format_exc()))
            return
        while self._pipe.next() is not None:
            self._pipe.say(Said("The runs are over."))

    def _run(self, begin: BeginRuns) -> None:
        try:
            comparison = Comparison(_prepared(begin), begin.seed)
        except ValueError as error:
            self._pipe.say(Failed(as_sentence(str(error))))
            return
        except OSError as error:
            self._pipe.say(
                Failed(f"The list of experiments cannot be read ({error.strerror or type(error).__name__}).")
            )
            return
        self._pipe.say(RunsBegan(tuple(learner.training.parameters for learner in comparison.learners)))
        self._begun = self._told_at = time.perf_counter()
        self._learn(comparison)
        if not self._pipe.is_closed:
            self._end(comparison, Path(begin.folder))

    def _learn(self, comparison: Comparison) -> None:
        """Until all steps are taken, or it is told to stop."""
        every = max(1, comparison.prepared.steps // MEASURED)
        points: list[list[TrainingPoint]] = [[] for _ in comparison.learners]
        self._measure(comparison)
        while not (comparison.is_done or self._is_told_to_stop()):
            for kept, point in zip(points, comparison.step(), strict=True):
                if point is not None:
                    kept.append(TrainingPoint(*astuple(point)))
            measures = comparison.step_number % every == 0 or comparison.is_done
            if measures or time.perf_counter() - self._told_at > TOLD_EVERY:
                self._tell(comparison, points)
            if measures:
                self._measure(comparison)
        self._tell(comparison, points)

    def _is_told_to_stop(self) -> bool:
        self._is_stopped |= any(isinstance(message, Stop) for message in [*self._pipe.said_by_now()])
        return self._is_stopped or self._pipe.is_closed

    def _tell(self, comparison: Comparison, points: list[list[TrainingPoint]]) -> None:
        """Of the steps that nobody has heard of."""
        self._told_at = time.perf_counter()
        if any(points):
            told = tuple(map(tuple, points))
            self._pipe.say(RunsLearned(comparison.step_number, told, self._told_at - self._begun))
        for kept in points:
            kept.clear()

    def _measure(self, comparison: Comparison) -> None:
        self._pipe.say(RunsMeasured(tuple(map(_held_out, comparison.learners))))

    def _end(self, comparison: Comparison, folder: Path) -> None:
        step, seconds = comparison.step_number, time.perf_counter() - self._begun
        if not step:
            self._pipe.say(RunsEnded("stopped", step, seconds, ()))
            return
        verdict = comparison.verdict()
        notices = verdict.notices
        models: tuple[RunModel | None, ...] = ()
        try:
            models = _written(comparison, folder)
        except OSError as error:
            notices = (*notices, not_written("A model", folder, error))
        how: Literal["done", "stopped"] = "done" if comparison.is_done else "stopped"
        findings = _findings(verdict) if comparison.is_done else ()
        self._pipe.say(RunsEnded(how, step, seconds, _measures(verdict), findings, notices, models))


def _prepared(begin: BeginRuns) -> Prepared:
    experiments = read_prepared(Path(begin.file))
    if begin.name not in experiments:
        raise ValueError(f"there is no experiment “{begin.name}”. There are {', '.join(experiments)}")
    return experiments[begin.name]


def _held_out(learner: Learner) -> HeldOutPoint | None:
    if learner.stopped:
        return None
    found = learner.held_out
    return HeldOutPoint(*astuple(found)) if math.isfinite(found.loss) else None


def _written(comparison: Comparison, folder: Path) -> tuple[RunModel | None, ...]:
    """Write the models into folders in `folder`, but for that of a run which diverged: it says nothing any more.

    Raises:
        OSError: the disk refuses.
    """
    models: list[RunModel | None] = []
    for learner, planned in zip(comparison.learners, comparison.planned, strict=True):
        if learner.stopped:
            models.append(None)
            continue
        words = re.sub("[^a-z0-9.]+", "-", learner.name.lower()).strip("-.")
        there = folder / f"{comparison.prepared.name}-{words}"
        save(learner.training, planned, there)
        models.append(RunModel(str(there), planned.example))
    return tuple(models)


def _measures(verdict: Verdict) -> tuple[Measure, ...]:
    return tuple(
        Measure(name, tuple(figure(name, value) for value in by_run.values()))
        for name, by_run in verdict.measured.items()
    )


def _findings(verdict: Verdict) -> tuple[Finding, ...]:
    return tuple(Finding(finding.sentence, finding.holds, finding.statement.is_clocked) for finding in verdict.findings)
