"""The runs of a prepared experiment side by side: a step of each in turn, so that their curves grow together."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from attention_models.textbook.sentences import english_text
from attention_models.training.experiment import Experiment, experiment
from attention_models.training.measures import Learner, largest_weight, measure
from attention_models.training.prepared import Prepared, Run, Statement
from attention_models.training.training_loop import Diverged, Point

HELD_OUT = 100  # rows


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement, and what came out. `value` and `other` are infinite where a step was never reached."""

    statement: Statement
    value: float
    other: float  # of the other run; NaN where there is none
    holds: bool

    @property
    def sentence(self) -> str:
        """“training loss of “1 head” 1, of “8 heads” 0.093: at least 0.4 more is claimed”, whether or not it is so."""
        said, name = self.statement, self.statement.measure
        value = f"{name} of “{said.run}” {figure(name, self.value)}"
        if said.at_least is not None:
            return f"{value}: at least {figure(name, said.at_least)} is claimed"
        if said.at_most is not None:
            return f"{value}: at most {figure(name, said.at_most)} is claimed"
        by = f"{said.by:g} " if said.by else ""
        how = f"at least {by}{'more' if said.above is not None else 'less'}" if by else ""
        if said.times != 1:
            more = f" and {by}more" if by else ""
            how = f"at least {said.times:g} times as much{more}{'' if said.above is not None else ' of the other'}"
        if not how:
            how = "as much or more" if said.above is not None else "as much or less"
        return f"{value}, of “{said.other}” {figure(name, self.other)}: {how} is claimed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out of an experiment."""

    findings: tuple[Finding, ...]
    measured: Mapping[str, Mapping[str, float]]  # by measure and run
    notices: tuple[str, ...]  # of runs that could not go on

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)

    def lines(self) -> Iterator[str]:
        """Each measure of each run, then each statement."""
        for name, by_run in self.measured.items():
            yield f"{name}: " + ", ".join(f"{run} {figure(name, value)}" for run, value in by_run.items())
        yield from self.notices
        for finding in self.findings:
            yield f"{'yes' if finding.holds else 'no '}  {finding.sentence}"


class Comparison:
    """The runs of `prepared`, all of one seed. Raises ValueError where a run of it cannot be made."""

    def __init__(self, prepared: Prepared, seed: int = 0) -> None:
        self.prepared, self.seed = prepared, seed
        self.planned = tuple(planned_run(run, seed, prepared.characters) for run in prepared.runs)
        self.learners = tuple(
            Learner(run.name, planned.training()) for run, planned in zip(prepared.runs, self.planned, strict=True)
        )
        if "largest weight before training" in prepared.measures:
            for learner in self.learners:
                learner.weight_before = largest_weight(learner)
        self.step_number = 0

    @property
    def is_done(self) -> bool:
        return self.step_number >= self.prepared.steps

    def step(self) -> tuple[Point | None, ...]:
        """One step of each run; None of one that had to stop."""
        self.step_number += 1
        return tuple(_step(learner) for learner in self.learners)

    def verdict(self) -> Verdict:
        """What can be said where the runs stand."""
        measured = {
            name: {learner.name: measure(name, learner) for learner in self.learners} for name in self.prepared.measures
        }
        findings = []
        for statement in self.prepared.statements:
            values = measured[statement.measure]
            value, other = values[statement.run], values[statement.other] if statement.other is not None else math.nan
            findings.append(Finding(statement, value, other, statement.holds(value, other)))
        notices = tuple(f"{learner.name}: {learner.stopped}" for learner in self.learners if learner.stopped)
        return Verdict(tuple(findings), measured, notices)


def planned_run(run: Run, seed: int, characters: int) -> Experiment:
    planned = experiment(run.spec, run.switches, seed, english_text(characters, seed))
    return replace(planned, settings=replace(planned.settings, held_out=HELD_OUT))


def _step(learner: Learner) -> Point | None:
    if learner.stopped:
        return None
    begun = time.thread_time()
    try:
        point = learner.training.step()
    except Diverged as error:
        learner.stopped = str(error)
        return None
    learner.note(point.loss, point.accuracy, time.thread_time() - begun)
    return point


def figure(measure_name: str, value: float) -> str:
    """As it is told: three digits, a number of steps whole, “never” for what was not reached, “–” for what is none."""
    if value == math.inf:
        return "never"
    if math.isnan(value):
        return "–"
    return f"{value:.0f}" if measure_name == "steps to learn" else f"{value:.3g}"
