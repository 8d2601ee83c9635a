"""One more token into the input: what the model would write after it, or in the place of its most confident mask."""

from __future__ import annotations

import sys
import time

import torch

from attention_models.decoding.choosing import choose
from attention_models.decoding.filling import fill
from attention_models.decoding.spelling import Spelled, at_the_end, decoded, in_target
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.run import run as run_whole
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.decoding import DecodeStepRequest, DecodeStepView
from attention_models.protocol.errors import InputError
from attention_models.protocol.prompt import Prompt, plain_text, shown_of

# a character of several byte tokens is written whole: UTF-8 has at most four
_CHARACTER_TOKENS = 4


def write_into_input(request: DecodeStepRequest, run: CurrentRun) -> DecodeStepView:
    """The input with the chosen token in it: at its end (causal), or in the most confident mask (masked models).

    In a conversation it is the assistant who goes on. An encoder-decoder model goes on with the target. Where the model
    chooses to end the text (by a token that stands for no text), the answer's `ending` is "model" and `whole` is the
    input as it was. Where no spelling of the token is read back as that token, `misread` says what it would be. Nothing
    is run again but to complete a character.

    Raises:
        InputError: the context is full, there is no mask to fill, or the model writes nothing.
    """
    started = time.perf_counter()
    model, trace, inputs = run.model, run.trace, run.inputs
    if model.info.family == "masked":
        return fill(model, trace, _input(run), request)
    if model.info.family not in ("causal", "seq2seq"):
        raise InputError(f"{model.info.name} writes no text after its input.")
    if model.seq2seq and inputs.target is None:
        raise InputError(
            "The model has written its whole answer. Begin the target yourself, or empty it, to go step by step."
        )
    limit = model.info.context
    given = [token.id for token in trace.tokens if not token.padding]
    if limit is not None and len(given) >= limit:
        raise InputError(
            f"The context is full: {model.info.name} reads at most {limit:,} tokens, and the text has them all. "
            "Take some text away to let it write on."
        )
    logits = trace.logits_at([trace.last]).float()  # (1, vocabulary)
    choice = choose(model, logits, torch.tensor([given]), request.settings, request.number, request.top, request.forced)
    ends = model.stands_for_no_text(choice.token) or choice.token in model.turn_end_ids
    ids, spelled = ((choice.token,), Spelled(_input(run))) if ends else _written(run, given, choice.token)
    return DecodeStepView(
        request=request,
        text=plain_text(spelled.whole)[len(plain_text(_input(run))) :],
        whole=spelled.whole,
        misread=spelled.misread,
        ids=ids,
        candidates=choice.candidates,
        stages=choice.stages,
        chosen=choice.chosen,
        drawn=choice.drawn,
        log_probability=choice.log_probability,
        ending="model" if ends else "misread" if spelled.misread else "steps",
        cache=(),
        cache_bytes=0,
        seconds=time.perf_counter() - started,
    )


def _input(run: CurrentRun) -> Prompt:
    """What the model goes on with: what was typed, with what it has written after it."""
    model, inputs, read = run.model, run.inputs, run.read
    if model.seq2seq:
        return inputs.target or "" if read is None else decoded(model, [t.id for t in run.trace.tokens[1:]])
    if read is None or read.whole is None:
        return inputs.prompt
    return inputs.prompt.with_prompt(shown_of(read.whole)) if isinstance(inputs.prompt, Batch) else read.whole


def _written(run: CurrentRun, given: list[int], first: int) -> tuple[tuple[int, ...], Spelled]:
    """The token `first`, with those that complete its character, and the input with what they add to it."""
    model, inputs = run.model, run.inputs
    before, ids = len(decoded(model, given)), [*given, first]
    most = min(len(given) + _CHARACTER_TOKENS, model.info.context or sys.maxsize)
    while len(ids) < most:
        added = decoded(model, ids)[before:]
        if added and not added.endswith("\ufffd"):
            break
        prompt, target = (inputs.prompt, ids[1:]) if model.seq2seq else (ids, None)  # after the start token
        longer: Trace = run_whole(model, prompt, target=target, interventions=inputs.interventions)
        ids.append(int(longer.logits_at([len(ids) - 1])[0].argmax()))
    written = tuple(ids[len(given) :])
    if model.seq2seq:
        return written, in_target(model, plain_text(_input(run)), given[1:], written)
    return written, at_the_end(model, _input(run), run.trace.tokens, written)
