"""What compiled code writes to standard error by itself, as tokenizers does of a panic: it belongs into the log."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

log = logging.getLogger(__name__)

MOST_LOGGED = 20_000
"""Bytes of it that are kept; a backtrace has some thousand."""

_STANDARD_ERROR = 2
_lock = threading.RLock()
_depth = 0


@contextmanager
def standard_error_logged() -> Iterator[None]:
    """Send what is written to standard error meanwhile, past Python, to the log.

    It is the whole process's standard error: one thread at a time. Where there is none, nothing is changed.
    """
    global _depth
    with _lock, ExitStack() as stack:
        if _depth == 0:
            _redirect(stack)
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1


def _redirect(stack: ExitStack) -> None:
    """Point standard error at a file until `stack` ends, which then logs what is in it."""
    try:
        own = os.dup(_STANDARD_ERROR)
    except OSError:  # a program without a console
        return
    stack.callback(os.close, own)
    try:
        heard = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  (the stack closes it)
    except OSError:  # a full disk: it is heard where it always was
        return

    def give_back() -> None:
        os.dup2(own, _STANDARD_ERROR)
        heard.seek(0)
        said = heard.read(MOST_LOGGED).decode("utf-8", "replace").strip()
        if said:
            log.warning("compiled code says: %s", said)

    os.dup2(heard.fileno(), _STANDARD_ERROR)
    stack.callback(give_back)
