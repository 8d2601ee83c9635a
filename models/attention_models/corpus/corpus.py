"""A file of texts read through a model, a batch at a time: means of every head, and where one does something most.

    from attention_models import open_checkpoint, read_corpus

    view = read_corpus(open_checkpoint("story-gpt"), "texts.txt", attends_to="next")
    view.mean[5, 5]        # (positions, positions): head 5.5's mean weight between places of the texts
    view.hits[5][5][0]     # where it attends most to a copy of the word that comes next

Nothing is held but sums, the places that are listed, and the batch that is run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.files.text_stream import TextLine, TextStream
from attention_models.forward.context import Context
from attention_models.forward.model import Encoded, Model
from attention_models.forward.streaming import run_passing
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.chat import Pair
from attention_models.protocol.corpus import (
    FARTHEST,
    MOST_HITS,
    MOST_ROWS,
    POSITIONS,
    WORD,
    CorpusQuestion,
    CorpusRequest,
    CorpusView,
    Hit,
    WordRow,
)
from attention_models.protocol.errors import InputError, StaleRunError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Cancelled, Report, ShouldStop, never, silent
from attention_models.protocol.roles import PATTERNS, why_not
from attention_models.protocol.values import Site, SiteRef, read_only, site_tokens
from attention_models.roles.counting import (
    Asked,
    ByDistance,
    ClassedCells,
    OfMask,
    Tally,
    offset_of,
    offsets,
    visible_cells,
    weights_of_rows,
)
from attention_models.roles.patterns import CELLS
from attention_models.roles.reading import batches, written_of
from attention_models.roles.token_features import SiteTokenFeatures, TokenFeatures

# The rows of each head that attend most to what is asked about, over any number of texts.


_WORDS_BEFORE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """A text of the file, as the model takes it."""

    line: int
    text: str
    second: str | None  # of a pair; of a translator what its decoder says
    encoded: Encoded


class BestRows:
    """The best few of each head: (heads, most) each, filled from the best on; a score of -1 stands for none."""

    def __init__(self, heads: int, most: int) -> None:
        self._most = most
        self._scores = torch.full((heads, most), -1.0)
        self._weights = torch.zeros(heads, most)  # of that key alone
        self._listed: tuple[tuple[Hit, ...], ...] | None = None  # what `hits` said last, while it holds
        self._places = torch.zeros(heads, most, 3, dtype=torch.long)  # text, query, key

    def add(self, w: Tensor, cells: Tensor, first_row: int, first_text: int) -> None:
        """Weights (texts, heads, rows, keys) and which of them count, (texts, heads or 1, rows, keys) float.

        `first_row` is the place of the first row in its text, `first_text` the number of the first text.
        """
        counted = w * cells
        score = counted.sum(dim=-1).transpose(0, 1).flatten(1)  # (heads, texts * rows)
        rows = w.shape[2]
        best, found = score.topk(min(self._most, score.shape[1]), dim=1)
        best, found = best.cpu(), found.cpu()
        if not bool((best[:, 0] > self._scores[:, -1]).any()):
            return
        text, row = found // rows, found % rows
        heads = torch.arange(len(best))[:, None].expand_as(found)
        self._listed = None
        weight, key = counted.cpu()[text, heads, row].max(dim=-1)
        places = torch.stack([text + first_text, row + first_row, key], dim=-1)
        best = torch.where(best > 0, best, -1.0)  # a row without any cell of these is none
        self._weights = torch.cat([self._weights, weight], dim=1)
        scores = torch.cat([self._scores, best], dim=1)
        self._scores, order = scores.topk(self._most, dim=1)
        self._weights = self._weights.gather(1, order)
        every = torch.cat([self._places, places], dim=1)
        self._places = every.gather(1, order[..., None].expand(-1, -1, 3))

    def texts(self) -> set[int]:
        """The numbers of the texts that are listed."""
        return set(self._places[..., 0][self._scores > 0].tolist())

    def hits(self, site: Site, texts: Mapping[int, Read]) -> tuple[tuple[Hit, ...], ...]:
        """Of each head, the highest score first."""
        if self._listed is not None:
            return self._listed
        scores, places = self._scores.numpy().astype(np.float64), self._places.tolist()
        weights = self._weights.tolist()
        self._listed = tuple(
            tuple(
                _hit(site, texts[text], query, key, weight, float(score))
                for score, weight, (text, query, key) in zip(of_head, weights[head], places[head], strict=True)
                if score > 0
            )
            for head, of_head in enumerate(scores)
        )
        return self._listed


def _hit(site: Site, read: Read, query: int, key: int, weight: float, score: float) -> Hit:
    queries, keys = site_tokens(read.encoded, site)
    before = queries[max(0, query - _WORDS_BEFORE) : query]
    return Hit(
        line=read.line,
        text=read.text,
        second=read.second,
        query=query,
        key=key,
        weight=weight,
        score=score,
        before=" ".join(token.word for token in before if not token.special),
        query_word=queries[query].word,
        key_word=keys[key].word,
    )


_AT_ONCE = 256  # lines that are read, sorted by length and run
_MOMENT = 0.2  # seconds that an answer takes, about
_MOST_SAID = 20
_PATTERN_NAMES = frozenset(role.name for role in PATTERNS)


def answer(request: CorpusRequest, context: Context) -> CorpusView:
    """What is there once a moment more was spent on it.

    Raises:
        StaleRunError: more is asked of a file that is no longer being read.
    """
    kept = context.kept_of_model
    reading = kept.get(CorpusReading)
    if request.stop:
        kept.drop(CorpusReading)
        if reading is None or reading.read_nothing:
            raise StaleRunError
        return replace(reading.view(), request=request)
    if reading is None or not reading.belongs_to(request):
        if request.have:
            raise StaleRunError
        reading = kept.put(
            CorpusReading(context.model, request.path, request.question, context.should_stop, request.interventions)
        )
    context.report(f"Reading {reading.name}", reading.share)
    try:
        reading.advance(_MOMENT, context.should_stop)
    except BaseException:
        kept.drop(CorpusReading)  # a batch that was broken off is counted in some layers and not in others
        raise
    return replace(reading.view(), request=request)


def read_corpus(
    model: Model,
    path: str | Path,
    *,
    attends_to: str = "",
    rows_of: str = "",
    interventions: Sequence[Intervention] = (),
    should_stop: ShouldStop = never,
    report: Report = silent,
) -> CorpusView:
    """Run every text of a file, and gather what the heads do.

    Args:
        path: .txt (a text a line), .csv, .tsv or .jsonl; see `attention_models.files.text_stream.TextStream`. Second
            texts are read as pairs by models that read pairs, and said by the decoder of translators.
        attends_to: list where each head attends most to it: the name of a pattern ("induction", "next", ...), or
            "word:the" for tokens that are drawn as "the".
        rows_of: gather the rows of tokens that are drawn so.
        interventions: what to change in every run (`attention_models.protocol.interventions`).
        should_stop: polled between layers.
        report: told how much of the file is read.

    Raises:
        InputError: the file cannot be read (the sentence says on which line), or no text of it fits the model.
        Cancelled: `should_stop()` was true.
    """
    question = CorpusQuestion(attends_to, rows_of)
    reading = CorpusReading(model, str(path), question, should_stop, tuple(interventions))
    while not reading.ended:
        reading.advance(_MOMENT, should_stop)
        report(f"Reading {reading.name}", reading.share)
    if reading.broken:
        raise InputError(reading.broken)
    return reading.view()


def edits_of(model: Model, interventions: Sequence[Intervention]) -> tuple[Intervention, ...]:
    """What is changed, with the stack that predicts where a part's stack was not named."""
    stack = model.info.predicting_stack
    return tuple(item.of_stack(stack) if isinstance(item, Ablation) else item for item in interventions)


class _OfSite:
    """Sums of one site."""

    def __init__(self, site: Site, best: bool) -> None:
        self.site = site
        self.sums = np.zeros((site.heads, POSITIONS, POSITIONS))
        self.counts, self.texts = (np.zeros((POSITIONS, POSITIONS), int) for _ in range(2))
        self.distance = ByDistance(site.heads, 2 * FARTHEST + 1, explains=False)
        self.tally = Tally(1, site.heads)
        self.best = BestRows(site.heads, MOST_HITS) if best else None


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """What is the same for every layer of a batch that is masked alike, of some of its rows."""

    cells: Tensor | None  # (texts, rows, keys) bool: what is asked about
    asked: Asked | None
    classed: ClassedCells
    there: Tensor  # (texts, rows, keys) bool: what is visible to rows that are no padding
    both: Tensor  # (texts, rows, keys) bool: neither is padding


class CorpusReading:
    """Reads a file: `advance` until it has `ended`, `view` whenever wanted."""

    def __init__(
        self,
        model: Model,
        path: str,
        question: CorpusQuestion,
        should_stop: ShouldStop = never,
        interventions: tuple[Intervention, ...] = (),
    ) -> None:
        """Raises InputError: no such file, a model that reads no texts, or a question that there is not."""
        if model.info.family == "vision":
            raise InputError(f"{model.info.name} looks at pictures. Open a model of text to read a file of texts.")
        if not model.info.stacks and model.info.textbook:
            raise InputError(f"{model.info.name} has no attention, so there is nothing to gather.")
        asked = question.attends_to
        if asked and asked not in _PATTERN_NAMES and not asked.startswith(WORD):
            raise InputError(
                f"There is no question “{asked}”. It is {', '.join(sorted(_PATTERN_NAMES))}, or {WORD}… with a token."
            )
        self._model, self._question, self.path, self._interventions = model, question, path, interventions
        self._edits = edits_of(model, interventions)
        self._stream = TextStream(path)
        self.name = self._stream.name
        self._sides = SiteTokenFeatures(model)
        self._sites: dict[SiteRef, _OfSite] = {}
        self._rows: list[WordRow] = []
        self._row_stack = ""
        self._pending: dict[tuple[int, int], list[np.ndarray]] = {}  # (text, query): weights of each site
        self._texts: dict[int, Read] = {}  # that hits are in, by their number
        self._left_out: list[str] = []
        self._left_out_count = self._run_texts = self._tokens = self._lines = self._written = 0
        self._shared = OfMask[_Rows]()  # of the batch that is run
        self._seconds = 0.0
        self._answers = 0
        self._done = (0.0, 0, 0)  # share of the file before the lines that are run, how many of these are, of how many
        self.ended = False
        self.broken = ""  # a sentence about the line at which the file could not be read on
        self._should_stop = should_stop
        self._steps = self._work()

    @property
    def read_nothing(self) -> bool:
        return not self._sites

    @property
    def share(self) -> float:
        """Of the file: what was run, and not merely read from it."""
        before, at, total = self._done
        return 1.0 if self.ended else before + (self._stream.share - before) * at / max(1, total)

    def belongs_to(self, request: CorpusRequest) -> bool:
        """Whether `request` asks for more of this, and not for a reading from the beginning."""
        of_this = (self.path, self._question, self._interventions)
        same = (request.path, request.question, request.interventions) == of_this
        return same and request.have == self._answers > 0

    def advance(self, seconds: float, should_stop: ShouldStop = never) -> None:
        """Run batches for so long, one at least.

        Raises:
            InputError: a line that cannot be read, or no text that fits.
            Cancelled: `should_stop()` was true; then nothing that was gathered can be used.
        """
        started = time.perf_counter()
        self._answers += 1
        self._should_stop = should_stop
        while not self.ended:
            if next(self._steps, None) is None:
                self.ended = True
            if time.perf_counter() - started >= seconds:
                break
        self._seconds += time.perf_counter() - started

    # reading and running

    def _work(self) -> Iterator[int]:
        lines = iter(self._stream)
        before = 0.0
        while several := self._next(lines):
            items = self._encoded(several)
            self._done = (before, 0, len(items))
            self._lines = several[-1].number
            yield 0
            for together, encoded in batches(self._model, items):
                self._begin_batch()
                see = partial(self._see, together, encoded)
                try:
                    run_passing(self._model, encoded, see, self._asked_to_stop, self._edits)
                except ValueError as error:  # of a change that this model cannot make
                    raise InputError(str(error)) from error
                self._end_batch(together)
                self._done = (before, self._done[1] + len(together), len(items))
                yield len(together)
            before = self._stream.share
        if not self._sites and self.broken:
            raise InputError(self.broken)
        if not self._sites:
            why = f" {self._left_out[0]}" if self._left_out else ""
            raise InputError(f"None of the texts of {self.name} fits {self._model.info.name}.{why}")

    def _next(self, lines: Iterator[TextLine]) -> list[TextLine]:
        """Those that are run next. Raises InputError where the first of a file cannot be read."""
        several: list[TextLine] = []
        try:
            while not self.broken and len(several) < _AT_ONCE and (line := next(lines, None)) is not None:
                several.append(line)
        except InputError as error:
            if not several and not self._sites:
                raise
            self.broken = str(error)  # what was read before it counts
        return several

    def _asked_to_stop(self) -> bool:
        return self._should_stop()

    def _encoded(self, lines: Sequence[TextLine]) -> list[Read]:
        written = self._targets(lines) if self._model.seq2seq else [None] * len(lines)
        items = []
        for line, target in zip(lines, written, strict=True):
            if self._should_stop():
                raise Cancelled
            prompt: str | Pair = line.text if self._model.seq2seq else line.prompt
            try:
                encoded = self._model.encode(prompt, target)
            except InputError as error:
                self._left_out_count += 1
                if len(self._left_out) < _MOST_SAID:
                    self._left_out.append(f"Line {line.number:,} is left out: {error}")
                continue
            items.append(Read(line.number, line.text, target or line.second, encoded))
        return items

    def _targets(self, lines: Sequence[TextLine]) -> list[str | None]:
        """What decoders are given: the second text of a line, or what the model writes itself."""
        found: list[str | None] = [line.second for line in lines]
        missing = [i for i, target in enumerate(found) if target is None]
        written = written_of(self._model, [lines[i].text for i in missing], self._asked_to_stop)
        self._written += len(missing)
        for place, text in zip(missing, chain.from_iterable(written), strict=True):
            found[place] = text
        return found

    def _begin_batch(self) -> None:
        self._shared.clear()
        self._sides.clear()

    def _end_batch(self, items: Sequence[Read]) -> None:
        self._run_texts += len(items)
        self._tokens += sum(len(item.encoded.tokens) + len(item.encoded.source) for item in items)
        for number, item in enumerate(items, start=self._run_texts - len(items)):
            self._texts[number] = item
        listed = {number for of in self._sites.values() if of.best is not None for number in of.best.texts()}
        self._texts = {number: item for number, item in self._texts.items() if number in listed}
        for (row, query), weights in self._pending.items():
            self._rows.append(self._word_row(items[row], query, weights))
        self._pending.clear()

    # weights

    def _see(
        self, items: Sequence[Read], encoded: Sequence[Encoded], site: Site, x: AttentionInputs, w: Tensor | None
    ) -> None:
        of = self._sites.get(site.ref)
        if of is None:
            can = bool(self._question.attends_to) and not self._why_not(site)
            of = self._sites[site.ref] = _OfSite(site, can)
        for rows, part in weights_of_rows(x, w, self._asked_to_stop):
            shared = self._shared.of_rows(site, x, rows, partial(self._of_rows, encoded, site, x, rows))
            self._add(of, shared, part, rows)
            if self._question.rows_of:
                self._gather(items, encoded, site, part.masked_fill(~shared.there[:, None], torch.nan), rows)

    def _why_not(self, site: Site) -> str:
        asked = self._question.attends_to
        if asked.startswith(WORD) or (asked == "rare" and self._sides.ordered):
            return ""
        return "its order" if asked == "rare" else why_not(asked, self._model.info, site.stack)

    def _add(self, of: _OfSite, shared: _Rows, w: Tensor, rows: slice) -> None:
        of.distance.add(w, shared.classed)
        first = slice(rows.start, min(rows.stop, POSITIONS))
        if first.start < first.stop:
            count, keys = first.stop - first.start, min(w.shape[3], POSITIONS)
            there = shared.there[:, :count, :keys]
            sums = torch.einsum("bhqk,bqk->hqk", w[:, :, :count, :keys], there.float())
            of.sums[:, first, :keys] += sums.double().cpu().numpy()
            of.counts[first, :keys] += there.sum(dim=0).cpu().numpy()
            of.texts[first, :keys] += shared.both[:, :count, :keys].sum(dim=0).cpu().numpy()
        if of.best is not None and shared.asked is not None and shared.cells is not None:
            of.tally.add(shared.asked, w)
            of.best.add(w, shared.asked.factors[0], rows.start, self._run_texts)

    def _of_rows(self, encoded: Sequence[Encoded], site: Site, x: AttentionInputs, rows: slice) -> _Rows:
        keys = slice(0, x.keys)
        visible = visible_cells(x, rows, keys)
        q, k = self._sides.of(encoded, site, x.query.device)
        cells = None if not self._question.attends_to or self._why_not(site) else self._cells(encoded, site, q, k, rows)
        real = q.real[:, rows]
        asked = None if cells is None else Asked.of(cells[None], visible, real)
        far = offsets(rows, keys, x.query.device)
        classed = ClassedCells(visible, real, torch.where(far <= 2 * FARTHEST, far, -1))
        both = real[..., None] & k.real[:, None]
        return _Rows(cells, asked, classed, visible.any(dim=1) & both, both)

    def _cells(self, encoded: Sequence[Encoded], site: Site, q: TokenFeatures, k: TokenFeatures, rows: slice) -> Tensor:
        asked = self._question.attends_to
        if not asked.startswith(WORD):
            return CELLS[asked](q, k, rows, slice(0, k.count))
        word = asked.removeprefix(WORD)
        named = [[token.word == word and not token.padding for token in site_tokens(one, site)[1]] for one in encoded]
        return torch.tensor(named, device=k.ids.device)[:, None].expand(-1, rows.stop - rows.start, -1)

    def _gather(self, items: Sequence[Read], encoded: Sequence[Encoded], site: Site, w: Tensor, rows: slice) -> None:
        """Keep the rows of the token that is searched for, of the first stack in which it stands among the queries."""
        if self._row_stack not in ("", site.stack):
            return
        for row, one in enumerate(encoded):
            queries, keys = site_tokens(one, site)
            count = sum(not token.padding for token in keys)
            for query in range(rows.start, rows.stop):
                if queries[query].padding or queries[query].word != self._question.rows_of:
                    continue
                is_known = (row, query) in self._pending
                if is_known or (site.layer == 0 and len(self._rows) + len(self._pending) < MOST_ROWS):
                    self._row_stack = site.stack
                    weights = w[row, :, query - rows.start, :count].cpu().numpy().copy()
                    self._pending.setdefault((row, query), []).append(read_only(weights))

    def _word_row(self, item: Read, query: int, weights: list[np.ndarray]) -> WordRow:
        site = next(of.site for of in self._sites.values() if of.site.stack == self._row_stack)
        keys = site_tokens(item.encoded, site)[1]
        words = tuple(token.word for token in keys if not token.padding)
        return WordRow(item.line, item.text, item.second, query, words, tuple(weights))

    # what was found

    def view(self) -> CorpusView:
        """What was gathered so far."""
        every = list(self._sites.values())
        heads = max((of.site.heads for of in every), default=0)
        mean = np.full((len(every), heads, POSITIONS, POSITIONS), np.nan, np.float32)
        by_distance = np.full((len(every), heads, 2 * FARTHEST + 1), np.nan, np.float32)
        scores, even = np.full((len(every), heads), np.nan), np.full(len(every), np.nan)
        order = np.argsort([offset_of(place) for place in range(2 * FARTHEST + 1)])
        for i, of in enumerate(every):
            there = of.counts > 0
            mean[i, : of.site.heads, there] = (of.sums[:, there] / of.counts[there]).T
            by_distance[i, : of.site.heads] = of.distance.means[:, order]
            if of.best is not None:
                scores[i, : of.site.heads], even[i] = of.tally.scores[0], of.tally.even[0]
        return CorpusView(
            request=CorpusRequest(path=self.path, question=self._question, interventions=self._interventions),
            sites=tuple(of.site.ref for of in every),
            mean=read_only(mean),
            texts_at=read_only(np.array([of.counts for of in every])),
            texts_with=read_only(np.array([of.texts for of in every])),
            distances=read_only(np.array([offset_of(int(place)) for place in order])),
            by_distance=read_only(by_distance),
            scores=read_only(scores),
            even=read_only(even),
            hits=tuple(() if of.best is None else of.best.hits(of.site, self._texts) for of in every),
            rows=tuple(self._rows),
            row_sites=tuple(of.site.ref for of in every if of.site.stack == self._row_stack),
            texts=self._run_texts,
            lines=self._lines,
            tokens=self._tokens,
            share=self.share,
            ended=self.ended,
            left_out=tuple(self._left_out),
            left_out_count=self._left_out_count,
            seconds=self._seconds,
            written=self._written,
            broken=self.broken,
            answers=self._answers,
        )
