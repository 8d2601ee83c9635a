"""Checks of a tokenizer before it is given any text: it comes with a checkpoint, and is run by compiled code."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

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


MOST_GROWTH = 1_000
"""Characters that a tokenizer may make of one. NFKC makes 18 of "ﷺ", which is the most in any that is known."""


def misfit_of(tokenizer: Any, vocabulary: int) -> str:
    """Why a fast tokenizer does not fit a model of `vocabulary` tokens (0 where unknown), or "". A clause."""
    backend = tokenizer.backend_tokenizer
    if vocabulary and len(tokenizer) > vocabulary:
        known = len(tokenizer)
        return f"its tokenizer knows {known:,} tokens, the model only {vocabulary:,}. They do not belong together."
    last = max(backend.get_vocab(with_added_tokens=False).values(), default=0)
    if vocabulary and last >= vocabulary:
        return f"its tokenizer has a token {last:,}, the model only {vocabulary:,} tokens. They do not belong together."
    known, special = len(tokenizer), len(backend.get_added_tokens_decoder())
    if known < vocabulary // _EMPTY or known <= min(special, vocabulary - 1):
        return (
            f"its tokenizer opened with {known:,} tokens, and the model has {vocabulary:,}: its vocabulary was not "
            "found, or is not whole. Add tokenizer.json, or the vocabulary file of its own kind (for ALBERT, T5 and "
            "XLNet spiece.model; vocab.txt is not read)."
        )
    growth = max(_growth(part) for part in (backend.normalizer, backend.decoder))
    if growth > MOST_GROWTH:
        return f"its tokenizer would make {growth:,.0f} characters of one, which no sound one does. Fetch it again."
    return ""


_EMPTY = 10
"""A tokenizer that knows less than this part of the model's tokens is one without its vocabulary."""


@contextmanager
def panics_raised() -> Iterator[None]:
    """Turn a panic of the tokenizers library into an `Exception`: what it raises is only a `BaseException`.

    Its backtrace, which the library prints, goes to the log.

    Raises:
        RuntimeError: in place of the panic.
    """
    try:
        with standard_error_logged():
            yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(str(error)) from error


def _growth(part: Any) -> float:
    """The most characters that a normalizer or a decoder makes of one by what it replaces."""
    return _growth_of(json.loads(part.__getstate__())) if part is not None else 1


def _growth_of(settings: dict[str, Any]) -> float:
    growth = 1.0
    for step in settings.get("normalizers") or settings.get("decoders") or ():
        growth *= _growth_of(step)
    if settings.get("type") == "Replace":
        replaced = settings["pattern"].get("String")  # a regular expression may match nothing
        content = len(settings["content"])
        growth *= max(1.0, content / len(replaced) if replaced else 1 + content)
    return growth
