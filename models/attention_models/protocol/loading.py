"""Opening a checkpoint, and the devices on which it can be: what is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.values import DEFAULT_PLACEMENT, CheckpointInfo, DeviceInfo, Placement


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
