"""A request, its answer and its function as another package would have them: nothing of the program knows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from attention_models.forward.context import Context
from attention_models.protocol.request import HeadOfRunRequest, Lane, Request, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyRequest(HeadOfRunRequest):
    """How many bits the rows of a head hold. Answered by `EntropyView`."""

    lane: ClassVar[Lane] = Lane("foreign:entropy")
    activity: ClassVar[str] = "measuring the entropy of the head"
    answered_by: ClassVar[str] = "tests.explorer.foreign:answer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EntropyView(Result):
    request: EntropyRequest
    bits: np.ndarray  # (queries,)


def answer(request: EntropyRequest, context: Context) -> EntropyView:
    context.report("Measuring", None)
    weights = context.run(request.run).trace.weights(request.site, request.head).astype(float)
    logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return EntropyView(request=request, bits=-(weights * logs).sum(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockRequest(Request):
    """About no model. Answered by `ClockView`."""

    lane: ClassVar[Lane] = Lane("foreign:clock")
    activity: ClassVar[str] = "counting"
    answered_by: ClassVar[str] = "tests.explorer.foreign:count"
    outlives_model: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClockView(Result):
    request: ClockRequest
    times: int


class Count(list[int]):
    """What is kept from one request to the next."""


def count(request: ClockRequest, context: Context) -> ClockView:
    seen = context.kept.get_or_compute(Count, Count)
    seen.append(request.ticket)
    return ClockView(request=request, times=len(seen))
