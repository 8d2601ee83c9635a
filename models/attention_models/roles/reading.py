"""The texts that roles are measured on, as the model takes them."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from attention_models.files.catalogue import DATE_MODELS
from attention_models.forward.batches import joined
from attention_models.forward.model import Encoded, Model
from attention_models.length.batching import source_ids, translate
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Cancelled, Report, ShouldStop
from attention_models.roles.probe import Probe, ProbeText, picture_probe
from attention_models.textbook.tasks import date_pairs

# Texts made into batches that cost little padding and can be called off within a moment.


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


_AT_ONCE = 16
_MOST_TOKENS = 64


def written_of(model: Model, texts: Sequence[str], should_stop: ShouldStop) -> Iterator[list[str | None]]:
    """Of a few of `texts` after the others what the model writes; None of one of which it writes nothing.

    Raises:
        Cancelled: `should_stop()` was true between two steps.
    """
    limit = model.info.context or 1 << 30
    for start in range(0, len(texts), _AT_ONCE):
        ids = [row[:limit] for row in source_ids(model, texts[start : start + _AT_ONCE])]
        yield [text or None for text in translate(model, ids, min(_MOST_TOKENS, limit - 1), should_stop)]


# Random tokens that come twice, in the same order: text in which nothing but the first time tells of the second.
# So Olsson et al. 2022 tell induction heads: what is attended to there is no habit of the language.


SEQUENCES, LENGTH = 24, 24
_LEAST = 4


def repeated_ids(model: Model, sequences: int = SEQUENCES, length: int = LENGTH) -> list[list[int]]:
    """Ids of `sequences` texts, each `length` random tokens and the same again, framed as the model's texts are.

    The same for the same vocabulary. Shorter ones where the context takes no more; none where it takes hardly any.
    """
    frame = _frame(model)
    limit = (model.info.context or 1 << 30) - len(frame[0]) - len(frame[1])
    length = min(length, limit // 2)
    vocabulary = model.info.vocabulary
    ordinary = [id_ for id_ in range(vocabulary) if not model.stands_for_no_text(id_)]
    if length < _LEAST or len(ordinary) < 2 * length:
        return []
    draw = random.Random(0)
    drawn = [draw.sample(ordinary, length) for _ in range(sequences)]
    return [[*frame[0], *ids, *ids, *frame[1]] for ids in drawn]


def _frame(model: Model) -> tuple[list[int], list[int]]:
    """The special tokens that stand before a text and after it."""
    try:
        tokens = model.tokenize("a")
    except InputError:
        return [], []
    places = [i for i, token in enumerate(tokens) if not token.special]
    if not places:
        return [], []
    return [token.id for token in tokens[: places[0]]], [token.id for token in tokens[places[-1] + 1 :]]


_DATES = 40
_READ_AT_ONCE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A text as the model takes it."""

    encoded: Encoded
    text: ProbeText

    @property
    def length(self) -> int:
        """Tokens, of both sides."""
        return len(self.encoded.tokens) + len(self.encoded.source)


class Reader:
    """Makes a probe's texts into what the model takes; of those that it does not take sentences are kept."""

    def __init__(self, model: Model, probe: Probe, should_stop: ShouldStop, report: Report) -> None:
        self._model, self._probe = model, probe
        self.should_stop, self.report = should_stop, report
        self.left_out: list[str] = []

    def items(self) -> Generator[float, None, list[Item]]:
        """The texts that fit, or the sample pictures; yields between a few of them.

        Raises:
            InputError: none fits.
            Cancelled: it was to stop.
        """
        items = self._pictures() if self._model.info.family == "vision" else (yield from self._texts())
        if not items:
            why = f" {self.left_out[0]}" if self.left_out else ""
            raise InputError(f"None of the texts of {self._probe.name} fits {self._model.info.name}.{why}")
        return items

    def all_items(self) -> list[Item]:
        """As `items`, at once."""
        reading = self.items()
        while True:
            try:
                next(reading)
            except StopIteration as end:
                found: list[Item] = end.value
                return found

    def repeats(self) -> list[Item]:
        """Random tokens that come twice, where roles are measured on the texts that come along."""
        model = self._model
        if not self._probe.ours or not takes_batches(model):
            return []
        nothing: list[int] | None = [] if model.seq2seq else None
        return [Item(model.encode(ids, nothing), ProbeText("")) for ids in repeated_ids(model)]

    def _pictures(self) -> list[Item]:
        model = self._model
        if not self._probe.ours:
            raise InputError(f"{model.info.name} looks at pictures, and {self._probe.name} holds texts.")
        items = []
        for reference in picture_probe(model.info.channels):
            self._check()
            items.append(Item(model.encode(reference), ProbeText(reference)))
        return items

    def _texts(self) -> Generator[float, None, list[Item]]:
        self.report("Reading the texts", None)
        texts = self._probe.texts
        if self._probe.ours and self._model.info.reference in DATE_MODELS:
            texts = tuple(ProbeText(text) for text, _ in date_pairs(_DATES, seed=0))
        written = (yield from self._written(texts)) if self._model.seq2seq else [None] * len(texts)
        items = []
        for place, (text, target) in enumerate(zip(texts, written, strict=True)):
            self._check()
            if place % _READ_AT_ONCE == _READ_AT_ONCE - 1:
                yield 0.0
            try:
                items.append(Item(self._model.encode(text.prompt, target), text))
            except InputError as error:
                where = f"Line {text.line:,} of {self._probe.name}" if text.line and not self._probe.ours else "A text"
                self.left_out.append(f"{where} is left out: {error}")
        return items

    def _written(self, texts: Sequence[ProbeText]) -> Generator[float, None, list[str | None]]:
        """What an encoder-decoder model writes itself of each text."""
        plain = [text.prompt if isinstance(text.prompt, str) else text.prompt.first for text in texts]
        found: list[str | None] = []
        self.report("Writing what the decoder says", 0.0)
        for some in written_of(self._model, plain, lambda: self.should_stop()):
            found += some
            self.report("Writing what the decoder says", len(found) / len(plain))
            yield 0.0
        return found

    def _check(self) -> None:
        if self.should_stop():
            raise Cancelled
