"""The last run of the open model, and the answers to everything that is asked about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import singledispatchmethod

import numpy as np

from models.attention.atlas import IncrementalAtlas
from models.attention.pooling import Pooling
from models.attention.tiles import HeadTiles
from models.decoding.next_token import write_next
from models.forward.model import Model
from models.forward.predictions import predict
from models.forward.recurrent_model import RecurrentModel
from models.forward.run import run
from models.forward.trace import Trace
from models.forward.vision import VisionModel
from models.protocol.alignment import AlignmentRequest, AlignmentView
from models.protocol.atlas import AtlasRequest, AtlasView
from models.protocol.cell import CellRequest
from models.protocol.chat import Prompt
from models.protocol.comparison import CompareRequest
from models.protocol.errors import InputError
from models.protocol.export import Exported, ExportRequest
from models.protocol.head import HeadRequest, HeadView, RowRequest, RowView, TilesRequest, TilesView
from models.protocol.order import ShuffleRequest
from models.protocol.positions import PatchPositionsRequest, PositionsRequest
from models.protocol.prediction import PredictionRequest, PredictionView
from models.protocol.recurrent import RecurrentRequest
from models.protocol.request import Request, Result
from models.protocol.step import Stepped, StepRequest
from models.protocol.trust import EAGER, TrustReport, TrustRequest
from models.protocol.values import Tile
from models.protocol.work import Cancelled, Report, ShouldStop
from models.trust.check import compare_with_eager
from models.trust.pictures import picture_difference
from models.trust.recurrent_formulas import compare_with_formulas
from models.views.alignment import described, likelihoods, mean_weights
from models.views.cell import cell_view
from models.views.comparison import LossInParts, compare
from models.views.export import save_weights
from models.views.long_comparison import LongComparison
from models.views.order import shuffle_view
from models.views.patch_positions import patch_positions_view
from models.views.positions import positions_view
from models.views.recurrent import recurrent_view

# How many weights one answer computes at most, so that a request in another lane is not kept waiting.
WORK_PER_ANSWER = {"cpu": 1 << 25}
WORK_PER_ANSWER_ON_DEVICE = 1 << 31


class CurrentRun:
    """A trace, what was run to get it, and what its views have worked out so far."""

    def __init__(
        self,
        model: Model,
        trace: Trace,
        text: Prompt,
        written: str | list[int] | None,
        before: CurrentRun | None = None,
    ) -> None:
        """`written` is what an encoder-decoder model's decoder was given; `before` is the run that this one follows."""
        self.model = model
        self.trace = trace
        self.text = text
        self.written = written
        same = before is not None and before.model is model and (before.text, before.written) == (text, written)
        self._untouched: Trace | None = None  # once asked for
        self._loss_before: LossInParts | None = None  # of a long text, likewise
        if before is not None and same:
            was_compared = before._changes is not None and not before.trace.interventions
            self._untouched = before.trace if was_compared else before._untouched
            self._loss_before = before._loss_before
        self._changes: LongComparison | None = None  # of a long text
        self._maps: dict[tuple[int, int], HeadTiles] = {}  # by site and head: two floats a row
        self._atlas_key: tuple[int, int, Pooling] = (0, 0, "max")
        self._atlas_parts: IncrementalAtlas | None = None  # of that run, size and pooling

    def untouched(self, should_stop: ShouldStop) -> Trace:
        """The same text run without interventions."""
        if not self.trace.interventions:
            return self.trace
        if self._untouched is None:
            self._untouched = run(self.model, self.text, target=self.written, should_stop=should_stop)
        return self._untouched

    @contextmanager
    def _begun_anew_if_it_fails(self) -> Iterator[None]:
        """Around what is computed in parts: one that failed, for want of memory say, would pass for the last."""
        try:
            yield
        except Cancelled:  # between two parts
            raise
        except BaseException:
            self._atlas_parts = self._changes = self._loss_before = None
            raise

    @singledispatchmethod
    def answer(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        """As `Engine.run`.

        Raises:
            TypeError: it is no request about a run.
        """
        raise TypeError(f"The engine has no answer to a {type(request).__name__}.")

    @answer.register
    def _head(self, request: HeadRequest, should_stop: ShouldStop, report: Report) -> Result:
        masked = self.trace.masked(request.site, request.head)
        return HeadView(
            request=request,
            run=request.run,
            site=request.site,
            head=request.head,
            weights=_frozen(self.trace.weights(request.site, request.head)),
            masked=None if masked is None else _frozen(masked),
        )

    @answer.register
    def _row(self, request: RowRequest, should_stop: ShouldStop, report: Report) -> Result:
        masked = self.trace.masked(request.site, request.head, [request.query])
        return RowView(
            request=request,
            run=request.run,
            site=request.site,
            head=request.head,
            query=request.query,
            weights=_frozen(self.trace.weights(request.site, request.head, [request.query])[0]),
            masked=None if masked is None else _frozen(masked[0]),
        )

    @answer.register
    def _tiles(self, request: TilesRequest, should_stop: ShouldStop, report: Report) -> Result:
        site, pooling = self.trace.index(request.site), _pooling(request.pooling)
        if (site, request.head) not in self._maps:
            self._maps[site, request.head] = HeadTiles(self.trace.at(site, request.head), request.head)
        head = self._maps[site, request.head]
        found: list[tuple[Tile, np.ndarray]] = []
        left = _moment(self.trace)
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

    @answer.register
    def _atlas(self, request: AtlasRequest, should_stop: ShouldStop, report: Report) -> Result:
        started = time.perf_counter()
        key = (request.run, request.size, _pooling(request.pooling))
        if self._atlas_parts is None or self._atlas_key != key:
            self._atlas_key, self._atlas_parts = key, IncrementalAtlas(self.trace.inputs, request.size, key[2])
        report("Drawing all heads", self._atlas_parts.done or None)
        with self._begun_anew_if_it_fails():
            self._atlas_parts.advance(_moment(self.trace), should_stop)
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

    @answer.register
    def _predict(self, request: PredictionRequest, should_stop: ShouldStop, report: Report) -> Result:
        predictions = predict(self.model, self.trace, request.positions, request.top)
        return PredictionView(request=request, run=request.run, predictions=predictions)

    @answer.register
    def _trust(self, request: TrustRequest, should_stop: ShouldStop, report: Report) -> Result:
        started = time.perf_counter()
        apart: float | None = None
        if isinstance(self.model, RecurrentModel):
            report("Comparing with the papers' formulas", None)
            found = compare_with_formulas(self.model, self.trace)
        else:
            report(f"Comparing with {EAGER}", None)
            trace = self.untouched(should_stop)  # edits are meant to make a difference
            encoded = self.model.encode(self.text, self.written)
            found = compare_with_eager(self.model, encoded, trace, should_stop)
            if isinstance(self.model, VisionModel) and isinstance(self.text, str):
                apart = picture_difference(self.model, self.text, encoded.inputs["pixel_values"])
        return TrustReport(
            request=request,
            run=request.run,
            logit_difference=found.logit_difference,
            weight_difference=found.weight_difference,
            tolerance=found.tolerance,
            logit_tolerance=found.logit_tolerance,
            rounding=found.rounding,
            end_to_end=found.end_to_end,
            rows=found.rows,
            against=found.against,
            input_difference=apart,
            seconds=time.perf_counter() - started,
        )

    @answer.register
    def _step(self, request: StepRequest, should_stop: ShouldStop, report: Report) -> Result:
        written = write_next(self.model, self.trace, self.text, self.written)
        return Stepped(
            request=request,
            run=request.run,
            text=written.text,
            chosen=written.chosen,
            ended=written.ended,
            target=written.target,
        )

    @answer.register
    def _export(self, request: ExportRequest, should_stop: ShouldStop, report: Report) -> Result:
        report("Writing the weights", 0.0)
        size = save_weights(
            self.trace, request.path, should_stop, lambda fraction: report("Writing the weights", fraction)
        )
        return Exported(request=request, run=request.run, path=request.path, size=size)

    @answer.register
    def _compare(self, request: CompareRequest, should_stop: ShouldStop, report: Report) -> Result:
        report("Comparing with the model as it is", request.have or None)
        if not self.trace.sites[self.trace.index(request.site)].is_long:
            return compare(request, self.model, self.untouched(should_stop), self.trace)
        if self._changes is None:
            self._changes = LongComparison(self.model, self.untouched(should_stop), self.trace, self._loss_before)
            self._loss_before = self._changes.loss_before
        with self._begun_anew_if_it_fails():
            return self._changes.answer(request, _moment(self.trace), should_stop)

    @answer.register
    def _cell(self, request: CellRequest, should_stop: ShouldStop, report: Report) -> Result:
        if self.model.info.weights_only:
            raise InputError(self.model.info.weights_only)
        return cell_view(request, self.model, self.trace)

    @answer.register
    def _positions(self, request: PositionsRequest, should_stop: ShouldStop, report: Report) -> Result:
        return positions_view(request, self.model, self.trace)

    @answer.register
    def _patch_positions(self, request: PatchPositionsRequest, should_stop: ShouldStop, report: Report) -> Result:
        return patch_positions_view(request, self.model, self.trace)

    @answer.register
    def _shuffle(self, request: ShuffleRequest, should_stop: ShouldStop, report: Report) -> Result:
        report("Running the text in another order", None)
        return shuffle_view(request, self.model, self.trace, self.model.text_read(self.text), should_stop)

    @answer.register
    def _alignment(self, request: AlignmentRequest, should_stop: ShouldStop, report: Report) -> Result:
        return AlignmentView(
            request=request,
            run=request.run,
            site=request.site,
            head=request.head,
            weights=_frozen(mean_weights(self.trace, request.site, request.head)),
            likelihoods=_frozen(likelihoods(self.trace)),
            description=described(self.trace, request.site, request.head),
        )

    @answer.register
    def _recurrent(self, request: RecurrentRequest, should_stop: ShouldStop, report: Report) -> Result:
        if not isinstance(self.model, RecurrentModel):
            raise InputError(f"{self.model.info.name} has no recurrent states: it is a transformer.")
        return recurrent_view(request, self.model, self.trace)


def _pooling(name: str) -> Pooling:
    return "mean" if name == "mean" else "max"


def _moment(trace: Trace) -> int:
    """How many weights may be computed before other requests are looked at."""
    device = trace.inputs[0].query.device.type if trace.inputs else "cpu"
    return WORK_PER_ANSWER.get(device, WORK_PER_ANSWER_ON_DEVICE)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
