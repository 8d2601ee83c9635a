"""Writes one step a request for the decoding player, and goes back and sideways in its key/value cache."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from models import attention
from models.beam import BeamSearch
from models.capture import run as run_whole
from models.decode_requests import (
    Beam,
    CacheLayer,
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeStepRequest,
    DecodeStepView,
    Ending,
)
from models.decoding import beam_step, choose, end_ids, room, written_text
from models.errors import InputError
from models.filling import Filling
from models.filters import filters
from models.model import Model
from models.requests import Cancelled
from models.values import SiteRef
from models.writer import CachedRun, Run, start_run

ShouldStop = Callable[[], bool]


class Player:
    """Answers the steps of one open model. What it keeps of the last text only saves time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._writing: Writing | None = None
        self._filling: Filling | None = None

    def step(self, request: DecodeStepRequest, should_stop: ShouldStop) -> DecodeStepView:
        """Choose one more token.

        Raises:
            InputError: the text is empty or too long, the context is full, or the model does not write; a token that
                is not in the vocabulary.
        """
        self._check((*request.ids, request.forced or 0))
        if self.model.info.family == "masked":
            return self._filling_of(request.text).step(request, should_stop)
        return self._writing_of(request.text, request.target).step(request, should_stop)

    def rows(self, request: DecodeRowsRequest, should_stop: ShouldStop) -> DecodeRowsView:
        """Where one head looked in the steps so far.

        Raises:
            IndexError: no such site or head.
            InputError: a token that is not in the vocabulary.
        """
        self._check(request.ids)
        if self.model.info.family == "masked":
            return self._filling_of(request.text).rows(request, should_stop)
        return self._writing_of(request.text, request.target).rows(request, should_stop)

    def _check(self, ids: tuple[int, ...]) -> None:
        """Tokens may come from a session file."""
        vocabulary = self.model.info.vocabulary
        stray = next((id_ for id_ in ids if not 0 <= id_ < vocabulary), None)
        if stray is not None:
            raise InputError(
                f"This text was written with token {stray:,}, and the vocabulary of {self.model.info.name} ends at "
                f"{vocabulary - 1:,}. Delete this branch, or open the checkpoint that wrote it."
            )

    def _writing_of(self, text: str, target: str | None) -> Writing:
        if self._writing is None or (self._writing.text, self._writing.target) != (text, target):
            self._writing = Writing(self.model, text, target)
        return self._writing

    def _filling_of(self, text: str) -> Filling:
        if self._filling is None or self._filling.text != text:
            self._filling = Filling(self.model, text)
        return self._filling


class Writing:
    """One prompt and what is written after it, from left to right.

    Raises:
        InputError: the text is empty or too long, or the model does not write.
    """

    def __init__(self, model: Model, text: str, target: str | None) -> None:
        self.model, self.text, self.target = model, text, target
        self._encoded = model.encode(text, target) if model.seq2seq else model.encode(text)
        self._run: Run = start_run(model, self._encoded)
        self.prompt = self._run.prompt
        self._ends = end_ids(model)
        self._head: tuple[SiteRef, int] | None = None
        self._rows: list[np.ndarray] = []  # of `_head`, one for each token that ran: (keys at that step,)
        self._beams: _Search | None = None

    def step(self, request: DecodeStepRequest, should_stop: ShouldStop) -> DecodeStepView:
        limit = self.model.info.context
        if limit is not None and self.prompt + request.number > limit:
            raise InputError(
                f"The context is full: {self.model.info.name} takes {limit:,} tokens, and prompt and written text have "
                "them all. Go back, or shorten the text."
            )
        if request.settings.strategy == "beam":
            return self._beam(request, should_stop)
        started = time.perf_counter()
        self._go_to(request.ids, should_stop)
        run = self._run
        logits = run.logits()
        self._keep_rows(request)
        choice = choose(self.model, logits, run.ids, request.settings, request.number, request.top, request.forced)
        ids = (*request.ids, choice.token)
        return self._view(
            request,
            ids,
            started,
            self._ending(choice.token in self._ends, request),
            run,
            offers=choice.offers,
            cuts=choice.cuts,
            chosen=choice.offer,
            drawn=choice.drawn,
            log_probability=choice.log_probability,
        )

    def rows(self, request: DecodeRowsRequest, should_stop: ShouldStop) -> DecodeRowsView:
        asked = request.ids[:-1]  # what had been read when the last one was chosen
        queries = self.prompt + len(asked)
        held = self._run.ids[0, self.prompt :].tolist() if len(self._run.ids) == 1 else []
        from_steps = (
            self._head == (request.site, request.head)
            and len(self._rows) >= queries
            and held[: len(asked)] == list(asked)
        )
        if from_steps:
            weights, masked = _triangle(self._rows[:queries])
        else:
            ids = self._run.ids[0, : self.prompt].tolist()
            tokens = [*ids, *asked]
            if self.model.seq2seq:
                trace = run_whole(self.model, self.text, target=tokens[1:] or None, should_stop=should_stop)
            else:
                trace = run_whole(self.model, tokens, should_stop=should_stop)
            weights, masked = trace.weights(request.site, request.head), trace.masked(request.site, request.head)
            if isinstance(self._run, CachedRun) and held == list(asked) and self._run.cached == len(weights):
                self._head, self._rows = (
                    (request.site, request.head),
                    _ending_with_query(request.site, weights, 0),
                )  # later steps go on from here
        words = [token.word for token in self._encoded.tokens]
        words += [self.model.piece_label(id_).lstrip("␣") or "␣" for id_ in asked]
        source = tuple(token.word for token in self._encoded.source)
        weights.flags.writeable = False
        return DecodeRowsView(
            request=request,
            weights=weights,
            masked=masked,
            queries=source if request.site.stack == "encoder" and source else tuple(words),
            keys=source if request.site.stack in ("encoder", "cross") and source else tuple(words),
            prompt=self.prompt,
            from_steps=from_steps,
        )

    # one after the other

    def _go_to(self, ids: tuple[int, ...], should_stop: ShouldStop) -> None:
        """Bring the run to prompt and `ids`, keeping of its cache what serves."""
        run = self._run
        written = tuple(run.ids[0, self.prompt :].tolist()) if len(run.ids) == 1 else None
        if isinstance(run, CachedRun):
            # at least one token runs: the logits after it were not kept
            wanted = (*run.ids[0, : self.prompt].tolist(), *ids)
            same = 0 if written is None else min(self.prompt + _common(written, ids), len(wanted) - 1)
            if written is None or not run.crop(same):
                run, same = self._afresh(), self.prompt
            self._rows = self._rows[: run.cached] if isinstance(run, CachedRun) else []
            for id_ in wanted[same:]:
                run.append(torch.tensor([id_], device=run.ids.device))
            return
        if written is not None and ids[:-1] == written and ids:
            run.append(torch.tensor(ids[-1:], device=run.ids.device))
            return
        run = self._afresh()  # a recurrent state can not be taken back
        for id_ in ids:
            if should_stop():
                raise Cancelled
            run.logits()
            run.append(torch.tensor([id_], device=run.ids.device))

    def _afresh(self) -> Run:
        self._run = start_run(self.model, self._encoded)
        self._rows = []
        return self._run

    def _keep_rows(self, request: DecodeStepRequest) -> None:
        """The rows of the tokens that this step ran, of the head that is looked at."""
        run = self._run
        head = None if request.site is None else (request.site, request.head)
        if not isinstance(run, CachedRun) or run.recorder is None or head is None:
            self._rows = []
            return
        inputs = {site.ref: x for site, x in zip(run.recorder.sites, run.recorder.inputs, strict=True)}
        x = inputs.get(head[0])
        if x is None or head[1] >= x.heads:
            self._rows = []
            return
        earlier = run.cached - x.queries
        if head != self._head or len(self._rows) != earlier:
            self._head, self._rows = head, []
            if earlier:
                return  # the rows before are another head's: `rows` computes them when they are looked at
        rows = attention.weights(x, [head[1]])[0, 0].float().cpu().numpy()  # (new tokens, keys)
        self._rows.extend(_ending_with_query(head[0], rows, earlier))

    # side by side

    def _beam(self, request: DecodeStepRequest, should_stop: ShouldStop) -> DecodeStepView:
        started = time.perf_counter()
        key = (request.settings, request.steps)
        if self._beams is None or self._beams.key != key or self._beams.done >= request.number:
            self._beams = _Search(self.model, start_run(self.model, self._encoded), request)
        looked_at: tuple[Beam, ...] = ()
        while self._beams.done < request.number:
            if should_stop():
                raise Cancelled
            looked_at = self._beams.advance()
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

    def _view(
        self,
        request: DecodeStepRequest,
        ids: tuple[int, ...],
        started: float,
        ending: Ending,
        run: Run,
        **details: object,
    ) -> DecodeStepView:
        prompt = self._encoded.tokens
        before = [token.id for token in prompt]
        lead = written_text(self.model, before)
        everything = written_text(self.model, [*before, *ids])
        layers: tuple[CacheLayer, ...] = run.cache_layers() if isinstance(run, CachedRun) else ()
        values: dict[str, object] = {"offers": (), "cuts": (), "chosen": None, "drawn": None, "beams": (), **details}
        return DecodeStepView(
            request=request,
            number=request.number,
            text=everything[len(lead) :],
            whole=everything if self.model.seq2seq else self.text + everything[len(lead) :],
            ids=ids,
            ending=ending,
            cache=layers,
            cache_bytes=run.cache_bytes,
            seconds=time.perf_counter() - started,
            **values,  # type: ignore[arg-type]
        )


class _Search:
    """A beam search in the middle."""

    def __init__(self, model: Model, run: Run, request: DecodeStepRequest) -> None:
        self.key = (request.settings, request.steps)
        self.model, self.run, self.done = model, run, 0
        self._chain = filters(request.settings)
        settings = request.settings
        steps = room(model, run, request.steps)
        self.search = BeamSearch(settings.beams, settings.length_penalty, end_ids(model), steps)

    @torch.no_grad()
    def advance(self) -> tuple[Beam, ...]:
        if self.search.is_over:
            raise InputError("The beam search is over. Restart to search again.")
        looked_at, _ = beam_step(self.model, self.run, self.search, self._chain)
        self.done += 1
        return looked_at


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """How many of the first elements agree."""
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def _ending_with_query(site: SiteRef, rows: np.ndarray, first: int) -> list[np.ndarray]:
    """Rows (queries, keys) of the queries from place `first` on; in a causal stack without the keys after each."""
    return [row[: first + i + 1] if site.stack == "decoder" else row for i, row in enumerate(rows)]


def _triangle(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of growing length as one array, (queries, keys), and which of its cells no row reached.

    Rows of a causal stack end with the query itself.
    """
    keys = max(len(row) for row in rows)
    whole = np.zeros((len(rows), keys), np.float32)
    masked = np.ones((len(rows), keys), bool)
    for i, row in enumerate(rows):
        whole[i, : len(row)] = row
        masked[i, : len(row)] = False
    return whole, masked if masked.any() else None
