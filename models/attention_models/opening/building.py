"""Watches a model while it is built or filled: it may be called off, and is refused when it grows without end.

torch calls a function of ours for every parameter that a module is given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.module import (
    register_module_forward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

from attention_models.protocol.request import Cancelled, ShouldStop

_PARTS_A_TENSOR = 64  # modules and parameters that are made for one tensor: experts that are stacked in it, say
_LEAST_PARTS = 100_000


class TooManyParts(Exception):
    """More modules and parameters than the tensors in the files can be meant for. The message is a clause."""


@contextmanager
def bounded(tensors: int) -> Iterator[None]:
    """Refuse a model of far more parts than the `tensors` of its files account for.

    Raises:
        TooManyParts: while it is built.
    """
    made, most = 0, max(_LEAST_PARTS, _PARTS_A_TENSOR * tensors)

    def count() -> None:
        nonlocal made
        made += 1
        if made > most:
            raise TooManyParts(f"it asks for more than {most:,} parts, and the files hold {tensors:,} tensors")

    with _at_every_part(count):
        yield


@contextmanager
def called_off_by(should_stop: ShouldStop) -> Iterator[None]:
    """Let whatever builds, fills or runs a model in this thread be called off.

    Raises:
        Cancelled: `should_stop` said so.
    """

    def poll() -> None:
        if should_stop():
            raise Cancelled

    with _at_every_part(poll):
        yield


@contextmanager
def _at_every_part(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` when a module in this thread is given a part, and when one is run."""
    thread = threading.get_ident()

    def here(module: nn.Module, *_: object) -> None:
        if threading.get_ident() == thread:
            tell()

    hooks = (
        register_module_parameter_registration_hook(here),
        register_module_module_registration_hook(here),
        register_module_forward_pre_hook(here),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
