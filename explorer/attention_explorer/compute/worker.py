"""The thread in which the engine lives: torch is imported, and every model runs, there and nowhere else."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from attention_explorer.compute.mailbox import Mailbox
from attention_explorer.compute.quiet_import import quiet_import
from attention_models.protocol.request import Cancelled, Failure, Progress, Request, Result

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.05
"""Reports with the same label come no faster than this: an engine may report every step of a long loop."""


class EngineLike(Protocol):
    """What answers requests: `attention_models.engine.engine.Engine`, or anything that behaves like it."""

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

    `adopted` are models from `ax.adopt`, to be opened by their references.
    """
    with quiet_import():
        from attention_models.engine.engine import Engine

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
            return Failure(request=request, sentence=_sentence(request.activity, error), cause=traceback.format_exc())

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
