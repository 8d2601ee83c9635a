"""Answers requests, one at a time, for one open model. Runs in a worker thread, but knows nothing of threads."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatchmethod

from transformers.utils import logging as transformers_logging

from models.decoding.choosing import end_ids
from models.decoding.decode import decode, written_text
from models.decoding.player import Player
from models.engine.current_run import CurrentRun
from models.files import devices
from models.files.catalogue import HANDED_OVER
from models.forward.model import Model
from models.forward.run import run
from models.opening.describe import description_of
from models.opening.open import open_checkpoint
from models.protocol.decoding import DecodeRowsRequest, DecodeSamplesRequest, DecodeStepRequest
from models.protocol.describing import DescribeRequest
from models.protocol.errors import NO_MEMORY, CheckpointError, ExplorerError, InputError, NoRoomError
from models.protocol.loading import DevicesRequest, DevicesView, Loaded, LoadRequest
from models.protocol.quality import QualityRequest
from models.protocol.request import Failure, Request, Result
from models.protocol.running import ForwardRequest, Ran
from models.protocol.values import AUTO, Placement
from models.protocol.variance import Experiment, VarianceRequest, VarianceView
from models.protocol.work import Cancelled, Report, ShouldStop
from models.quality.measurement import Measurement
from models.views.variance import head_scores, measure

# How an encoder-decoder model writes where nothing was typed for it: a sentence, by the search that its card names.
BEAMS = 4
MOST_WRITTEN = 96


class StaleRunError(Exception):
    """Asked about a run that is no longer held."""


class Engine:
    """Holds the open model and its last run. A checkpoint, a text or a shortage of memory that fails is a `Failure`.

    A load that fails leaves the open model as it was; so does a text that the model cannot take.
    """

    def __init__(self, adopted: Sequence[Model] = ()) -> None:
        """`adopted` are models that were handed over; they are opened by the reference that they have."""
        # both would write to a standard error that a windowed build does not have
        transformers_logging.disable_progress_bar()
        transformers_logging.set_verbosity_error()
        devices.set_threads()
        self._adopted = {model.info.reference: model for model in adopted}
        self._model: Model | None = None
        self._run: CurrentRun | None = None
        self._ticket = 0  # of the forward request behind it: what later requests call this run
        self._experiment: tuple[tuple[int, int, float, int], Experiment] | None = None  # the last one, by its numbers
        self._player: Player | None = None
        self._measurement: Measurement | None = None  # of quality against length; it has models of its own

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        """Answer `request`.

        Args:
            should_stop: polled between blocks of work; when true, `Cancelled` is raised.
            report: told what is being done and how far it is (0 to 1, or None where that is unknown).

        Raises:
            Cancelled: the work was called off.
            Exception: a fault of the program, or a request for a head or position that the run does not have.
        """
        try:
            return self._answer(request, should_stop, report)
        except Cancelled:
            raise
        except StaleRunError:
            return Failure(request=request, sentence="", stale=True)
        except InputError as error:
            return Failure(
                request=request,
                sentence=str(error),
                cause=_cause(error),
                cut_to=error.cut_to,
                of_target=error.of_target,
            )
        except Exception as error:
            if not devices.is_out_of_memory(error):
                if not isinstance(error, ExplorerError):
                    raise
                no_room = self._placement(request) if isinstance(error, NoRoomError) else None
                return Failure(request=request, sentence=str(error), cause=_cause(error), no_room=no_room)
            cause = "".join(traceback.format_exception(error))
        # here the error is gone, and with it the frames that held what did not fit
        devices.free()
        return Failure(request=request, sentence=self._no_room(request), cause=cause, no_room=self._placement(request))

    def _placement(self, request: Request) -> Placement:
        """Where `request` was worked on."""
        if self._model is not None and not isinstance(request, LoadRequest):
            return _where(self._model)
        asked = request.placement if isinstance(request, LoadRequest) else Placement()
        device, _ = devices.parse(asked)
        return replace(asked, device=AUTO if device is None else str(device))

    def _no_room(self, request: Request) -> str:
        if isinstance(request, LoadRequest):
            device = self._placement(request).device
            where = "over all devices" if device == AUTO else f"on {device}"
            what = f"{request.reference} in {request.placement.dtype} does not fit {where}"
            return f"{what}: there is not enough memory. Close other programs, or choose a smaller number format."
        if isinstance(request, DescribeRequest):
            return "There is not enough memory to say what this is. Close other programs, and choose it again."
        return NO_MEMORY

    @singledispatchmethod
    def _answer(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        ticket = getattr(request, "run", None)
        if not isinstance(ticket, int):
            raise TypeError(f"The engine has no answer to a {type(request).__name__}.")
        return self._held(ticket).answer(request, should_stop, report)

    @_answer.register
    def _load(self, request: LoadRequest, should_stop: ShouldStop, report: Report) -> Result:
        started = time.perf_counter()
        report(f"Opening {request.reference}", None)
        model = self._opened(request)
        if should_stop():
            raise Cancelled
        had_another = self._model is not None
        self._model, self._run, self._ticket = model, None, 0
        self._player = Player(model)
        if had_another:
            devices.free()  # other programs may want what it took
        return Loaded(
            request=request,
            info=model.info,
            device=devices.placed(model.module),
            dtype=model.dtype_name,
            eval_mode=not any(module.training for module in model.module.modules()),
            seconds=time.perf_counter() - started,
            placement=_where(model, request),
        )

    def _opened(self, request: LoadRequest) -> Model:
        reference, placement = request.reference, request.placement
        if reference in self._adopted:
            return self._adopted[reference]
        if reference.startswith(HANDED_OVER):
            raise CheckpointError(
                f"{reference.removeprefix(HANDED_OVER)} was an object of a Python program, and is not here. "
                "Call explorer.open there again, or open a checkpoint."
            )
        return open_checkpoint(reference, device=placement.device, dtype=placement.dtype)

    @_answer.register
    def _devices(self, request: DevicesRequest, should_stop: ShouldStop, report: Report) -> Result:
        return DevicesView(request=request, devices=devices.devices())

    @_answer.register
    def _describe(self, request: DescribeRequest, should_stop: ShouldStop, report: Report) -> Result:
        return description_of(request)

    @_answer.register
    def _forward(self, request: ForwardRequest, should_stop: ShouldStop, report: Report) -> Result:
        if self._model is None:
            raise InputError("No checkpoint is open yet. Open one first.")
        report("Running the model", None)
        started = time.perf_counter()
        target = self._target(self._model, request, should_stop)
        text = request.picture if self._model.info.family == "vision" else request.text
        try:
            trace = run(
                self._model,
                text,
                target=target,
                interventions=request.interventions,
                should_stop=should_stop,
            )
        except ValueError as error:
            raise InputError(str(error)) from error
        self._run, self._ticket = CurrentRun(self._model, trace, text, target, before=self._run), request.ticket
        mask = self._model.info.mask_token
        return Ran(
            request=request,
            run=request.ticket,
            text=request.text,
            tokens=trace.tokens,
            sites=trace.sites,
            masks=tuple(i for i, token in enumerate(trace.tokens) if mask is not None and token.piece == mask),
            seconds=time.perf_counter() - started,
            interventions=request.interventions,
            trace_bytes=trace.nbytes,
            target=request.target,
            picture=request.picture,
            seen=trace.picture,
            source=trace.source,
            written=target if isinstance(target, str) else written_text(self._model, target) if target else "",
        )

    @_answer.register
    def _variance(self, request: VarianceRequest, should_stop: ShouldStop, report: Report) -> Result:
        if request.refusal():
            raise InputError(request.refusal())
        head = None
        if request.run is not None and request.site is not None:
            held = self._held(request.run)
            # a recurrent model's scores are no products of a query and a key
            unseen = held.model.info.textbook or held.model.info.weights_only
            head = None if unseen else head_scores(held.trace, request.site, request.head)
        numbers = (request.batch, request.tokens, request.deviation, request.seed)
        if self._experiment is None or self._experiment[0] != numbers:  # another head needs no other draw
            self._experiment = (numbers, measure(*numbers, should_stop, report))
        return VarianceView(request=request, run=request.run, experiment=self._experiment[1], head=head)

    @_answer.register
    def _decode_step(self, request: DecodeStepRequest, should_stop: ShouldStop, report: Report) -> Result:
        if self._player is None:
            raise StaleRunError
        return self._player.step(request, should_stop)

    @_answer.register
    def _decode_samples(self, request: DecodeSamplesRequest, should_stop: ShouldStop, report: Report) -> Result:
        if self._player is None:
            raise StaleRunError
        return self._player.samples(request, should_stop)

    @_answer.register
    def _decode_rows(self, request: DecodeRowsRequest, should_stop: ShouldStop, report: Report) -> Result:
        if self._player is None:
            raise StaleRunError
        return self._player.rows(request, should_stop)

    @_answer.register
    def _quality(self, request: QualityRequest, should_stop: ShouldStop, report: Report) -> Result:
        measurement = self._measurement
        if request.stop:
            self._measurement = None
            if measurement is None:
                raise StaleRunError
            return measurement.view(request)
        if measurement is None or not measurement.belongs_to(request):
            if request.done:
                raise StaleRunError
            self._measurement = measurement = None  # its models need not be held beside the new ones
            self._measurement = measurement = Measurement(request, should_stop, report)
        if request.done >= measurement.done:  # else the last answer did not reach the window
            measurement.advance(should_stop)
        return measurement.view(request)

    @staticmethod
    def _target(model: Model, request: ForwardRequest, should_stop: ShouldStop) -> str | list[int] | None:
        """What the decoder is given: nothing (one stack), the person's words, or the model's own by beam search.

        It writes as it is, also when interventions are on, so that edited runs are of the same words.
        """
        if not model.seq2seq or request.target is not None:
            return request.target if model.seq2seq else None
        ids: tuple[int, ...] = ()
        for step in decode(model, request.text, MOST_WRITTEN, strategy="beam", beams=BEAMS, should_stop=should_stop):
            ids = step.ids
        return list(ids[:-1] if ids and ids[-1] in end_ids(model) else ids)

    def _held(self, ticket: int) -> CurrentRun:
        if self._run is None or ticket != self._ticket:
            raise StaleRunError
        return self._run


def _where(model: Model, request: LoadRequest | None = None) -> Placement:
    """Where `model` runs; `request` asked for it and knows whether it is spread, unless others have put it there."""
    spread = request is not None and request.placement.device == AUTO and not model.info.textbook
    if model.info.borrowed:
        spread = devices.is_spread(model.module)
    return Placement(AUTO if spread else str(model.device), model.dtype_name)


def _cause(error: BaseException) -> str:
    """For the log: what lies behind the error. What a person did wrong has nothing behind it."""
    return "".join(traceback.format_exception(error)) if error.__cause__ is not None else ""
