"""Where a model can run, and in which number format: asked of torch, never assumed.

`torch.accelerator` names the one kind of accelerator that this build of torch drives (CUDA, MPS, XPU ...); the CPU is
always there. A `Placement` is plain text, so that it can be remembered and sent to an engine elsewhere.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor, nn

from attention_models.files import collecting
from attention_models.files.extras import SPREAD, install_command, is_installed
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.values import AUTO, BEST, UNIT_ROUNDOFFS, DeviceInfo, Placement

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in UNIT_ROUNDOFFS}

_GROUPS = Path("/sys/fs/cgroup")
_CONTAINER = (
    (_GROUPS / "memory.max", _GROUPS / "memory.current"),
    (_GROUPS / "memory/memory.limit_in_bytes", _GROUPS / "memory/memory.usage_in_bytes"),
)

# What is said where torch raises no error of its own for it: by the CPU, where a file is mapped or a thread begins, by
# MPS (also of one tensor that is too large), by drivers of CUDA outside of torch's allocator, and by those of XPU.
_OUT_OF_MEMORY = (
    "DefaultCPUAllocator",
    "Cannot allocate memory",
    "bad_alloc",
    "can't start new thread",
    "MPS backend out of memory",
    "Invalid buffer size",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "OUT_OF_DEVICE_MEMORY",
)

SPARED = 4
"""With more cores than this, one is left to the window."""


def devices() -> tuple[DeviceInfo, ...]:
    """Every device that a model can be put on, the CPU first."""
    found = [DeviceInfo("cpu", "CPU", *free_memory(torch.device("cpu")))]
    found += [_accelerator(index) for index in range(_accelerators())]
    if len(found) > 1 and _can_spread():
        # what the weights and one text need on each of them is accelerate's to work out
        known = [device for device in found if device.free is not None]
        total = sum(device.total or 0 for device in known)
        found.append(DeviceInfo(AUTO, "Spread over all", sum(d.free or 0 for d in known), total))
    return tuple(found)


def _can_spread() -> bool:
    return is_installed("accelerate")


def _accelerators() -> int:
    return torch.accelerator.device_count() if torch.accelerator.is_available() else 0


def _accelerator(index: int) -> DeviceInfo:
    device = _accelerator_device(index)
    return DeviceInfo(str(device), label_of(device), *free_memory(device))


def _accelerator_device(index: int) -> torch.device:
    current = torch.accelerator.current_accelerator()
    assert current is not None
    return torch.device(current.type, index)


def free_memory(device: torch.device) -> tuple[int | None, int | None]:
    """Bytes free and in all on `device`; None where its driver does not say."""
    if device.type == "cpu":
        return _computers_memory()
    if device.type == "mps":  # shares the computer's memory, up to what the driver recommends
        total = torch.mps.recommended_max_memory()
        return total - torch.mps.current_allocated_memory(), total
    mem_get_info = _driver(device, "mem_get_info")
    if mem_get_info is None:
        return None, None
    try:
        free, total = mem_get_info(device)
    except RuntimeError:  # Intel's integrated graphics have the function and no answer
        return None, None
    return free + _cached(device), total


def _cached(device: torch.device) -> int:
    """Bytes that torch's allocator keeps for later tensors; the driver counts them as used."""
    reserved, allocated = (_driver(device, name) for name in ("memory_reserved", "memory_allocated"))
    return 0 if reserved is None or allocated is None else int(reserved(device) - allocated(device))


def _computers_memory() -> tuple[int, int]:
    """Bytes free and in all for this process: a container may have less than its computer."""
    memory = psutil.virtual_memory()
    free, total = int(memory.available), int(memory.total)
    for limit, used in _CONTAINER:  # of control groups, version 2 and 1
        try:
            most, taken = int(limit.read_text()), int(used.read_text())
        except (OSError, ValueError):  # no container, or one without a limit ("max")
            continue
        if most < total:
            free, total = min(free, max(0, most - taken)), most
    return free, total


def _driver(device: torch.device, name: str) -> Any:
    """`torch.cuda.mem_get_info` and its like; None where the device's driver has no such function."""
    return getattr(getattr(torch, device.type, None), name, None)


def label_of(device: torch.device) -> str:
    """What to call a device: "CPU", "CUDA 0 (NVIDIA H100)"."""
    if device.type == "cpu":
        return "CPU"
    get_name = _driver(device, "get_device_name")
    name = str(device).upper().replace(":", " ")
    return f"{name} ({get_name(device)})" if get_name is not None else name


def parse(placement: Placement) -> tuple[torch.device | None, torch.dtype]:
    """The device (None: spread over all) and dtype that `placement` names.

    Raises:
        CheckpointError: this computer has no such device, or there is no such number format.
    """
    if placement.dtype not in DTYPES:
        raise CheckpointError(f"“{placement.dtype}” is no number format to run in. Choose {_listed(list(DTYPES))}.")
    if placement.device == BEST:
        return (_accelerator_device(0) if _accelerators() else torch.device("cpu")), DTYPES[placement.dtype]
    if placement.device == AUTO:
        if not _can_spread():
            raise CheckpointError(
                "Spreading a model over several devices needs the package accelerate. "
                f"Install it ({install_command(SPREAD)}), or choose one device."
            )
        return None, DTYPES[placement.dtype]
    name = placement.device
    try:
        device = torch.device(name)
    except (RuntimeError, ValueError):
        device = None
    if device is not None and device.type == "cpu" and not device.index:  # torch takes cpu:7 too, which is none
        return torch.device("cpu"), DTYPES[placement.dtype]
    known = [str(_accelerator_device(index)) for index in range(_accelerators())]
    if device is None or f"{device.type}:{device.index or 0}" not in known:
        there = f"It has {_listed(['cpu', *known])}." if known else "It has the CPU only."
        raise CheckpointError(f"This computer has no device “{name}” that torch can use. {there}")
    return torch.device(device.type, device.index or 0), DTYPES[placement.dtype]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def weight_of(module: nn.Module, name: str = "weight") -> Tensor:
    """A parameter or buffer of `module` with its values, also where accelerate holds them until the module runs."""
    held = getattr(module, name)
    assert isinstance(held, Tensor)
    aside = getattr(getattr(module, "_hf_hook", None), "weights_map", None)
    if not held.is_meta or aside is None:
        return held
    kept: Tensor = aside[name]
    return kept


def apply(module: nn.Module, x: Tensor) -> Tensor:
    """`module(x)` on the CPU, wherever the module lies."""
    device = next((p.device for p in module.parameters() if not p.is_meta), x.device)
    out: Tensor = module(x.to(device)).cpu()
    return out


def is_spread(module: nn.Module) -> bool:
    """Whether its weights lie on several devices."""
    return len({p.device for p in module.parameters()}) > 1


def placed(module: nn.Module) -> str:
    """Where the weights of `module` lie, for people; "CUDA 0 (NVIDIA H100), CPU" where it was spread."""
    # what accelerate has put aside until its module runs lies on "meta" meanwhile
    where = {torch.device("cpu") if p.is_meta else p.device for p in module.parameters()}
    return ", ".join(label_of(device) for device in sorted(where, key=str, reverse=True))


def free() -> None:
    """Return memory that is no longer referenced, on every device."""
    collecting.collect()
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)  # glibc would keep some hundred megabytes for the next time
    if not _accelerators():
        return
    # the device's own: torch.accelerator's raises where an allocator is not of its kind (MPS before torch 2.13)
    empty_cache = _driver(_accelerator_device(0), "empty_cache")
    if empty_cache is not None:
        empty_cache()


def set_threads() -> None:
    """Let torch use the cores that this process may use. Called once, in the thread that runs the models.

    torch counts the computer's cores, also in a container that may use two of sixty-four; its threads would then wait
    for one another. `OMP_NUM_THREADS` has the last word.
    """
    if os.environ.get("OMP_NUM_THREADS"):
        return
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min(allowed, torch.get_num_threads())
    torch.set_num_threads(cores - 1 if cores > SPARED else cores)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether `error`, or what it was raised from, says that a device has not enough memory left."""
    while error is not None:
        if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY):
            return True
        error = error.__cause__
    return False
