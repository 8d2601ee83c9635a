"""When Python looks for cycles of garbage, and in which thread. No torch, no Qt.

By itself it does so in whatever thread happens to make an object, and stops all others meanwhile. Where that matters,
somebody takes it over.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Collector = Callable[[], None]
"""Looks for all garbage, in the thread that may, and returns when that is done."""

_lock = threading.RLock()  # what becomes garbage while it is held may hand back
_deferring = 0  # how many blocks of `deferred` are entered
_collectors: list[Collector] = []  # who has taken it over; the first of them is asked
_is_back = False  # whether those have given it back for a while
_was_on = True  # whether Python did it by itself before any of these


@contextmanager
def deferred() -> Iterator[None]:
    """Do not look for garbage, in any thread, until the last block of these has ended.

    For work that makes some hundred thousand objects which stay: all of them would be traversed again and again.
    """
    global _deferring
    with _changing():
        _deferring += 1
    try:
        yield
    finally:
        with _changing():
            _deferring -= 1


def is_deferred() -> bool:
    return _deferring > 0


def take_over(collector: Collector) -> None:
    """Let nobody but `collector` look for garbage, until it is handed back."""
    with _changing():
        _collectors.append(collector)


def hand_back(collector: Collector) -> None:
    """The opposite of `take_over`; nothing where it was not taken over."""
    with _changing():
        if collector in _collectors:
            _collectors.remove(collector)


def give_back_for_a_while() -> None:
    """Let Python do it by itself although somebody has taken it over, until `take_again`."""
    global _is_back
    with _changing():
        _is_back = True


def take_again() -> None:
    global _is_back
    with _changing():
        _is_back = False


def collect() -> None:
    """Look for all garbage now."""
    with _lock:
        collector: Collector = _collectors[0] if _collectors else _collect
    collector()


def _collect() -> None:
    gc.collect()


@contextmanager
def _changing() -> Iterator[None]:
    """Around a change to who looks for garbage: lets Python do it where nobody speaks against it any more."""
    global _was_on
    with _lock:
        if not (_deferring or _collectors):
            _was_on = gc.isenabled()
        yield
        if _deferring or (_collectors and not _is_back):
            gc.disable()
        elif _was_on:
            gc.enable()
