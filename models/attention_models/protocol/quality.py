"""What is asked and told of quality against sentence length: plain values, torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.request import Lane, Request, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRequest(Request):
    """Measure the next batch of sentences with the next of several models. Answered by `QualityView`.

    A measurement is many of these, each with the `done` of the answer before it, so that the open model and everything
    else is served in between. The engine opens the models itself and keeps them until the last batch, or until `stop`.
    """

    lane: ClassVar[Lane] = Lane("quality")
    activity: ClassVar[str] = "measuring quality against length"
    answered_by: ClassVar[str] = "attention_models.length.measurement:answer"
    outlives_model: ClassVar[bool] = True  # it has models of its own
    references: tuple[str, ...]  # checkpoints, by shipped name or folder
    pairs: str  # a file of sentence pairs; "" for dates, which are made and not read
    held_out: bool = False  # only the English sentences that training held out of this file
    done: int = 0  # sentences translated so far, each model's counted; 0 begins anew
    stop: bool = False  # forget the measurement; what it has found so far is the answer


@dataclass(frozen=True, slots=True)
class QualityScore:
    """How well one model did on some sentences."""

    bleu: float | None  # corpus BLEU, 0 to 100, letter case aside; None for dates
    exact: int  # sentences that equal one of their references, letter case aside
    log_probability: float  # mean over the references' tokens, the true ones before each given; nats


@dataclass(frozen=True, slots=True)
class QualityExample:
    """A sentence, and what each model made of it."""

    source: str
    references: tuple[str, ...]
    written: tuple[str, ...]  # a model each
    exact: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class QualityBin:
    """The sentences of `first` to `last` words (of dates: characters), measured with every model."""

    first: int
    last: int
    scores: tuple[QualityScore, ...]  # a model each
    examples: tuple[QualityExample, ...]  # every sentence of the bin, by length

    @property
    def sentences(self) -> int:
        return len(self.examples)

    @property
    def middle(self) -> float:
        """Where it stands on an axis of lengths."""
        return (self.first + self.last) / 2

    @property
    def name(self) -> str:
        """ "4" or "4 to 5"."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownQuality(Request):
    """What a measurement says of sentences of one length, one of which is read: to be written as PyTorch."""

    printed_by: ClassVar[str] = "attention_models.scripts.quality:write"
    references: tuple[str, ...]  # checkpoints, one for each score
    bin: QualityBin
    example: int  # which of its sentences is read, from 0
    has_bleu: bool


@dataclass(frozen=True, slots=True)
class QualityPart:
    """The scores of many lengths together."""

    name: str  # "all", "up to 10 words", "longer"
    sentences: int
    scores: tuple[QualityScore, ...]  # a model each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QualityView(Result):
    """What is measured so far: a bin appears when every model has been through it, the short ones first."""

    request: QualityRequest
    models: tuple[str, ...]  # names
    trained_to: tuple[int | None, ...]  # a model each: words of the longest sentences it was trained on, where known
    unit: str  # "words" or "characters"
    bins: tuple[QualityBin, ...]
    parts: tuple[QualityPart, ...]  # all; up to the lengths of the training, and longer; empty before the end
    planned: tuple[tuple[int, int, int], ...]  # (first, last, sentences) of every bin, measured or to be
    sentences: int  # to be measured
    left_out: int  # longer than one of the models takes, or empty
    sampled: bool  # some lengths had more sentences than are measured
    done: int  # sentences translated, each model's counted
    total: int  # that `done` comes to
    signature: str  # how BLEU was computed, as sacrebleu says it; "" for dates
    seconds: float  # worked so far

    @property
    def ended(self) -> bool:
        return self.done == self.total
