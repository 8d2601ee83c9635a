"""Answers requests, one at a time, for one open model. Runs in a worker thread, but knows nothing of threads."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatchmethod

import numpy as np
from transformers.utils import logging as transformers_logging

from models import devices
from models.adopted import PREFIX
from models.alignment import described, mean_weights
from models.atlas import AtlasInParts
from models.capture import run
from models.cell import cell_view
from models.chat import Prompt
from models.checkpoints import open_checkpoint
from models.choosing import end_ids
from models.comparison import compare
from models.decode_requests import DecodeRowsRequest, DecodeSamplesRequest, DecodeStepRequest
from models.decoding import decode, written_text
from models.describe_requests import DescribeRequest
from models.description import description_of
from models.errors import CheckpointError, ExplorerError, InputError, NoRoomError
from models.experiments import head_scores, measure
from models.export import save_weights
from models.model import Model
from models.order import shuffle_view
from models.player import Player
from models.pooling import Pooling
from models.positions import positions_view
from models.predictions import predict
from models.quality import Measurement
from models.quality_requests import QualityRequest
from models.requests import (
    AlignmentRequest,
    AtlasRequest,
    Cancelled,
    CellRequest,
    CompareRequest,
    DevicesRequest,
    ExportRequest,
    ForwardRequest,
    HeadRequest,
    LoadRequest,
    PositionsRequest,
    PredictionRequest,
    RecurrentRequest,
    Request,
    RowRequest,
    ShuffleRequest,
    StepRequest,
    TilesRequest,
    TrustRequest,
    VarianceRequest,
)
from models.results import (
    AlignmentView,
    AtlasView,
    DevicesView,
    Exported,
    Failure,
    HeadView,
    Loaded,
    PredictionView,
    Ran,
    Result,
    RowView,
    Stepped,
    TilesView,
    TrustReport,
    VarianceView,
)
from models.textbook.checkpoint import RecurrentModel
from models.textbook.formulas import compare_with_formulas
from models.textbook.views import recurrent_view
from models.tiles import HeadTiles
from models.trace import Trace
from models.trust import compare_with_eager
from models.values import AUTO, Experiment, Placement, Tile
from models.writing import write_next

# How an encoder-decoder model writes where nothing was typed for it: a sentence, by the search that its card names.
BEAMS = 4
MOST_WRITTEN = 96

# How many weights one answer computes at most, so that a request in another lane is not kept waiting.
A_MOMENT = {"cpu": 1 << 25}
A_MOMENT_ON_A_DEVICE = 1 << 31

ShouldStop = Callable[[], bool]
Report = Callable[[str, float | None], None]


class StaleRunError(Exception):
    """Asked about a run that is no longer held."""


class Engine:
    """Holds the open model and its last run. A checkpoint, a text or a shortage of memory that fails is a `Failure`.

    A load that fails leaves the open model as it was; so does a text that the model can not take.
    """

    def __init__(self, adopted: Sequence[Model] = ()) -> None:
        """`adopted` are models that were handed over; they are opened by the reference that they have."""
        # both would write to a standard error that a windowed build does not have
        transformers_logging.disable_progress_bar()
        transformers_logging.set_verbosity_error()
        devices.set_threads()
        self._adopted = {model.info.reference: model for model in adopted}
        self._model: Model | None = None
        self._trace: Trace | None = None
        self._untouched: Trace | None = None  # the same text without interventions, once somebody asked for it
        self._experiment: tuple[tuple[int, int, float, int], Experiment] | None = None  # the last one, by its numbers
        self._maps: dict[tuple[int, int], HeadTiles] = {}  # of the last run, by site and head: two floats a row
        self._atlas_key: tuple[int, int, Pooling] = (0, 0, "max")
        self._atlas_parts: AtlasInParts | None = None  # of that run, size and pooling
        self._text: Prompt = ""
        self._written: str | list[int] | None = None  # what the decoder of an encoder-decoder model was given
        self._player: Player | None = None
        self._measurement: Measurement | None = None  # of quality against length; it has models of its own
        self._run = 0  # the forward request's ticket: what later requests call this run

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
        except ExplorerError as error:
            no_room = self._placement(request) if isinstance(error, NoRoomError) else None
            return Failure(request=request, sentence=str(error), cause=_cause(error), no_room=no_room)
        except (RuntimeError, MemoryError) as error:
            if not devices.is_out_of_memory(error):
                raise
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
        return "There is not enough memory for this. Shorten the text, or choose a smaller number format or checkpoint."

    @singledispatchmethod
    def _answer(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        raise TypeError(f"The engine has no answer to a {type(request).__name__}.")

    @_answer.register
    def _load(self, request: LoadRequest, should_stop: ShouldStop, report: Report) -> Result:
        started = time.perf_counter()
        report(f"Opening {request.reference}", None)
        model = self._opened(request)
        if should_stop():
            raise Cancelled
        self._model, self._trace, self._untouched, self._run = model, None, None, 0
        self._forget_pictures()
        self._player = Player(model)
        return Loaded(
            request=request,
            info=model.info,
            device=devices.placed(model.module),
            dtype=_dtype_name(model),
            eval_mode=not any(module.training for module in model.module.modules()),
            seconds=time.perf_counter() - started,
            placement=_where(model, request),
        )

    def _opened(self, request: LoadRequest) -> Model:
        reference, placement = request.reference, request.placement
        if reference in self._adopted:
            return self._adopted[reference]
        if reference.startswith(PREFIX):
            raise CheckpointError(
                f"{reference.removeprefix(PREFIX)} was an object of a Python program, and is not here. "
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
        if (self._text, self._written) != (text, target):
            self._untouched = None
        self._trace, self._text, self._written, self._run = trace, text, target, request.ticket
        self._forget_pictures()
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
            seen=self._model.encode(text).picture if self._model.info.family == "vision" else None,
            source=trace.source,
            written=target if isinstance(target, str) else written_text(self._model, target) if target else "",
        )

    @_answer.register
    def _head(self, request: HeadRequest, should_stop: ShouldStop, report: Report) -> Result:
        _, trace = self._held(request.run)
        masked = trace.masked(request.site, request.head)
        return HeadView(
            request=request,
            run=request.run,
            site=request.site,
            head=request.head,
            weights=_frozen(trace.weights(request.site, request.head)),
            masked=None if masked is None else _frozen(masked),
        )

    @_answer.register
    def _row(self, request: RowRequest, should_stop: ShouldStop, report: Report) -> Result:
        _, trace = self._held(request.run)
        masked = trace.masked(request.site, request.head, [request.query])
        return RowView(
            request=request,
            run=request.run,
            site=request.site,
            head=request.head,
            query=request.query,
            weights=_frozen(trace.weights(request.site, request.head, [request.query])[0]),
            masked=None if masked is None else _frozen(masked[0]),
        )

    @_answer.register
    def _tiles(self, request: TilesRequest, should_stop: ShouldStop, report: Report) -> Result:
        _, trace = self._held(request.run)
        site, pooling = trace.index(request.site), _pooling(request.pooling)
        if (site, request.head) not in self._maps:
            self._maps[site, request.head] = HeadTiles(trace.at(site, request.head), request.head)
        head = self._maps[site, request.head]
        found: list[tuple[Tile, np.ndarray]] = []
        left = _moment(trace)
        for tile in request.tiles:
            left -= head.work(tile)
            if found and left < 0:
                break
            found.append((tile, _frozen(head.tile(tile, pooling, should_stop, request.scale_rows))))
        return TilesView(
            request=request,
            run=request.run,
            site=request.site,
            head=request.head,
            pooling=pooling,
            scale_rows=request.scale_rows,
            tiles=tuple(found),
        )

    @_answer.register
    def _atlas(self, request: AtlasRequest, should_stop: ShouldStop, report: Report) -> Result:
        _, trace = self._held(request.run)
        started = time.perf_counter()
        key = (request.run, request.size, _pooling(request.pooling))
        if self._atlas_parts is None or self._atlas_key != key:
            self._atlas_key, self._atlas_parts = key, AtlasInParts(trace.inputs, request.size, key[2])
        report("Drawing all heads", self._atlas_parts.done or None)
        self._atlas_parts.advance(_moment(trace), should_stop)
        atlas = self._atlas_parts.picture()
        return AtlasView(
            request=request,
            run=request.run,
            images=_frozen(atlas.images),
            mean=_frozen(atlas.mean),
            row_error=atlas.row_error,
            cell=atlas.cell,
            pooling=request.pooling,
            seconds=time.perf_counter() - started,
            done=atlas.done,
        )

    @_answer.register
    def _predict(self, request: PredictionRequest, should_stop: ShouldStop, report: Report) -> Result:
        model, trace = self._held(request.run)
        predictions = predict(model, trace, request.positions, request.top)
        return PredictionView(request=request, run=request.run, predictions=predictions)

    @_answer.register
    def _trust(self, request: TrustRequest, should_stop: ShouldStop, report: Report) -> Result:
        model, trace = self._held(request.run)
        started = time.perf_counter()
        if isinstance(model, RecurrentModel):
            report("Comparing with the papers' formulas", None)
            found = compare_with_formulas(model, trace)
        else:
            report("Comparing with the model's own eager attention", None)
            trace = self._without_interventions(model, trace, should_stop)  # edits are meant to make a difference
            found = compare_with_eager(model, model.encode(self._text, self._written), trace, should_stop)
        return TrustReport(
            request=request,
            run=request.run,
            logit_difference=found.logit_difference,
            weight_difference=found.weight_difference,
            tolerance=found.tolerance,
            rows=found.rows,
            against=found.against,
            seconds=time.perf_counter() - started,
        )

    @_answer.register
    def _step(self, request: StepRequest, should_stop: ShouldStop, report: Report) -> Result:
        model, trace = self._held(request.run)
        written = write_next(model, trace, self._text, self._written)
        return Stepped(
            request=request,
            run=request.run,
            text=written.text,
            chosen=written.chosen,
            ended=written.ended,
            target=written.target,
        )

    @_answer.register
    def _export(self, request: ExportRequest, should_stop: ShouldStop, report: Report) -> Result:
        _, trace = self._held(request.run)
        report("Writing the weights", 0.0)
        size = save_weights(trace, request.path, should_stop, lambda fraction: report("Writing the weights", fraction))
        return Exported(request=request, run=request.run, path=request.path, size=size)

    @_answer.register
    def _compare(self, request: CompareRequest, should_stop: ShouldStop, report: Report) -> Result:
        model, trace = self._held(request.run)
        report("Comparing with the model as it is", None)
        untouched = self._without_interventions(model, trace, should_stop)
        return compare(request, model, untouched, trace)

    @_answer.register
    def _cell(self, request: CellRequest, should_stop: ShouldStop, report: Report) -> Result:
        model, trace = self._held(request.run)
        if model.info.weights_only:
            raise InputError(model.info.weights_only)
        return cell_view(request, model, trace)

    @_answer.register
    def _variance(self, request: VarianceRequest, should_stop: ShouldStop, report: Report) -> Result:
        if request.refusal():
            raise InputError(request.refusal())
        head = None
        if request.run is not None and request.site is not None:
            model, trace = self._held(request.run)
            # a recurrent model's scores are no products of a query and a key
            unseen = model.info.textbook or model.info.weights_only
            head = None if unseen else head_scores(trace, request.site, request.head)
        numbers = (request.batch, request.tokens, request.deviation, request.seed)
        if self._experiment is None or self._experiment[0] != numbers:  # another head needs no other draw
            self._experiment = (numbers, measure(*numbers, should_stop, report))
        return VarianceView(request=request, run=request.run, experiment=self._experiment[1], head=head)

    @_answer.register
    def _positions(self, request: PositionsRequest, should_stop: ShouldStop, report: Report) -> Result:
        model, trace = self._held(request.run)
        return positions_view(request, model, trace)

    @_answer.register
    def _shuffle(self, request: ShuffleRequest, should_stop: ShouldStop, report: Report) -> Result:
        model, trace = self._held(request.run)
        report("Running the text in another order", None)
        return shuffle_view(request, model, trace, model.text_read(self._text), should_stop)

    @_answer.register
    def _alignment(self, request: AlignmentRequest, should_stop: ShouldStop, report: Report) -> Result:
        _, trace = self._held(request.run)
        return AlignmentView(
            request=request,
            run=request.run,
            site=request.site,
            head=request.head,
            weights=_frozen(mean_weights(trace, request.site, request.head)),
            description=described(trace, request.site, request.head),
        )

    @_answer.register
    def _recurrent(self, request: RecurrentRequest, should_stop: ShouldStop, report: Report) -> Result:
        model, trace = self._held(request.run)
        if not isinstance(model, RecurrentModel):
            raise InputError(f"{model.info.name} has no recurrent states: it is a transformer.")
        return recurrent_view(request, model, trace)

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

    def _without_interventions(self, model: Model, trace: Trace, should_stop: ShouldStop) -> Trace:
        if not trace.interventions:
            return trace
        if self._untouched is None:
            self._untouched = run(model, self._text, target=self._written, should_stop=should_stop)
        return self._untouched

    def _forget_pictures(self) -> None:
        self._maps.clear()
        self._atlas_parts = None

    def _held(self, run_ticket: int) -> tuple[Model, Trace]:
        if self._model is None or self._trace is None or run_ticket != self._run:
            raise StaleRunError
        return self._model, self._trace


def _where(model: Model, request: LoadRequest | None = None) -> Placement:
    """Where `model` runs; `request` asked for it and knows whether it is spread."""
    spread = request is not None and request.placement.device == AUTO and not model.info.textbook
    return Placement(AUTO if spread else str(model.device), _dtype_name(model))


def _dtype_name(model: Model) -> str:
    return str(model.dtype).removeprefix("torch.")


def _pooling(name: str) -> Pooling:
    return "mean" if name == "mean" else "max"


def _moment(trace: Trace) -> int:
    """How many weights may be computed before other requests are looked at."""
    device = trace.inputs[0].query.device.type if trace.inputs else "cpu"
    return A_MOMENT.get(device, A_MOMENT_ON_A_DEVICE)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _cause(error: BaseException) -> str:
    """For the log: what lies behind the error. What a person did wrong has nothing behind it."""
    return "".join(traceback.format_exception(error)) if error.__cause__ is not None else ""
