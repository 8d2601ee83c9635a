"""Checks of a tokenizer before it is given any text: it comes with a checkpoint, and is run by compiled code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attention_models.text.compiled_errors import standard_error_logged

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
