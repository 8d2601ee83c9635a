"""Runs the open model on what a person typed or chose."""

from __future__ import annotations

import time

from models.decoding.choosing import end_ids
from models.decoding.decode import decode, written_text
from models.forward.classes import best_of_tokens
from models.forward.context import Context
from models.forward.current_run import CurrentRun
from models.forward.model import Model
from models.forward.run import run
from models.protocol.errors import InputError
from models.protocol.run_inputs import RunInputs
from models.protocol.running import ForwardRequest, Ran
from models.protocol.work import ShouldStop

# How an encoder-decoder model writes where nothing was typed for it: a sentence, by the search that its card names.
BEAMS = 4
MOST_WRITTEN = 96


def answer(request: ForwardRequest, context: Context) -> Ran:
    """Run it. A text that the model cannot take leaves the run before as it was."""
    model, workspace = context.model, context.workspace
    context.report("Running the model", None)
    started = time.perf_counter()
    inputs = request.inputs
    target = _target(model, inputs, context.should_stop)
    text = inputs.picture if model.info.family == "vision" else inputs.prompt
    try:
        trace = run(model, text, target=target, interventions=inputs.interventions, should_stop=context.should_stop)
    except ValueError as error:
        raise InputError(str(error)) from error
    workspace.run = CurrentRun(model, trace, inputs, target, request.ticket, before=workspace.run)
    mask, unknown = model.info.mask_token, getattr(model.tokenizer, "unk_token_id", None)
    return Ran(
        request=request,
        tokens=trace.tokens,
        sites=trace.sites,
        masks=tuple(i for i, token in enumerate(trace.tokens) if mask is not None and token.piece == mask),
        seconds=time.perf_counter() - started,
        trace_bytes=trace.nbytes,
        seen=trace.picture,
        tags=tuple(best.label for best in best_of_tokens(model, trace)),
        source=trace.source,
        unknown=sum(token.id == unknown for token in trace.source or trace.tokens),
        unknown_characters=sum(t.end - t.start for t in trace.source or trace.tokens if t.id == unknown),
        written=target if isinstance(target, str) else written_text(model, target) if target else "",
    )


def _target(model: Model, inputs: RunInputs, should_stop: ShouldStop) -> str | list[int] | None:
    """What the decoder is given: nothing (one stack), the person's words, or the model's own by beam search.

    It writes as it is, also when interventions are on, so that edited runs are of the same words.
    """
    if not model.seq2seq or inputs.target is not None:
        return inputs.target if model.seq2seq else None
    ids: tuple[int, ...] = ()
    for step in decode(model, inputs.prompt, MOST_WRITTEN, strategy="beam", beams=BEAMS, should_stop=should_stop):
        ids = step.ids
    return list(ids[:-1] if ids and ids[-1] in end_ids(model) else ids)
