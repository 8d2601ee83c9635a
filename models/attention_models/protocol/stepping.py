"""Going to another step of the open model's training: what is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.run_inputs import RunInputs
from attention_models.protocol.running import ForwardRequest, Ran
from attention_models.protocol.values import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest(Request):
    """Open the same training at another step, and run it on `inputs`. Answered by `Stepped`.

    What was asked first is shown first: of a drag through a training one sees the steps.
    """

    lane: ClassVar[Lane] = Lane("step", finishes=True)
    activity: ClassVar[str] = "going to another step of the training"
    answered_by: ClassVar[str] = "attention_models.engine.stepping:answer"
    reference: str
    placement: Placement
    inputs: RunInputs

    @property
    def load(self) -> LoadRequest:
        """What opens the same without a run."""
        return LoadRequest(reference=self.reference, placement=self.placement)

    @property
    def forward(self) -> ForwardRequest:
        """What runs it; later requests name the run by this request's ticket."""
        return ForwardRequest(inputs=self.inputs, ticket=self.ticket)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stepped(Result):
    """Both at once, so that no figure of one step stands beside the name of another."""

    request: StepRequest
    loaded: Loaded
    ran: Ran
