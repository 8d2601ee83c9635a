"""What functions that answer requests work with: the open model, its current run, and what they kept themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from attention_models.forward.cache import Cache
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError, StaleRunError
from attention_models.protocol.request import Report, ShouldStop
from attention_models.protocol.running import RunInputs


@dataclass(slots=True, eq=False)
class Workspace:
    """What the engine has from one request to the next.

    Attributes:
        adopted: models that were handed over, by the reference that opens them.
        kept: whatever is open.
        kept_of_model: until another model is opened.
        beside: the model and the run that are compared with these; None where nothing is. Goes with the model too.
    """

    adopted: Mapping[str, Model] = field(default_factory=dict)
    model: Model | None = None
    run: CurrentRun | None = None
    kept: Cache = field(default_factory=Cache)
    kept_of_model: Cache = field(default_factory=Cache)
    beside: Workspace | None = None

    def open(self, model: Model) -> None:
        """Put `model` in the place of the open one; the run and what was kept of it go too."""
        self.model, self.run, self.kept_of_model, self.beside = model, None, Cache(), None

    def part(self) -> None:
        """Let go of what is beside these, and of what was worked out of the run: some of it is of both."""
        self.beside = None
        if self.run is not None:
            self.run.kept = Cache()


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """For one request.

    Attributes:
        should_stop: to be polled between blocks of work; once true, raise `Cancelled`.
        report: to be told what is being done, and the share that is done (None where that is unknown).
    """

    workspace: Workspace
    should_stop: ShouldStop
    report: Report

    @property
    def model(self) -> Model:
        """The open model.

        Raises:
            InputError: none is open yet.
        """
        if self.workspace.model is None:
            raise InputError("No checkpoint is open yet. Open one first.")
        return self.workspace.model

    def run(self, ticket: int) -> CurrentRun:
        """The run that a request names.

        Raises:
            StaleRunError: another one took its place; the window asks again, about that one.
        """
        run = self.workspace.run
        if run is None or run.ticket != ticket:
            raise StaleRunError
        return run

    def run_of(self, inputs: RunInputs) -> CurrentRun:
        """The run that is held, where it is one of `inputs`.

        Raises:
            StaleRunError: another one took its place.
        """
        run = self.workspace.run
        if run is None or run.inputs != inputs:
            raise StaleRunError
        return run

    @property
    def kept(self) -> Cache:
        return self.workspace.kept

    @property
    def kept_of_model(self) -> Cache:
        return self.workspace.kept_of_model
