"""Puts together what is said of a checkpoint before it is opened."""

from __future__ import annotations

from collections.abc import Callable

from attention_models.files.memory import DTYPES, text_bytes, weight_bytes
from attention_models.forward.context import Context
from attention_models.opening.capabilities import capabilities
from attention_models.opening.checkpoint_inspector import TRIED, CheckpointInspector
from attention_models.opening.inspection import room
from attention_models.opening.trial import TrialRequest, Verdict, judge
from attention_models.opening.trial_helper import THE_PROCESS
from attention_models.opening.trial_process import verdict_elsewhere, verdict_on
from attention_models.protocol.describing import Described, DescribeRequest
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.values import CheckpointInfo
from attention_models.protocol.work import ShouldStop

UNBOUNDED = 512
"""Tokens that a text is taken to have where a model takes any number."""


def answer(request: DescribeRequest, context: Context) -> Described:
    """Who opens it right after need not have it tried again."""
    return _tried(request, verdict_on, context.should_stop)


def described_elsewhere(request: DescribeRequest, should_stop: ShouldStop) -> Described:
    """As `answer`, for another thread than the one that runs models: nothing is read in it.

    Raises:
        CheckpointError: it takes too much to read.
        Cancelled: `should_stop` said so.
    """
    return _tried(request, verdict_elsewhere, should_stop)


def _tried(
    request: DescribeRequest, verdict: Callable[[TrialRequest, ShouldStop], Verdict], should_stop: ShouldStop
) -> Described:
    examination = CheckpointInspector(
        request.reference, request.listing
    )  # of the files as they are before they are read
    THE_PROCESS.start()  # for the next choice
    described = _described_by(request, verdict(_trial(request), should_stop))
    if not described.refusal and described.info is not None and not described.info.gguf:
        TRIED.put(examination)
    return described


def description_of(request: DescribeRequest) -> Described:
    """What `request.reference` is. A checkpoint that cannot be opened is described as far as it can be understood."""
    return _described_by(request, judge(_trial(request)))


def _trial(request: DescribeRequest) -> TrialRequest:
    # the tokenizer of a GGUF file takes seconds, and is in the same file
    return TrialRequest(reference=request.reference, listing=request.listing, tokenizer=False)


def _described_by(request: DescribeRequest, verdict: Verdict) -> Described:
    try:
        verdict.check(request.placement)
    except CheckpointError as error:
        return _described(request, verdict.info, str(error), verdict.cause if verdict.refusal == str(error) else "")
    return _described(request, verdict.info)


def _described(request: DescribeRequest, info: CheckpointInfo | None, refusal: str = "", cause: str = "") -> Described:
    if info is None:
        return Described(request=request, refusal=refusal, cause=cause)
    tokens = info.context or UNBOUNDED
    try:
        where, free = room(request.placement)
    except CheckpointError:  # a device that is gone: the refusal says so
        where, free = "", None
    return Described(
        request=request,
        refusal=refusal,
        info=info,
        capabilities=capabilities(info),
        weights=tuple((dtype, weight_bytes(info, dtype)) for dtype in DTYPES),
        text_tokens=tokens,
        text_bytes=0 if info.textbook or info.family == "vision" else text_bytes(info, tokens),
        where=where,
        free=free,
        cause=cause,
    )
