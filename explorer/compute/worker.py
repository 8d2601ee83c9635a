"""The thread in which the engine lives: torch is imported, and every model runs, there and nowhere else."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from explorer.compute.mailbox import Mailbox
from explorer.compute.quiet_import import quiet_import
from models.protocol.alignment import AlignmentRequest
from models.protocol.atlas import AtlasRequest
from models.protocol.cell import CellRequest
from models.protocol.comparison import CompareRequest
from models.protocol.decoding import DecodeRowsRequest, DecodeSamplesRequest, DecodeStepRequest
from models.protocol.describing import DescribeRequest
from models.protocol.export import ExportRequest
from models.protocol.head import HeadRequest, RowRequest, TilesRequest
from models.protocol.hub import FetchRequest, LookUpRequest
from models.protocol.loading import DevicesRequest, LoadRequest
from models.protocol.order import ShuffleRequest
from models.protocol.positions import PatchPositionsRequest, PositionsRequest
from models.protocol.prediction import PredictionRequest
from models.protocol.quality import QualityRequest
from models.protocol.recurrent import RecurrentRequest
from models.protocol.request import Failure, Progress, Request, Result
from models.protocol.running import ForwardRequest
from models.protocol.step import StepRequest
from models.protocol.trust import TrustRequest
from models.protocol.variance import VarianceRequest
from models.protocol.work import Cancelled

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.05
"""Reports with the same label come no faster than this: an engine may report every step of a long loop."""

ACTIVITIES: dict[type[Request], str] = {
    LoadRequest: "opening the checkpoint",
    DevicesRequest: "asking which devices there are",
    DescribeRequest: "reading what the checkpoint is",
    LookUpRequest: "asking the hub",
    FetchRequest: "fetching the checkpoint",
    ForwardRequest: "running the model on the text",
    HeadRequest: "computing the weights of the head",
    RowRequest: "computing where the token looks",
    TilesRequest: "computing a part of the map",
    AtlasRequest: "computing the thumbnails of all heads",
    PredictionRequest: "reading what the model predicts",
    CompareRequest: "comparing with the model as it is",
    CellRequest: "computing the arithmetic of the cell",
    VarianceRequest: "measuring the variance",
    PositionsRequest: "reading how the model tells positions apart",
    PatchPositionsRequest: "comparing the positions of patches",
    AlignmentRequest: "reading which words the model looked at",
    RecurrentRequest: "reading the hidden states",
    ShuffleRequest: "running the text in another order",
    TrustRequest: "comparing with the model's own attention",
    ExportRequest: "writing the weights",
    DecodeStepRequest: "choosing a token",
    DecodeSamplesRequest: "drawing a token of each sample",
    DecodeRowsRequest: "computing where the head looked while the text was written",
    QualityRequest: "measuring quality against length",
    StepRequest: "letting the model write a token",
}


class EngineLike(Protocol):
    """What answers requests: `models.engine.engine.Engine`, or anything that behaves like it."""

    def run(
        self,
        request: Request,
        should_stop: Callable[[], bool],
        report: Callable[[str, float | None], None],
    ) -> Result:
        """Answer `request`. Polls `should_stop()` and raises `Cancelled` once it is true; `report(label, fraction)`
        says what it is doing, with the fraction done or None where that is unknown."""


def open_engine(adopted: Sequence[object] = ()) -> EngineLike:
    """The real engine. Imported here, in the worker's thread, because torch takes seconds to import.

    `adopted` are models from `models.adopt`, to be opened by their references.
    """
    with quiet_import():
        from models.engine.engine import Engine

    return Engine(cast("Sequence[Any]", adopted))


class Worker(threading.Thread):
    """Takes requests from `mailbox` until it is closed and hands every answer to `deliver`, called in this thread.

    The engine is made at the first request, which then has a label to show for the seconds that takes.
    A request is answered by one result, a `Failure` if anything went wrong, after any number of `Progress`; one that
    was superseded meanwhile is answered by nothing.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        deliver: Callable[[Result], None],
        engine_factory: Callable[[], EngineLike] = open_engine,
    ) -> None:
        super().__init__(name="engine", daemon=True)
        self._mailbox = mailbox
        self._deliver = deliver
        self._engine_factory = engine_factory

    def run(self) -> None:
        answer: Callable[[Request], Result | None] | None = None
        while (request := self._mailbox.take()) is not None:
            if answer is None:
                self._reporter(request)("Starting the engine", None)
                answer = self._start_engine()
            result = answer(request)
            self._mailbox.done()
            if result is None or self._mailbox.superseded(request):
                continue
            if isinstance(result, Failure) and result.cause and not result.stale:
                log.warning("%s\n%s", result.sentence, result.cause)
            self._deliver(result)

    def stop(self, timeout: float | None = None) -> bool:
        """Call off all work and wait for the thread to end, at most `timeout` seconds. Returns whether it has ended."""
        self._mailbox.close()
        if self.is_alive():
            self.join(timeout)
        return not self.is_alive()

    def _start_engine(self) -> Callable[[Request], Result | None]:
        """The function that answers requests; where the engine does not start, one that says so each time."""
        try:
            engine = self._engine_factory()
        except BaseException as error:  # a panic in Rust (tokenizers) is no Exception, and this thread has to go on
            failure = (_sentence("starting the engine", error), traceback.format_exc())
            return lambda request: Failure(request=request, sentence=failure[0], cause=failure[1])
        return lambda request: self._answer(engine, request)

    def _answer(self, engine: EngineLike, request: Request) -> Result | None:
        """The engine's answer, None for a request that was called off."""
        try:
            return engine.run(request, lambda: self._mailbox.superseded(request), self._reporter(request))
        except BaseException as error:
            # Cancelled by anybody but the mailbox is a fault like any other: somebody waits for the answer.
            if isinstance(error, Cancelled) and self._mailbox.superseded(request):
                return None
            activity = ACTIVITIES.get(type(request), "computing")
            return Failure(request=request, sentence=_sentence(activity, error), cause=traceback.format_exc())

    def _reporter(self, request: Request) -> Callable[[str, float | None], None]:
        last_label, last_time = "", 0.0

        def report(label: str, fraction: float | None = None) -> None:
            nonlocal last_label, last_time
            now = time.monotonic()
            if label == last_label and now - last_time < PROGRESS_SECONDS:
                return
            last_label, last_time = label, now
            if not self._mailbox.superseded(request):
                self._deliver(Progress(request=request, label=label, fraction=fraction))

        return report


def _sentence(activity: str, error: BaseException) -> str:
    return (
        f"Something went wrong while {activity}: {type(error).__name__}. "
        "The session is as it was; details are in the log."
    )
