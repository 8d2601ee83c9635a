"""What the player knows of the session and what it has the session do: all of it, so that it works without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from attention_explorer.session.branches import Branches
from attention_explorer.session.writing import Origin
from attention_models.protocol.decoding import (
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeStepRequest,
    DecodeStepView,
)
from attention_models.protocol.loading import Loaded
from attention_models.protocol.run_inputs import RunInputs
from attention_models.protocol.values import SiteRef


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """What of the state the player goes by."""

    loaded: Loaded | None
    origin: Origin  # what the tree belongs to: a checkpoint, its text and target, and what is changed meanwhile
    branches: Branches
    site: SiteRef | None  # of the selected head, whose rows are kept on the way
    head: int
    up_to_date: bool  # whether what is on screen was computed from this text
    caught_up: bool  # whether it shows all that was written, or cannot
    answer: DecodeStepView | DecodeSamplesView | None  # the engine's last
    pending: DecodeStepRequest | DecodeSamplesRequest | None  # the step under way
    passage: int  # what is being written in one go; 0 when it was broken off
    problem: str  # why the last step could not be done, as the notice says it; "" where it could

    @property
    def family(self) -> str:
        """Of the open model; "" while none is open."""
        return self.loaded.info.family if self.loaded is not None else ""

    @property
    def inputs(self) -> RunInputs:
        """What is written after, and what is changed meanwhile."""
        return self.origin[1]


class Actions(Protocol):
    """What the player has done. What comes of it stands in the next `Situation`, at once but for what is computed."""

    def ask_step(self, request: DecodeStepRequest, parent: int, goes_on: bool) -> None:
        """Let the engine choose the token after node `parent`; `goes_on` where the last one is undone with it."""

    def ask_samples(self, request: DecodeSamplesRequest, parents: tuple[int, ...], shown: int, goes_on: bool) -> None:
        """Let the engine draw the token after each of `parents`, of which that at place `shown` is in view."""

    def go_to(self, node: int) -> None: ...

    def name(self, node: int, name: str) -> None: ...

    def delete(self, node: int) -> None:
        """Delete the branch of a node, up to where it parts from the others."""
