"""What a checkpoint is, asked before it is opened, and the answer: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.hub import HubListing
from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.values import DEFAULT_PLACEMENT, Capability, CheckpointInfo, Placement


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
