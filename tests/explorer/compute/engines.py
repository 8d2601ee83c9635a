"""Engines without a model, for tests of what stands between the window and the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import numpy as np

from attention_models.protocol.decoding import DecodeStepRequest
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Cancelled, Request, Result
from attention_models.protocol.running import ForwardRequest
from attention_models.protocol.trust import TrustRequest
from tests.explorer.session import answers

ShouldStop = Callable[[], bool]
Report = Callable[[str, float | None], None]


class QuickEngine:
    """Answers everything at once; a head's weights are filled with its request's ticket."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        match request:
            case LoadRequest():
                return replace(
                    answers.loaded(request.reference, f"The example of {request.reference}"), request=request
                )
            case ForwardRequest():
                self.runs += 1
                return replace(answers.ran(self.runs, request.inputs.prompt), request=request)
            case TrustRequest():
                return replace(answers.trust_report(request.run), request=request)
            case DecodeStepRequest():
                return replace(answers.stepped(), request=request)
            case HeadRequest():
                weights = np.full((16, 16), request.ticket, np.float32)
                weights.setflags(write=False)
                return HeadView(
                    request=request,
                    weights=weights,
                    masked=None,
                )
        raise NotImplementedError(type(request).__name__)


class GatedEngine(QuickEngine):
    """Works on a request until the test opens the gate for it, and gives up when told to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[Request] = []
        self.cancelled: list[Request] = []
        self._gate = threading.Semaphore(0)
        self._entered = threading.Semaphore(0)

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        self.started.append(request)
        self._entered.release()
        while not self._gate.acquire(timeout=0.002):
            if should_stop():
                self._give_up(request)
        if should_stop():
            self._gate.release()  # it was opened for the request that took this one's place
            self._give_up(request)
        return super().run(request, should_stop, report)

    def wait_until_working(self) -> None:
        """Return once the engine has begun one more request."""
        assert self._entered.acquire(timeout=10)

    def open_gate(self) -> None:
        """Let one request end."""
        self._gate.release()

    def _give_up(self, request: Request) -> NoReturn:
        self.cancelled.append(request)
        raise Cancelled
