"""Texts made into batches that cost little padding and can be called off within a moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from attention_models.forward.batches import joined
from attention_models.forward.model import Encoded, Model
from attention_models.protocol.errors import InputError

_MOST_TEXTS = 64
_WORK = 6e10
"""Multiplications between two looks at the clock, about, of a model that uses each parameter once a token."""


class HasEncoded(Protocol):
    @property
    def encoded(self) -> Encoded: ...


ItemT = TypeVar("ItemT", bound=HasEncoded)


def tokens_at_once(model: Model) -> int:
    """How many tokens a batch may come to."""
    return int(min(4096, max(256, _WORK / max(1, model.info.parameters))))


def length_of(encoded: Encoded) -> int:
    return max(len(encoded.tokens), len(encoded.source))


def takes_batches(model: Model) -> bool:
    """Whether several inputs can be run at once, their padding hidden."""
    return not (model.info.family == "vision" or model.info.textbook) and model.accepts("attention_mask")


def batches(model: Model, items: Sequence[ItemT]) -> Iterator[tuple[list[ItemT], tuple[Encoded, ...]]]:
    """Items of about the same length together, short ones first, and what the model is given of them."""
    if not takes_batches(model):
        for item in items:
            yield [item], (item.encoded,)
        return
    most, together = tokens_at_once(model), list[ItemT]()
    for item in sorted(items, key=lambda item: length_of(item.encoded)):
        length = length_of(item.encoded)
        if together and (len(together) >= _MOST_TEXTS or (len(together) + 1) * length > most):
            yield from _joined(model, together)
            together = []
        together.append(item)
    if together:
        yield from _joined(model, together)


def _joined(model: Model, items: list[ItemT]) -> Iterator[tuple[list[ItemT], tuple[Encoded, ...]]]:
    if len(items) == 1:
        yield items, (items[0].encoded,)
        return
    try:
        together = joined(model, [item.encoded for item in items])
    except InputError:  # no token to fill up with, or more than is run at once
        for item in items:
            yield [item], (item.encoded,)
    else:
        yield items, together
