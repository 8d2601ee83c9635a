"""A pretend accelerator: torch believes in two devices, "pretend:0" and "pretend:1", that lie in the CPU's memory.

A program that was only ever run on a CPU mixes devices without noticing. Here as on CUDA a tensor of the CPU beside one
of the device raises, unless it is an index, or a number (no dimensions) of an elementwise operator; `.numpy()` there
raises; a generator must be the device's own, and there is none to be had. Kernels are the CPU's, so that results equal
those of the CPU bit for bit. Launches, copies to the device, and the times at which the CPU has to wait for it are
counted. Memory of tensors that are gone is kept for later ones, and the driver counts it as taken. As options it has no
float64 (as MPS), and a budget of bytes, beyond which it raises `torch.OutOfMemoryError`.

How: DLPack knows of tensors on an "extension device", which torch takes for its backend PrivateUse1. So a tensor of the
CPU whose label is exchanged becomes one of the device, without a copy and with a `TensorImpl` of its own. It is no
subclass of Tensor: modules, views and autograd treat it as a real backend's. Each operator that reaches the device has
its arguments relabelled for the CPU, is run there, and has its results relabelled for the device.

What it cannot show: speed; what a device's own kernels lack, round or lay out otherwise, and the memory that they take
for themselves; a cache of pieces too small for what is wanted; streams; code that goes by the name "cuda" or "mps".
Needs torch 2.10 or newer.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import _get_current_dispatch_mode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"
DEVICE = "pretend:0"
CARDS = 2
TOTAL = 64_000_000_000
"""Bytes of each card, where no budget is set."""

_CPU, _EXTENSION = 1, 12  # DLDeviceType of dlpack.h
_DEVICE_OFFSET = 8  # of {device_type, device_id} in a DLManagedTensor, after the pointer to the data

aten = torch.ops.aten

_NO_KERNEL = frozenset({"empty", "empty_strided", "empty_like", "set_", "resize_", "is_set_to", "is_pinned"})
_VIEWS = frozenset({"as_strided", "view", "_reshape_alias", "unfold"})
_INDEXES = frozenset({"index", "index_put", "index_put_", "_index_put_impl_"})
_TAKE_NUMBERS = _INDEXES | {"where", "masked_fill", "masked_fill_", "fill_"}  # beside the elementwise ones
# how large their results are, or what they say, has to be known before the CPU can go on
_WAITS = frozenset({"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "unique_consecutive"})


@dataclass(slots=True)
class Counts:
    """What was asked of the device since counting began."""

    kernels: Counter[str] = field(default_factory=Counter)  # launches by operator; views and allocations are none
    waits: Counter[str] = field(default_factory=Counter)  # the CPU waits for the device: values or shapes come back
    to_device: int = 0  # copies from the CPU, for which CUDA waits too

    @property
    def launches(self) -> int:
        return self.kernels.total()

    @property
    def to_host(self) -> int:
        return self.waits.total()


@dataclass(slots=True)
class _State:
    present: bool = False
    no_float64: bool = False
    budget: int | None = None
    held: int = 0
    reserved: int = 0  # with what is kept of tensors that are gone, until somebody empties the cache
    counts: Counts = field(default_factory=Counts)


_state = _State()
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


# --------------------------------------------------------------------------- for tests


@contextmanager
def pretended(*, no_float64: bool = False, budget: int | None = None) -> Iterator[None]:
    """The computer has the device meanwhile. Its memory starts at what is held there already.

    Args:
        no_float64: as MPS, whatever would be a float64 tensor there raises TypeError.
        budget: bytes that tensors of the device may take in all, beyond which `torch.OutOfMemoryError` is raised.
    """
    _state.present, _state.no_float64, _state.budget = True, no_float64, budget
    try:
        with mock.patch.object(nn.Module, "_apply", _apply), mock.patch.object(torch, "tensor", _tensor):
            yield
    finally:
        _state.present, _state.no_float64, _state.budget = False, False, None


@contextmanager
def counted() -> Iterator[Counts]:
    """What is asked of the device meanwhile."""
    earlier, _state.counts = _state.counts, Counts()
    try:
        yield _state.counts
    finally:
        _state.counts = earlier


def _apply(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """`Module.to` that leaves each parameter the object that it is, as between a CPU and CUDA.

    torch has a list of the backends for which `param.data =` may do that; elsewhere tied parameters would part.
    """
    earlier = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return _own_apply(module, *args, **kwargs)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(earlier)


_own_apply: Callable[..., nn.Module] = nn.Module._apply


def _tensor(data: Any, *args: Any, device: Any = None, **kwargs: Any) -> Tensor:
    """`torch.tensor`, in two steps under a dispatch mode: torch copies to the device past it, where it finds no Python.

    The copy of a real device is no Python.
    """
    if device is None or torch.device(device).type != NAME or _get_current_dispatch_mode() is None:
        return _own_tensor(data, *args, device=device, **kwargs)
    return _own_tensor(data, *args, **kwargs).to(device)


_own_tensor: Callable[..., Tensor] = torch.tensor
_device_constructors()  # torch keeps the list of what a `with torch.device` is for: of its own functions


def set_budget(budget: int | None) -> None:
    _state.budget = budget


def held() -> int:
    """Bytes that tensors of the device take now."""
    return _state.held


# --------------------------------------------------------------------------- the device as torch sees it


class _Module:
    """`torch.pretend`, as `torch.cuda`: what torch, transformers and `attention_models.files.devices` ask."""

    @staticmethod
    def is_available() -> bool:
        return _state.present

    @staticmethod
    def is_initialized() -> bool:
        return True

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        return CARDS if _state.present else 0

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        pass  # its random numbers are the CPU's

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    @staticmethod
    def mem_get_info(device: torch.device) -> tuple[int, int]:
        total = TOTAL if _state.budget is None else _state.budget
        return total - _state.reserved, total

    @staticmethod
    def memory_allocated(device: torch.device) -> int:
        return _state.held

    @staticmethod
    def memory_reserved(device: torch.device) -> int:
        return _state.reserved

    @staticmethod
    def empty_cache() -> None:
        _state.reserved = _state.held

    @staticmethod
    def get_device_name(device: torch.device) -> str:
        return f"Card {device.index}"


def _install() -> None:
    """Tell torch of the device. For the life of the process: a backend cannot be taken back."""
    _setup_privateuseone_for_python_backend(NAME, _Module)
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(_run, "PrivateUse1")
    kernels = torch.library.Library("aten", "IMPL")
    # the operators that have a kernel of the CPU; the others are made of these, there as here
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CPU"):
        namespace, _, rest = name.partition("::")
        if namespace == "aten" and rest not in _OWN:
            kernels.impl(rest, partial(_named, rest), "PrivateUse1")
    for name, kernel in _OWN.items():
        kernels.impl(name, kernel, "PrivateUse1")
    kernels.impl("scaled_dot_product_attention", _attention, "AutogradPrivateUse1")
    _kept.extend((fallback, kernels))


_kept: list[Any] = []


@cache
def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default")


def _named(name: str, *args: Any, **kwargs: Any) -> Any:
    return _run(_overload(name), *args, **kwargs)


def _relabelled(t: Tensor, kind: int, index: int) -> Tensor:
    """`t` as one of another device, of the same memory, which lives as long as either."""
    capsule = torch._C._to_dlpack(t)
    address = _get_pointer(capsule, b"dltensor") + _DEVICE_OFFSET
    ctypes.c_int32.from_address(address).value = kind
    ctypes.c_int32.from_address(address + 4).value = index
    there: Tensor = torch._C._from_dlpack(capsule)
    return there


def _is_there(x: Any) -> bool:
    return isinstance(x, Tensor) and x.device.type == NAME


# --------------------------------------------------------------------------- running an operator


def _run(op: Any, *args: Any, **kwargs: Any) -> Any:
    name = op._schema.name.removeprefix("aten::")
    if name == "_copy_from":
        return _copy(*args)
    if name in _VIEWS:  # the CPU's kernel touches no numbers and gives a view of the same storage, wherever that lies
        return op.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), *args, **kwargs)
    device = _device(op, name, args, kwargs)
    raw: dict[int, Tensor] = {}  # by the id of the tensor there
    given: dict[int, Tensor] = {}  # the tensor there, by the id of the raw one
    memory: set[int] = set()

    def here(t: Tensor) -> Tensor:
        if not _is_there(t):
            _state.counts.to_device += bool(t.dim())  # numbers travel as arguments
            return t
        if id(t) not in raw:
            # an empty result is there to be made larger, which memory of somebody else cannot be
            x = raw[id(t)] = _relabelled(t, _CPU, 0) if t.numel() else torch.empty(t.shape, dtype=t.dtype)
            given[id(x)] = t
            memory.add(x.untyped_storage()._cdata)
        return raw[id(t)]

    def there(x: Tensor) -> Tensor:
        if id(x) not in given:
            return _there(x, device.index or 0, is_view=x.untyped_storage()._cdata in memory)
        t = given[id(x)]
        if t.shape != x.shape:
            t.data = _there(x, device.index or 0)
        return t

    options = {key: _mapped(here, value) for key, value in kwargs.items()}
    if "device" in options:
        options["device"] = torch.device("cpu")
    out = op(*(_mapped(here, argument) for argument in args), **options)
    if name not in _NO_KERNEL and not op.is_view:
        _state.counts.kernels[name] += 1
    if _waits(name, args):
        _state.counts.waits[name] += 1
    return _mapped(there, out)


def _mapped(change: Callable[[Tensor], Tensor], x: Any) -> Any:
    """An argument or result of an operator with every tensor in it changed."""
    if isinstance(x, Tensor):
        return change(x)
    if isinstance(x, (list, tuple)):
        return type(x)([_mapped(change, part) for part in x])
    return x


def _there(t: Tensor, index: int, is_view: bool = False) -> Tensor:
    """A tensor of the CPU as one of the device, within what the device can hold."""
    if _state.no_float64 and t.dtype is torch.float64:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    if not is_view:
        storage = t.untyped_storage()
        size = storage.nbytes()
        if _state.budget is not None and _state.reserved + size > _state.budget:
            _Module.empty_cache()  # as torch's allocators do before they give up
        if _state.budget is not None and _state.held + size > _state.budget:
            raise torch.OutOfMemoryError(f"pretend out of memory. Tried to allocate {size} bytes.")
        _state.held += size
        _state.reserved = max(_state.reserved, _state.held)
        weakref.finalize(storage, _free, size).atexit = False
    return _relabelled(t, _EXTENSION, index)


def _free(size: int) -> None:
    _state.held -= size


def _copy(source: Tensor, into: Tensor, non_blocking: bool = False) -> Tensor:
    if _state.no_float64 and source.dtype != into.dtype and torch.float64 in (source.dtype, into.dtype):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    ends = [_relabelled(t, _CPU, 0) if _is_there(t) else t for t in (into, source)]
    ends[0].copy_(ends[1])
    if not _is_there(into):
        _state.counts.waits["copy"] += 1
    elif not _is_there(source):
        _state.counts.to_device += 1
    else:
        _state.counts.kernels["copy"] += 1
    return into


def _waits(name: str, args: tuple[Any, ...]) -> bool:
    """Whether the CPU has to wait for what the device has computed."""
    if name in _INDEXES:  # by a mask: how many places it holds
        return any(isinstance(i, Tensor) and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    return name in _WAITS or (name == "repeat_interleave" and isinstance(args[-1], Tensor))


def _device(op: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.device:
    """The device of all tensors that `op` takes.

    Raises:
        RuntimeError: they lie on several, as on CUDA: only indexes, and numbers in elementwise operators, may come
            from the CPU.
    """
    device: torch.device | None = kwargs.get("device")
    strangers: list[tuple[int | str, bool, Tensor]] = []  # of the CPU: where, whether in a list, and what
    arguments: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    for place, argument in arguments:
        several = isinstance(argument, (list, tuple))
        for t in argument if several else (argument,):
            if not isinstance(t, Tensor):
                continue
            if not _is_there(t):
                strangers.append((place, several, t))
            elif device is None:
                device = t.device
            elif t.device != device:
                raise _mixed(device, t.device)
    if device is None:
        raise NotImplementedError(f"{op} on no device")
    generator = kwargs.get("generator")
    if generator is not None and generator.device.type != NAME:
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but found '{generator.device.type}'")
    for place, several, t in strangers:
        is_index = name in _INDEXES and place == 1
        may = not t.dim() and not several and place not in _written(op)
        if not is_index and not (may and (torch.Tag.pointwise in op.tags or name in _TAKE_NUMBERS)):
            raise _mixed(device, t.device)
    return device


@cache
def _written(op: Any) -> frozenset[int | str]:
    """Places and names of the arguments that `op` writes to."""
    arguments = enumerate(op._schema.arguments)
    found = ((i, a.name) for i, a in arguments if a.alias_info is not None and a.alias_info.is_write)
    return frozenset(place for both in found for place in both)


def _mixed(one: torch.device, other: torch.device) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"
    )


# --------------------------------------------------------------------------- what a CPU does by other operators


def _attention(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """One launch of the CPU's fused kernel, as a device has one; gradients go the way that is made of others."""
    tensors = [query, key, value, *(t for t in (*args, *kwargs.values()) if isinstance(t, Tensor))]
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        out: Tensor = aten._scaled_dot_product_attention_math(query, key, value, *args, **kwargs)[0]
        return out
    fused: Tensor = _run(aten.scaled_dot_product_attention.default, query, key, value, *args, **kwargs)
    return fused


def _convolution(*args: Any) -> Any:
    return _run(aten.convolution.default, *args)


def _histogram(values: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Of whole numbers too, which transformers' experts ask for on every device but the CPU."""
    counts: Tensor = _run(aten.histc.default, values.float(), *args, **kwargs)
    return counts.to(values.dtype)


def _gru(input_gates: Tensor, hidden_gates: Tensor, hidden: Tensor, *biases: Tensor | None) -> tuple[Tensor, Tensor]:
    """As torch's GRUCell of the CPU, in its order."""
    ours, theirs = (*biases, None, None)[:2]
    x = input_gates if ours is None else input_gates + ours
    h = hidden_gates if theirs is None else hidden_gates + theirs
    (reset_x, update_x, new_x), (reset_h, update_h, new_h) = x.chunk(3, 1), h.chunk(3, 1)
    reset = (reset_h + reset_x).sigmoid()
    update = (update_h + update_x).sigmoid()
    new = (new_x + reset * new_h).tanh()
    return (hidden - new) * update + new, torch.empty_like(x)


def _lstm(
    input_gates: Tensor, hidden_gates: Tensor, memory: Tensor, *biases: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    ours, theirs = (*biases, None, None)[:2]
    x = input_gates if ours is None else input_gates + ours
    h = hidden_gates if theirs is None else hidden_gates + theirs
    enter, forget, new, leave = (h + x).chunk(4, 1)
    kept = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * kept.tanh(), kept, torch.empty_like(x)


_OWN: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": _attention,
    "convolution_overrideable": _convolution,
    "histc": _histogram,
    "_thnn_fused_gru_cell": _gru,
    "_thnn_fused_lstm_cell": _lstm,
}

# With the import, which pytest does before the first test: the first backward pass of a process counts the devices,
# and gradients of one that joins later are an internal error of torch.
_install()
