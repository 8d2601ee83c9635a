"""Puts together what is said of a checkpoint before it is opened."""

from __future__ import annotations

from collections.abc import Callable

from attention_models.files.memory import DTYPES, text_bytes, weight_bytes
from attention_models.forward.context import Context
from attention_models.opening.checkpoint_inspector import TRIED, CheckpointInspector
from attention_models.opening.inspection import room
from attention_models.opening.trial import TrialRequest, Verdict, judge
from attention_models.opening.trial_process import THE_PROCESS, verdict_elsewhere, verdict_on
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.loading import Described, DescribeRequest
from attention_models.protocol.request import ShouldStop
from attention_models.protocol.values import Capability, CheckpointInfo, ClassHead

_NAMED = 4  # classes


def capabilities(info: CheckpointInfo) -> tuple[Capability, ...]:
    """In the order in which a person meets them."""
    heads = sum(stack.layers * stack.heads for stack in info.stacks)
    attention = f"{heads:,} head{'s' if heads > 1 else ''}" if heads else "it has none: its decoder gets one vector"
    unseen = "its queries and keys cannot be seen, only its weights" if info.weights_only else ""
    no_cell = unseen or ("" if heads else "there is no cell to look into")
    no_mask = unseen or ("they are for transformers" if info.textbook else "")
    return (
        Capability("Attention", heads > 0, attention),
        Capability("Cell arithmetic", not no_cell, no_cell),
        _predictions(info),
        _writing(info),
        *_conversation(info),
        *_pairs(info),
        *(() if info.adapter is None else (Capability("Adapter", not info.adapter.why, info.adapter.words),)),
        Capability("Masks and scale", not no_mask, no_mask),
        _alignment(info, heads),
    )


def _classes(info: CheckpointInfo) -> Capability:
    many = info.vocabulary
    said = f"{many:,} classes" if many else "it has no output head, so it names nothing"
    return Capability("Naming what it sees", many > 0, said)


def _classifying(head: ClassHead, context: int | None) -> Capability:
    if head.of == "span":
        within = f", within {context:,} tokens: a longer text is not read window by window" if context else ""
        return Capability("Answering questions", True, f"by where the answer starts and ends{within}")
    if head.of == "choice":
        return Capability("Choosing", True, "between the texts that run together: a first text with one choice in each")
    if head.otherwise:
        return Capability("Classifying each token", True, f"{head.otherwise} or {head.labels[0]}")
    named = ", ".join(head.labels[:_NAMED]) + ("" if len(head.labels) <= _NAMED else " …")
    if head.scale == "number":
        return Capability("Giving a number", True, f"{len(head.labels):,} for a text: {named}")
    each = "token" if head.of == "token" else "text"
    return Capability(f"Classifying each {each}", True, f"{len(head.labels):,} classes: {named}")


def _predictions(info: CheckpointInfo) -> Capability:
    if info.class_head is not None:
        return _classifying(info.class_head, info.context)
    if info.family == "vision":
        return _classes(info)
    if info.family == "masked":
        head = info.pair_head
        also = "" if head is None else f"and of two texts whether the second {' or '.join(head.labels)}"
        return Capability("Filling in masks", True, also)
    if info.family in ("causal", "seq2seq"):
        return Capability("Next token", True)
    return Capability("Next token", False, f"{info.wordless or 'it has no output head'}, so it says no words")


def _writing(info: CheckpointInfo) -> Capability:
    writes = info.family in ("causal", "seq2seq")
    return Capability("Writing text", writes, "" if writes else "only models that continue a text do that")


def _conversation(info: CheckpointInfo) -> tuple[Capability, ...]:
    # left out where there is none: of a model that was not fetched yet it is not known
    return (Capability("Conversation", True, "its tokenizer has a chat template"),) if info.chat else ()


def _pairs(info: CheckpointInfo) -> tuple[Capability, ...]:
    # as above
    return (Capability("Pairs of texts", True, "its tokenizer has a template for two"),) if info.pairs else ()


def _alignment(info: CheckpointInfo, heads: int) -> Capability:
    if info.family != "seq2seq":
        return Capability("Alignment", False, "only models with an encoder and a decoder have that")
    return Capability("Alignment", heads > 0, "" if heads else "without attention nothing says what a word came of")


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
