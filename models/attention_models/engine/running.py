"""Runs the open model on what a person typed or chose."""

from __future__ import annotations

import time

from attention_models.decoding.beam import BEAMS, MOST_WRITTEN
from attention_models.decoding.choosing import end_ids
from attention_models.decoding.decode import decode, written_text
from attention_models.decoding.player import player_of
from attention_models.forward.batches import Targets, of_text, targets_of
from attention_models.forward.classes import best_of_tokens
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model, Target
from attention_models.forward.run import run_each
from attention_models.protocol.batch import Batch
from attention_models.protocol.errors import InputError
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.running import ForwardRequest, Ran, RerunRequest, RunInputs
from attention_models.views.attention_peaks import looks

# How an encoder-decoder model writes where nothing was typed for it: a sentence, by the search that its card names.


class Answers(dict[Prompt, list[int]]):
    """What an encoder-decoder model wrote itself, by what it read: texts that stay are not translated again."""


def answer(request: ForwardRequest, context: Context) -> Ran:
    """Run it. A text that the model cannot take leaves the run before as it was.

    Of a batch that has run, another text is shown: nothing runs again.
    """
    model, workspace = context.model, context.workspace
    started = time.perf_counter()
    inputs, before = request.inputs, workspace.run
    if before is not None and before.ran_too(model, inputs):
        current = CurrentRun(model, before.traces, inputs, before.written, request.ticket, before)
    elif inputs.continuation:
        along = player_of(context).read_along(inputs, context.should_stop)
        current = CurrentRun(model, (along.trace,), inputs, along.target, request.ticket, before, along.read)
    else:
        context.report("Running the model", None)
        target = _targets(model, inputs, context)
        text = inputs.picture if model.info.family == "vision" else inputs.prompt
        try:
            traces = run_each(model, text, target, inputs.interventions, context.should_stop)
        except ValueError as error:
            raise InputError(str(error)) from error
        current = CurrentRun(model, traces, inputs, target, request.ticket, before)
    workspace.run = current
    return _ran(request, current, time.perf_counter() - started)


def _ran(request: ForwardRequest, run: CurrentRun, seconds: float) -> Ran:
    model, trace = run.model, run.trace
    mask, unknown = model.info.mask_token, getattr(model.tokenizer, "unk_token_id", None)
    strange = [token for token in trace.source or trace.tokens if token.id == unknown and not token.padding]
    masks = tuple(i for i, token in enumerate(trace.tokens) if mask is not None and token.piece == mask)
    goes_on = model.info.family == "causal"
    return Ran(
        request=request,
        tokens=trace.tokens,
        sites=trace.sites,
        masks=masks,
        seconds=seconds,
        trace_bytes=trace.nbytes,
        seen=trace.picture,
        tags=tuple(
            "" if token.padding else best.label
            for token, best in zip(trace.tokens, best_of_tokens(model, trace), strict=False)
        ),
        source=trace.source,
        unknown=len(strange),
        unknown_characters=sum(token.end - token.start for token in strange),
        looks=None
        if isinstance(request, RerunRequest) or request.inputs.continuation
        else looks(trace, masks, goes_on),
        written=said_by_decoder(run),
        continued=run.read.continued if run.read is not None else (),
        whole=run.read.whole if run.read is not None else None,
    )


def said_by_decoder(run: CurrentRun) -> str:
    """What the decoder was given, or wrote itself, of the text that is shown; "" where there is none."""
    written = _of_shown(run)
    return written if isinstance(written, str) else written_text(run.model, written) if written else ""


def _of_shown(run: CurrentRun) -> Target:
    """As it was given."""
    return targets_of(run.text, run.written)[run.text.shown] if isinstance(run.text, Batch) else run.written  # type: ignore[return-value]


def _targets(model: Model, inputs: RunInputs, context: Context) -> Targets:
    """What the decoder is given: nothing (one stack), the person's words, or the model's own by beam search.

    It writes as it is, also when interventions are on, so that edited runs are of the same words.
    """
    if not model.seq2seq:
        return None
    known, batch = context.kept_of_model.get_or_compute(Answers, Answers), inputs.prompt
    if not isinstance(batch, Batch):
        written = Answers() if inputs.target is not None else Answers({batch: _answer(model, batch, known, context)})
        context.kept_of_model.put(written)
        return inputs.target if inputs.target is not None else written[batch]
    typed = batch.targets or (inputs.target,) * len(batch.texts)
    written = Answers()
    for place, (text, words) in enumerate(zip(batch.texts, typed, strict=True), start=1):
        if words is None:
            context.report(f"Writing the answer to text {place} of {len(typed)}", (place - 1) / len(typed))
            with of_text(batch, place):
                written[text] = _answer(model, text, known, context)
    context.kept_of_model.put(written)
    return [written[text] if words is None else words for text, words in zip(batch.texts, typed, strict=True)]


def _answer(model: Model, text: Prompt, known: Answers, context: Context) -> list[int]:
    if text in known:
        return known[text]
    ids: tuple[int, ...] = ()
    for step in decode(model, text, MOST_WRITTEN, strategy="beam", beams=BEAMS, should_stop=context.should_stop):
        ids = step.ids
    return list(ids[:-1] if ids and ids[-1] in end_ids(model) else ids)
