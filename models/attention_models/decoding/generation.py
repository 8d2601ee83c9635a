"""One prompt and what a model writes after it: steps, samples and beams, and the cache that they share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from attention_models.attention.row_cache import KeptRows, most_rows
from attention_models.decoding.beam import BeamSearch
from attention_models.decoding.cached_run import CachedRun, Run, start_run
from attention_models.decoding.choosing import Choice, choose, end_ids
from attention_models.decoding.decode import beam_step, room, written_text
from attention_models.decoding.filters import filters
from attention_models.decoding.generation_config import Filter, GenerationConfigProcessors, generation_config_processors
from attention_models.decoding.live_trace import LiveTrace
from attention_models.decoding.samples import ContinuationRun, Samples
from attention_models.decoding.written_run import as_read
from attention_models.forward.current_run import ReadAlong
from attention_models.forward.model import Model
from attention_models.forward.origin import origin_of
from attention_models.forward.run import run as run_whole
from attention_models.forward.run import run_each
from attention_models.forward.trace import Trace
from attention_models.protocol.decoding import (
    Beam,
    CacheLayer,
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
    Ending,
)
from attention_models.protocol.errors import InputError
from attention_models.protocol.prompt import Prompt, shown_of, with_more
from attention_models.protocol.request import Cancelled, ShouldStop
from attention_models.protocol.running import RunInputs
from attention_models.text.common_start import common_start

# What the player keeps between two steps of a beam search, and of several samples.


class Search:
    """A beam search in the middle."""

    def __init__(
        self,
        model: Model,
        run: Run,
        request: DecodeStepRequest,
        text_of: Callable[[tuple[int, ...]], str],
        own: GenerationConfigProcessors,
    ) -> None:
        self.model, self.run, self.done = model, run, 0
        self._key = (request.settings, request.steps)
        self._text_of = text_of
        self._chain = filters(request.settings, own)
        settings = request.settings
        steps = room(model, run, request.steps)
        self.search = BeamSearch(settings.beams, settings.length_penalty, end_ids(model), steps)

    def leads_to(self, request: DecodeStepRequest) -> bool:
        """Whether the step that is asked for lies ahead on this search."""
        return self._key == (request.settings, request.steps) and self.done < request.number

    @torch.no_grad()
    def advance(self) -> tuple[Beam, ...]:
        if self.search.is_over:
            raise InputError("The beam search is over. Restart to search again.")
        looked_at, _ = beam_step(self.model, self.run, self.search, self._chain, self._text_of)
        self.done += 1
        return looked_at


class Drawing:
    """Samples in the middle."""

    def __init__(self, model: Model, run: Run, request: DecodeSamplesRequest, own: GenerationConfigProcessors) -> None:
        """Bring `run`, which stands at the prompt, to what each of the samples has written."""
        self.run = run
        self._settings = request.settings
        self.ids = dict(zip(request.samples, request.ids, strict=True))
        self._samples = Samples(model, run, request.settings, request.samples, own)
        shared = _shared(request.ids)
        for token in request.ids[0][:shared]:  # as one sequence
            self._read()
            run.append(torch.tensor([token], device=run.ids.device))
        for place in range(shared, len(request.ids[0])):
            if place == shared and isinstance(run, CachedRun):
                run.logits()  # what they share is read once
            self._read()
            self._samples.append({sample: ids[place] for sample, ids in self.ids.items()})

    def leads_to(self, request: DecodeSamplesRequest) -> bool:
        """Whether these are the samples that are to go on."""
        wanted = dict(zip(request.samples, request.ids, strict=True))
        return self._settings == request.settings and self.ids == wanted

    def advance(self, number: int, top: int) -> dict[int, Choice]:
        choices = self._samples.advance(number, top)
        self.ids = {sample: (*self.ids[sample], choices[sample].token) for sample in self._samples.writing}
        return choices

    def _read(self) -> None:
        if not isinstance(self.run, CachedRun):  # a state takes in one token at a time
            self.run.logits()


def _shared(texts: tuple[tuple[int, ...], ...]) -> int:
    """How many tokens all of them begin with."""
    return sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, zip(*texts, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class NextLogits:
    """The next token's logits after a prompt and `ids`, (1, vocabulary), and how long they took.

    Computed `early`, before a step asked for them, they are part of that step's time all the same.
    """

    ids: tuple[int, ...]
    logits: Tensor
    seconds: float
    early: bool


class Generation:
    """One prompt and what is written after it, from left to right.

    Raises:
        InputError: the text is empty or too long, the model does not write, or cannot be changed in such a way.
    """

    def __init__(self, model: Model, inputs: RunInputs) -> None:
        self.inputs = inputs
        self.model, self.interventions = model, inputs.interventions
        self.text = shown_of(inputs.prompt)
        self._encoded = model.encode(self.text, inputs.target) if model.seq2seq else model.encode(self.text)
        self._given = [token.id for token in self._encoded.tokens]
        self._lead = written_text(model, self._given)
        self._run = self._afresh()
        self.prompt = self._run.prompt
        self._ends = end_ids(model)
        self._own = generation_config_processors(model, self._encoded)
        self._rows = KeptRows(self.prompt)
        self._beams: Search | None = None
        self._samples: Drawing | None = None
        self._live = LiveTrace()
        self._is_followed = False  # whether anybody ever wanted what was read as one run
        self._said: NextLogits | None = None

    def step(self, request: DecodeStepRequest, should_stop: ShouldStop) -> DecodeStepView:
        self._check_room(request.number)
        if request.settings.strategy == "beam":
            return self._beam(request, should_stop)
        started = time.perf_counter()
        said = self._said_after(request.ids, should_stop)
        started -= said.seconds if said.early else 0.0
        run, logits = self._run, said.logits
        self._keep_rows(run, request)
        settings, number, top = request.settings, request.number, request.top
        choice = choose(self.model, logits, run.ids, settings, number, top, request.forced, self._own)
        return self._chosen(request, choice, started, run)

    def logits_after(self, ids: tuple[int, ...], should_stop: ShouldStop) -> tuple[Tensor, Tensor]:
        """The next token's logits after the prompt and `ids`, (1, vocabulary), and all ids so far, (1, tokens)."""
        said = self._said_after(ids, should_stop)
        return said.logits.float().cpu(), self._run.ids.cpu()

    def filters(self, settings: DecodeSettings) -> list[tuple[str, Filter]]:
        """What acts on logits before a token is chosen: as `settings` say, and the checkpoint's own."""
        return filters(settings, self._own)

    def samples(self, request: DecodeSamplesRequest, should_stop: ShouldStop) -> DecodeSamplesView:
        self._check_room(request.number)
        started = time.perf_counter()
        if self._samples is None or not self._samples.leads_to(request):
            self._samples = Drawing(self.model, self._afresh(), request, self._own)
        if should_stop():
            raise Cancelled
        drawing = self._samples
        choices = drawing.advance(request.number, request.top)
        self._keep_rows(drawing.run, request)
        steps = (
            self._chosen(request.alone(place), choices[sample], started, drawing.run)
            for place, sample in enumerate(request.samples)
        )
        return DecodeSamplesView(request=request, steps=tuple(steps))

    def rows(self, request: DecodeRowsRequest, should_stop: ShouldStop) -> DecodeRowsView:
        asked = request.ids[:-1]  # what had been read when the last one was chosen
        words = [token.word for token in self._encoded.tokens]
        words += [self.model.piece_label(id_).lstrip("␣") or "␣" for id_ in asked]
        source = [token.word for token in self._encoded.source]
        queries = source if request.site.stack == "encoder" and source else words
        keys = source if request.site.stack in ("encoder", "cross") and source else words
        first = len(queries) - most_rows(len(queries), len(keys))
        kept = self._rows.last_rows(request.site, request.head, asked, len(keys))
        if kept is not None:
            weights, masked = kept
        else:
            trace, last = self._whole(asked, should_stop), slice(first, None)
            weights = trace.weights(request.site, request.head, last)
            masked = trace.masked(request.site, request.head, last)
            if request.site.stack != "encoder" and isinstance(self._run, CachedRun) and self._run.keeps_rows:
                self._rows.look_at(request.site, request.head)
                self._rows.keep_pass(weights, masked, first, asked)  # later steps go on from here
        weights.flags.writeable = False
        return DecodeRowsView(
            request=request,
            weights=weights,
            masked=masked,
            queries=tuple(queries[first:]),
            keys=tuple(keys),
            first=first,
            chose=-1 if queries is source else len(queries) - first - 1,
            prompt=max(0, self.prompt - first),
            from_steps=kept is not None,
        )

    def _whole(self, asked: tuple[int, ...], should_stop: ShouldStop) -> Trace:
        """One pass over prompt and `asked`."""
        tokens = [*self._run.ids[0, : self.prompt].tolist(), *asked]
        more: dict[str, Any] = {"interventions": self.interventions, "should_stop": should_stop}
        try:
            if self.model.seq2seq:
                trace: Trace = run_whole(self.model, self.text, target=tokens[1:] or None, **more)
                return trace
            trace = run_whole(self.model, tokens, **more)
            return trace
        except ValueError as error:
            raise InputError(str(error)) from None

    def read_along(self, ids: tuple[int, ...], should_stop: ShouldStop) -> ContinuationRun:
        """Prompt and `ids` as one run: put together from the steps where these ran with a cache, else a whole pass.

        A token that ends the text is left out. What was read last stays read: the next step does not run it again.
        """
        if ids and ids[-1] in self._ends:
            ids = ids[:-1]
        given = [*self._given, *ids]
        whole = with_more(self.text, self._continuation(ids))
        text: Prompt | list[int] = self.text if self.model.seq2seq else as_read(self.model, whole, given)
        target = given[1:] if self.model.seq2seq else None
        first = len(given) - len(ids)
        read = ReadAlong(text, None if self.model.seq2seq else whole, tuple(range(first, len(given))))
        trace = self._live_trace(ids, text, target, should_stop) if ids else None
        if trace is None:
            trace = run_each(self.model, text, target, self.interventions, should_stop)[0]
        return ContinuationRun(trace, target, read)

    def _live_trace(
        self, ids: tuple[int, ...], text: Prompt | list[int], target: list[int] | None, should_stop: ShouldStop
    ) -> Trace | None:
        """None where the steps cannot be put together."""
        if not isinstance(self._run, CachedRun):
            return None
        self._is_followed = True
        self._said_after(ids, should_stop, early=True)
        if self._live.tokens != self.prompt + len(ids):  # some were read before anybody followed, or forgotten since
            self._run, self._said = self._afresh(), None
            self._said_after(ids, should_stop, early=True)
        run = self._run
        if not isinstance(run, CachedRun) or self._live.tokens != self.prompt + len(ids):
            return None
        encoded = self.model.encode(text, target)
        return self._live.trace(run, encoded, origin_of(self.model, text, target, encoded))

    # one after the other

    def _said_after(self, ids: tuple[int, ...], should_stop: ShouldStop, early: bool = False) -> NextLogits:
        """What the model says after prompt and `ids`; what it said last is not computed again."""
        if self._said is None or self._said.ids != ids:
            started = time.perf_counter()
            self._said = None
            self._go_to(ids, should_stop)
            run = self._run
            logits = run.logits()
            self._said = NextLogits(ids, logits, time.perf_counter() - started, early)
            if isinstance(run, CachedRun) and self._is_followed:
                self._live.add(run)
        return self._said

    def _go_to(self, ids: tuple[int, ...], should_stop: ShouldStop) -> None:
        """Bring the run to prompt and `ids`, keeping of its cache what serves."""
        run = self._run
        written = tuple(run.ids[0, self.prompt :].tolist())
        if isinstance(run, CachedRun):
            # at least one token runs: the logits after it were not kept
            wanted = (*run.ids[0, : self.prompt].tolist(), *ids)
            same = min(self.prompt + common_start(written, ids), len(wanted) - 1)
            if not run.crop(same):
                run, same = self._afresh(), self.prompt
                self._run = run
            for id_ in wanted[same:]:
                run.append(torch.tensor([id_], device=run.ids.device))
            return
        if ids and ids[:-1] == written:
            run.append(torch.tensor(ids[-1:], device=run.ids.device))
            return
        run = self._run = self._afresh()  # a recurrent state cannot be taken back
        for id_ in ids:
            if should_stop():
                raise Cancelled
            run.logits()
            run.append(torch.tensor([id_], device=run.ids.device))

    def _afresh(self) -> Run:
        return start_run(self.model, self._encoded, self.interventions)

    def _check_room(self, number: int) -> None:
        limit = self.model.info.context
        if limit is not None and self.prompt + number > limit:
            raise InputError(
                f"The context is full: {self.model.info.name} takes {limit:,} tokens, and prompt and written text have "
                "them all. Go back, or shorten the text."
            )

    def _keep_rows(self, run: Run, request: DecodeStepRequest | DecodeSamplesRequest) -> None:
        """The rows of the tokens that this step ran, of the head that is looked at."""
        if not isinstance(run, CachedRun) or run.recorder is None or request.site is None or not run.keeps_rows:
            return
        inputs = {site.ref: x for site, x in zip(run.recorder.sites, run.recorder.inputs, strict=True)}
        x = inputs.get(request.site)
        if x is not None and request.head < x.heads:
            self._rows.look_at(request.site, request.head)
            self._rows.keep_step(x, [tuple(ids) for ids in run.read[:, self.prompt :].tolist()])

    # side by side

    def _beam(self, request: DecodeStepRequest, should_stop: ShouldStop) -> DecodeStepView:
        started = time.perf_counter()
        if self._beams is None or not self._beams.leads_to(request):
            self._beams = Search(self.model, self._afresh(), request, self._continuation, self._own)
        looked_at: tuple[Beam, ...] = ()
        while self._beams.done < request.number:
            if should_stop():
                raise Cancelled
            looked_at = self._beams.advance()
            self._keep_rows(self._beams.run, request)
        best = self._beams.search.best()
        return self._view(
            request,
            best.ids,
            started,
            ("model" if best.ids[-1] in self._ends else self._ending(False, request))
            if self._beams.search.is_over
            else "",
            self._beams.run,
            log_probability=best.log_probability,
            beams=looked_at,
        )

    # both

    def _ending(self, ended: bool, request: DecodeStepRequest) -> Ending:
        limit = self.model.info.context
        if ended:
            return "model"
        if limit is not None and self.prompt + request.number >= limit:
            return "context"
        return "steps" if request.number >= request.steps else ""

    def _chosen(self, request: DecodeStepRequest, choice: Choice, started: float, run: Run) -> DecodeStepView:
        return self._view(
            request,
            (*request.ids, choice.token),
            started,
            self._ending(choice.token in self._ends, request),
            run,
            candidates=choice.candidates,
            stages=choice.stages,
            chosen=choice.chosen,
            drawn=choice.drawn,
            log_probability=choice.log_probability,
        )

    def _view(
        self,
        request: DecodeStepRequest,
        ids: tuple[int, ...],
        started: float,
        ending: Ending,
        run: Run,
        **details: object,
    ) -> DecodeStepView:
        text = self._continuation(ids)
        layers: tuple[CacheLayer, ...] = run.cache_layers() if isinstance(run, CachedRun) else ()
        values: dict[str, object] = {
            "candidates": (),
            "stages": (),
            "chosen": None,
            "drawn": None,
            "beams": (),
            **details,
        }
        return DecodeStepView(
            request=request,
            text=text,
            whole=self._lead + text if self.model.seq2seq else with_more(self.text, text),
            ids=ids,
            ending=ending,
            cache=layers,
            cache_bytes=run.cache_bytes,
            own=tuple(rule.meaning for rule in self._own.rules),
            unapplied=self._own.unapplied,
            prevents_caching=run.prevents_caching if isinstance(run, CachedRun) else None,
            seconds=time.perf_counter() - started,
            **values,  # type: ignore[arg-type]
        )

    def _continuation(self, ids: tuple[int, ...]) -> str:
        """What `ids` say after the prompt, special tokens left out."""
        return written_text(self.model, [*self._given, *ids])[len(self._lead) :]
