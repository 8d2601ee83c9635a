"""Going to another step of the open model's training: what is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.hub import HubListing
from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import DEFAULT_PLACEMENT, Capability, CheckpointInfo, DeviceInfo, Placement

# What a checkpoint is, asked before it is opened, and the answer: plain values.


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeRequest(Request):
    """Say what `reference` is without reading its weights. Answered by `Described`, also where it cannot be opened.

    A `listing` stands for a checkpoint on a hub that was looked up and perhaps not fetched.
    """

    lane: ClassVar[Lane] = Lane("describe")
    activity: ClassVar[str] = "reading what the checkpoint is"
    answered_by: ClassVar[str] = "attention_models.opening.describe:answer"
    no_memory: ClassVar[str] = (
        "There is not enough memory to say what this is. Close other programs, and choose it again."
    )
    reference: str
    listing: HubListing | None = None
    placement: Placement = DEFAULT_PLACEMENT  # where it would be opened


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Described(Result):
    request: DescribeRequest
    refusal: str = ""  # why it cannot be opened; "" where nothing speaks against it
    info: CheckpointInfo | None = None  # as far as it was understood
    capabilities: tuple[Capability, ...] = ()
    weights: tuple[tuple[str, int], ...] = ()  # bytes of memory by dtype
    text_tokens: int = 0  # the longest text, or 512 where the model states no bound
    text_bytes: int = 0  # of q, k, v and the residual stream of such a text, in float32; 0 where no text is read
    where: str = ""  # the device on which it would be opened
    free: int | None = None  # bytes of memory there; None where its driver does not say
    cause: str = ""  # for the log


# Opening a checkpoint, and the devices on which it can be: what is asked, and what is answered.


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest(Request):
    """Open a checkpoint, a shipped name or a folder, on a device. Answered by `Loaded`."""

    lane: ClassVar[Lane] = Lane("load", order=0)
    activity: ClassVar[str] = "opening the checkpoint"
    answered_by: ClassVar[str] = "attention_models.opening.load:answer"
    reference: str
    placement: Placement = DEFAULT_PLACEMENT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded(Result):
    request: LoadRequest
    info: CheckpointInfo
    device: str  # "CPU", "CUDA 0 (NVIDIA H100)"; several where it was spread
    dtype: str  # "float32"
    eval_mode: bool
    seconds: float
    placement: Placement  # with the device that it came to


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesRequest(Request):
    """Where models can run, and how much memory is free there now. Answered by `DevicesView`."""

    lane: ClassVar[Lane] = Lane("view:devices")
    activity: ClassVar[str] = "asking which devices there are"
    answered_by: ClassVar[str] = "attention_models.opening.load:answer_devices"
    outlives_model: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DevicesView(Result):
    request: DevicesRequest
    devices: tuple[DeviceInfo, ...]  # the CPU first


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
