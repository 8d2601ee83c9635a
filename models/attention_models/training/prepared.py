"""Prepared experiments: a few trainings to be run side by side, and what is claimed of them. Read from one TOML file.

No torch is imported here: a window may list them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attention_models.files.toml_files import decode_toml

CLOCKED = frozenset({"seconds to learn", "milliseconds a step"})
"""Measures that a busy computer changes."""

MEASURES: dict[str, str] = {  # by name, and what it is
    "sequences right": "part of the held-out rows that the model writes right by itself",
    "tokens right": "part of the held-out tokens that are right beside true ones before them",
    "held-out loss": "nats a token on held-out rows, without label smoothing",
    "training loss": "nats a token, the mean of the last 20 steps, with the dropout and label smoothing of the run",
    "loss beside frequencies": "held-out loss, less that of knowing how often each token occurs and nothing more",
    "steps to learn": "steps until nine tokens in ten of a batch are right, the mean of 10 steps",
    "seconds to learn": "processor time of those steps",
    "milliseconds a step": "processor time of one step, the median",
    "largest weight before training": "of a query's weights the largest, the mean over queries, heads and layers",
    "overconfidence": "how sure the model is of its first choice, less how often that is right, on held-out tokens",
    "calibration error": "how far sureness and being right lie apart, in ten bins of sureness, on held-out tokens",
    "loss on longer rows": "nats a token at the places beyond the trained length",
    "loss at the trained length": "nats a token at the last quarter of the places that were trained",
    "times the trained loss": "loss on longer rows, as a multiple of the loss at the trained length",
    "prefix-match score": "attention of the best head to what came after this token before",
    "middle half": "part of the steps in which tokens right climb from a quarter to three quarters of all they gain",
}

_CHARACTERS = 20_000
_KINDS = ("at_least", "at_most", "above", "below")


@dataclass(frozen=True, slots=True)
class Run:
    """One of the trainings."""

    name: str
    spec: str  # a task, as `--train` takes it
    switches: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Statement:
    """A measure of one run, held against a number or against the same measure of another run."""

    measure: str
    run: str
    at_least: float | None = None
    at_most: float | None = None
    above: str | None = None  # the name of the other run
    below: str | None = None
    times: float = 1.0  # how many times the other's
    by: float = 0.0  # and how much more, or less

    def holds(self, value: float, other: float) -> bool:
        """Whether `value` of `run` is as is stated, beside `other` of the other run where there is one."""
        if value == other == math.inf:  # neither came there: nothing is above or below
            return False
        if self.at_least is not None:
            return value >= self.at_least
        if self.at_most is not None:
            return value <= self.at_most
        if self.above is not None:
            return value >= other * self.times + self.by
        return value * self.times <= other - self.by

    @property
    def other(self) -> str | None:
        return self.above or self.below

    @property
    def is_clocked(self) -> bool:
        return self.measure in CLOCKED


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared experiment."""

    name: str
    title: str
    compares: str  # a sentence: what differs between the runs
    look_for: str  # a sentence: what there is to see
    claim: str  # a sentence, of which `statements` are the check
    source: str  # who found it
    steps: int
    seconds: int  # that it takes, about, on one core
    runs: tuple[Run, ...]
    statements: tuple[Statement, ...]
    shown: tuple[str, ...] = field(default=())  # measures that are told beside
    characters: int = _CHARACTERS  # of the text that the task "text" reads

    @property
    def measures(self) -> tuple[str, ...]:
        """All that are told of its runs, in order."""
        return tuple(dict.fromkeys([*(statement.measure for statement in self.statements), *self.shown]))


def read_prepared(path: Path) -> dict[str, Prepared]:
    """By name, in the order of the file.

    Raises:
        ValueError: the file is no list of experiments; the sentence names the experiment and what is wrong with it.
    """
    table = decode_toml(path.read_text(encoding="utf-8"))
    return {name: _experiment(name, told) for name, told in table.items()}


def _experiment(name: str, told: dict[str, Any]) -> Prepared:
    try:
        shared = {key: str(value) for key, value in told.get("set", {}).items()}
        runs = tuple(
            Run(run["name"], run.get("task", told.get("task", "")), {**shared, **_words(run.get("set", {}))})
            for run in told["runs"]
        )
        statements = tuple(Statement(**statement) for statement in told["holds"])
        prepared = Prepared(
            name=name,
            **{key: told[key] for key in ("title", "compares", "look_for", "claim", "source", "steps", "seconds")},
            runs=runs,
            statements=statements,
            shown=tuple(told.get("shown", ())),
            characters=told.get("characters", _CHARACTERS),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"the experiment {name} is not whole: {error}") from None
    _check(prepared)
    return prepared


def _words(told: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in told.items()}


def _check(prepared: Prepared) -> None:
    names = [run.name for run in prepared.runs]
    wrong = [measure for measure in prepared.measures if measure not in MEASURES]
    if wrong:
        raise ValueError(
            f"the experiment {prepared.name} measures “{wrong[0]}”, which is none of {', '.join(MEASURES)}"
        )
    if len(set(names)) < len(names) or len(names) < 2:
        raise ValueError(f"the experiment {prepared.name} needs two runs or more, each with a name of its own")
    for statement in prepared.statements:
        unknown = [run for run in (statement.run, statement.other) if run is not None and run not in names]
        if unknown:
            raise ValueError(f"the experiment {prepared.name} has no run “{unknown[0]}”")
        given = [getattr(statement, kind) is not None for kind in _KINDS]
        if sum(given) != 1:
            raise ValueError(f"the experiment {prepared.name} states neither or both of {', '.join(_KINDS)}")
