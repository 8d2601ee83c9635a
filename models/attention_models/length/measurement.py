"""Quality against sentence length: where a model with one vector for the whole sentence falls behind.

Cho et al. 2014 (figure 4) and Bahdanau et al. 2015 (figure 2) plot BLEU over the length of the source. Here several
models translate the same sentences greedily, and each bin of lengths gets corpus BLEU (sacrebleu), the share of
sentences that equal a reference, and the mean log-probability of the references' tokens.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, cast

from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.length.batching import log_probabilities, source_ids, target_ids, translate
from attention_models.length.held_out import split
from attention_models.length.pairs import Pair, read_pairs
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.errors import InputError, StaleRunError
from attention_models.protocol.quality import (
    QualityBin,
    QualityExample,
    QualityPart,
    QualityRequest,
    QualityScore,
    QualityView,
)
from attention_models.protocol.request import Cancelled
from attention_models.textbook.tasks import date_pairs

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

WIDTH = 2
"""Lengths in one bin: 1 to 2 words, 3 to 4, and so on, so that ten, the longest of the training, ends one."""
BATCH = 8
"""Sentences: a text that is typed meanwhile waits for one batch, and larger ones are hardly faster on a CPU."""
MOST_WRITTEN = 96
"""Tokens: as many as the window lets an encoder-decoder model write."""
MOST_IN_BIN = 1_000
DATES = 2_000
"""The first of `date_pairs` with seed 0: those that the date models were not trained on."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A source and its translations."""

    source: str
    references: tuple[str, ...]
    length: int  # words; of dates: characters


@dataclass(frozen=True, slots=True)
class _Task:
    """The next thing to do: one model on part of one bin."""

    bin: int
    model: int
    first: int
    last: int  # sentences of the bin, the last one not included


@dataclass(slots=True)
class _Done:
    """What one model did with the sentences of one bin so far."""

    written: list[str]
    log_probability: float = 0.0  # sum over tokens
    tokens: int = 0


def answer(request: QualityRequest, context: Context) -> QualityView:
    """The measurement after one more batch.

    Raises:
        StaleRunError: more is asked of a measurement that is no longer there.
    """
    kept = context.kept
    measurement = kept.get(Measurement)
    if request.stop:
        kept.drop(Measurement)
        if measurement is None:
            raise StaleRunError
        return measurement.view(request)
    if measurement is None or not measurement.belongs_to(request):
        if request.done:
            raise StaleRunError
        kept.drop(Measurement)
        measurement = None  # its models need not be held beside the new ones
        measurement = kept.put(Measurement(request, context.should_stop, context.report))
    if request.done >= measurement.done:  # else the last answer did not reach the window
        measurement.advance(context.should_stop)
    return measurement.view(request)


class Measurement:
    """Several models on the same sentences, a batch at a time: `advance` until it is done, `view` whenever wanted."""

    def __init__(
        self,
        request: QualityRequest,
        should_stop: Callable[[], bool],
        report: Callable[[str, float | None], None],
    ) -> None:
        """Read the sentences and open the models.

        Raises:
            InputError, CheckpointError: no sentences, or a model that does not translate or cannot be opened.
            Cancelled: `should_stop()` was true in between.
        """
        started = time.perf_counter()
        self.references, self.pairs, self.held_out = request.references, request.pairs, request.held_out
        report("Reading the sentences", None)
        found = _sentences(request)
        self._models: list[Model] = []
        for reference in request.references:
            if should_stop():
                raise Cancelled
            report(f"Opening {reference}", None)
            self._models.append(_opened(reference))
        kept = _fitting(self._models, found, should_stop)
        if not kept:
            raise InputError("None of these sentences fits the models: all are longer than they take, or empty.")
        self._names = tuple(model.info.name for model in self._models)
        self._trained_to = tuple(
            model.module.config.most_words if isinstance(model, RecurrentModel) and request.pairs else None
            for model in self._models
        )
        self._bins = _binned(kept)
        self.left_out, self.sentences = len(found) - len(kept), sum(len(bin_) for bin_ in self._bins)
        self.sampled = self.sentences < len(kept)
        self._tasks = [
            _Task(number, model, first, min(first + BATCH, len(bin_)))
            for number, bin_ in enumerate(self._bins)
            for model in range(len(self._models))
            for first in range(0, len(bin_), BATCH)
        ]
        self._next = 0
        self._work: dict[tuple[int, int], _Done] = {}  # (bin, model)
        self._finished: list[QualityBin] = []
        self._parts: tuple[QualityPart, ...] = ()
        self._bleu = _bleu_metric() if request.pairs else None
        self._signature = ""
        self.done, self.total = 0, self.sentences * len(self._models)
        self._seconds = time.perf_counter() - started

    def belongs_to(self, request: QualityRequest) -> bool:
        """Whether `request` asks for more of this measurement, rather than for one from the beginning."""
        same = (self.references, self.pairs, self.held_out) == (request.references, request.pairs, request.held_out)
        return same and request.done > 0

    def advance(self, should_stop: Callable[[], bool]) -> None:
        """Do the next batch; the models are let go with the last one. Called off, nothing of the batch is kept.

        Raises:
            Cancelled: `should_stop()` was true.
        """
        if self._next == len(self._tasks):
            return
        started = time.perf_counter()
        task = self._tasks[self._next]
        model, batch = self._models[task.model], self._bins[task.bin][task.first : task.last]
        sources = source_ids(model, [sentence.source for sentence in batch])
        written = translate(model, sources, MOST_WRITTEN, should_stop)
        given = [row for row, sentence in zip(sources, batch, strict=True) for _ in sentence.references]
        wanted = target_ids(model, [reference for sentence in batch for reference in sentence.references])
        total, tokens = 0.0, 0
        for start in range(0, len(wanted), BATCH):  # a sentence may have dozens of references
            if should_stop():
                raise Cancelled
            part = slice(start, start + BATCH)
            total += float(log_probabilities(model, given[part], wanted[part]).sum())
            tokens += sum(len(row) for row in wanted[part])
        work = self._work.setdefault((task.bin, task.model), _Done([]))
        work.written += written
        work.log_probability += total
        work.tokens += tokens
        self._next += 1
        self.done += len(batch)
        self._finish(task.bin)
        self._seconds += time.perf_counter() - started

    def view(self, request: QualityRequest) -> QualityView:
        """What is measured so far."""
        return QualityView(
            request=request,
            models=self._names,
            trained_to=self._trained_to,
            unit="words" if self.pairs else "characters",
            bins=tuple(self._finished),
            parts=self._parts,
            planned=tuple((*_span(bin_), len(bin_)) for bin_ in self._bins),
            sentences=self.sentences,
            left_out=self.left_out,
            sampled=self.sampled,
            done=self.done,
            total=self.total,
            signature=self._signature,
            seconds=self._seconds,
        )

    def _finish(self, number: int) -> None:
        """Score a bin that every model has been through, and everything after the last one."""
        if self._next < len(self._tasks) and self._tasks[self._next].bin == number:
            return
        sentences, every = self._bins[number], range(len(self._names))
        written = [self._work[number, model].written for model in every]
        examples = tuple(
            QualityExample(
                source=sentence.source,
                references=sentence.references,
                written=tuple(texts[i] for texts in written),
                exact=tuple(_is_exact(texts[i], sentence) for texts in written),
            )
            for i, sentence in enumerate(sentences)
        )
        scores = tuple(self._score(model, [number]) for model in every)
        self._finished.append(QualityBin(*_span(sentences), scores, examples))
        if self._next == len(self._tasks):
            self._parts = tuple(self._part(*part) for part in self._split())
            self._models.clear()

    def _split(self) -> list[tuple[str, list[int]]]:
        """Which bins are scored together: all; and those within and beyond what the models were trained on."""
        lasts = [_span(bin_)[1] for bin_ in self._bins]
        parts = [("all", list(range(len(lasts))))]
        known = [words for words in self._trained_to if words is not None]
        if known and lasts[0] <= min(known) < lasts[-1]:
            within = [number for number, last in enumerate(lasts) if last <= min(known)]
            parts += [(f"up to {min(known)} words", within), ("longer", list(range(len(within), len(lasts))))]
        return parts

    def _part(self, name: str, bins: list[int]) -> QualityPart:
        scores = tuple(self._score(model, bins) for model in range(len(self._names)))
        return QualityPart(name, sum(len(self._bins[number]) for number in bins), scores)

    def _score(self, model: int, bins: Sequence[int]) -> QualityScore:
        """One model's score over whole bins."""
        sentences = [sentence for number in bins for sentence in self._bins[number]]
        work = [self._work[number, model] for number in bins]
        written = [text for done in work for text in done.written]
        bleu = None
        if self._bleu is not None:
            bleu = self._bleu.corpus_score(written, reference_streams([s.references for s in sentences])).score
            self._signature = str(self._bleu.get_signature())
        return QualityScore(
            bleu=bleu,
            exact=sum(_is_exact(text, sentence) for text, sentence in zip(written, sentences, strict=True)),
            log_probability=sum(done.log_probability for done in work) / sum(done.tokens for done in work),
        )


def reference_streams(found: Sequence[Sequence[str]]) -> list[list[str]]:
    """References by number rather than by sentence, as sacrebleu takes them; None where a sentence has fewer."""
    most = max(len(each) for each in found)
    streams = [[each[i] if i < len(each) else None for each in found] for i in range(most)]
    return cast("list[list[str]]", streams)


def _bleu_metric() -> BLEU:
    """Letter case aside, because the recurrent models write none; short bins are scored by the n-grams they have."""
    from sacrebleu.metrics.bleu import BLEU  # not before somebody measures

    return BLEU(lowercase=True, effective_order=True)


def _is_exact(written: str, sentence: Sentence) -> bool:
    return _plain(written) in map(_plain, sentence.references)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _opened(reference: str) -> Model:
    model = open_checkpoint(reference)
    if not model.seq2seq:
        raise InputError(f"{model.info.name} does not translate: it has no encoder and decoder. Choose other models.")
    return model


def _sentences(request: QualityRequest) -> list[Sentence]:
    """The sentences to measure, each once, with all its translations."""
    if not request.pairs:
        return [Sentence(text, (day,), len(text)) for text, day in date_pairs(DATES, seed=0)]
    path = Path(request.pairs).expanduser()
    pairs = read_pairs(path)
    if request.held_out:
        pairs = split(pairs)[1]
        if not pairs:
            raise InputError(f"{path.name} has too few sentences to hold any out: a tenth of them are. Measure all.")
    return grouped(pairs)


def grouped(pairs: Sequence[Pair]) -> list[Sentence]:
    """Each source once, with every translation that is given for it; pairs with an empty side are left out."""
    found: dict[str, list[str]] = {}
    for source, reference in pairs:
        if source and reference:
            found.setdefault(source, []).append(reference)
    return [Sentence(source, tuple(references), len(source.split())) for source, references in found.items()]


def _fitting(models: Sequence[Model], found: list[Sentence], should_stop: Callable[[], bool]) -> list[Sentence]:
    """The sentences that every model can take, with their references."""
    kept = []
    for start in range(0, len(found), 1_000):
        if should_stop():
            raise Cancelled
        part = found[start : start + 1_000]
        fits = [True] * len(part)
        for model in models:
            limit = model.info.context or 1 << 30
            sources = [len(ids) for ids in source_ids(model, [sentence.source for sentence in part])]
            flat = iter(target_ids(model, [text for sentence in part for text in sentence.references]))
            for i, sentence in enumerate(part):
                longest = max(len(next(flat)) for _ in sentence.references)
                fits[i] &= sources[i] <= limit and longest <= limit
        kept += [sentence for sentence, fit in zip(part, fits, strict=True) if fit]
    return kept


def _span(bin_: Sequence[Sentence]) -> tuple[int, int]:
    """The first and last length that belong to its bin."""
    before = (bin_[0].length - 1) // WIDTH * WIDTH
    return before + 1, before + WIDTH


def _binned(sentences: list[Sentence]) -> list[list[Sentence]]:
    """By length, a list a bin; of a bin with very many, a sample that is always the same."""
    ordered = sorted(sentences, key=lambda sentence: (sentence.length, sentence.source))
    bins = [list(bin_) for _, bin_ in groupby(ordered, key=lambda sentence: (sentence.length - 1) // WIDTH)]
    for i, bin_ in enumerate(bins):
        if len(bin_) > MOST_IN_BIN:
            chosen = random.Random(0).sample(bin_, MOST_IN_BIN)
            bins[i] = sorted(chosen, key=lambda sentence: (sentence.length, sentence.source))
    return bins


def measure(
    references: Sequence[str],
    pairs: str = "",
    held_out: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    report: Callable[[str, float | None], None] = lambda label, fraction: None,
) -> QualityView:
    """The whole measurement at once, for a notebook. Arguments as in `QualityRequest`."""
    request = QualityRequest(references=tuple(references), pairs=pairs, held_out=held_out)
    measurement = Measurement(request, should_stop, report)
    while measurement.done < measurement.total:
        measurement.advance(should_stop)
        report("Translating", measurement.done / measurement.total)
    return measurement.view(request)
