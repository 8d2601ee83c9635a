"""The texts that roles are measured on, as the model takes them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from attention_models.files.catalogue import DATE_MODELS
from attention_models.forward.model import Encoded, Model
from attention_models.protocol.errors import InputError
from attention_models.protocol.work import Cancelled, Report, ShouldStop
from attention_models.roles.batching import takes_batches
from attention_models.roles.probe import Probe, ProbeText, picture_probe
from attention_models.roles.repeats import repeated_ids
from attention_models.roles.written_targets import written_of
from attention_models.textbook.tasks import date_pairs

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
