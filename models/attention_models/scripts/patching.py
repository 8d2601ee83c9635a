"""Activation patching as a script: the other text run once, and a hook that puts a part of it into this run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attention_models.effects.patching import answer
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.predictions import answering_position
from attention_models.forward.run import run as run_text
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.patching import BY_POSITION, PatchColumnRequest, PatchRequest, PatchView
from attention_models.scripts.heads import Head, word_of
from attention_models.scripts.own_functions import call_with, open_here, written_out
from attention_models.scripts.patch_hooks import Patch, patched_by_hooks
from attention_models.scripts.rerun_inputs import (
    aim_words,
    aimed_at,
    answer_of,
    check_alone,
    inputs_of,
    show_value,
    show_values,
    why_not_again,
)
from attention_models.scripts.script_text import Script, quoted

_WHAT = {
    "residual": "the stream as it enters each block",
    "attention": "what the attention of each block adds",
    "mlp": "what the feed-forward network of each block adds",
    "head": "what one head gives, at every token",
    "pattern": "the weights of one head",
}
_NO_TOKEN = "No token of the other text stands for {token}. Select one that has one."
_NO_HEAD = "Heads of the decoder and of cross-attention are patched. Select one of those."
_UNHOOKED = "its parts do not hand on what they compute as others do"


def write(request: PatchColumnRequest, context: Context) -> Script:
    """Raises InputError where nothing of the other text stands for what is selected, or as `ax.patch` does."""
    run = context.run(request.run)
    check_alone(run)
    view = _whole(request, context)
    if view.why:
        raise InputError(view.why)
    values = _values(request, run, view)
    script = Script(_title(request, run, view), f"Measured is {aim_words(run, view.aim)}.")
    why, patch = why_not_again(run), None
    if not why:
        patch = _patch_of(request, run, view)
        why = _UNHOOKED
    if patch is None or not patched_by_hooks(script, patch):
        _by_own_functions(script, run, request, view, why)
    show_value(script, view.aim, "as it is", "before", view.aim.value)
    show_value(script, view.aim, "in the other text", "other", view.other_value)
    if len(values) == 1:
        show_value(script, view.aim, "patched", "patched[0]", values[0])
    else:
        show_values(script, view.aim, "patched, block", "patched", values)
    return script


def _whole(request: PatchColumnRequest, context: Context) -> PatchView:
    """The panel's own sweep, gone on with to its end."""
    asked = PatchRequest(run=request.run, other=request.other, kind=request.kind, align=request.align, aim=request.aim)
    view = answer(asked, context)
    while view.done < 1:
        view = answer(asked, context)
    return view


def _values(request: PatchColumnRequest, run: CurrentRun, view: PatchView) -> list[float]:
    """Of each block, or of the one head."""
    if request.kind in BY_POSITION:
        if not 0 <= request.column < len(run.trace.tokens) or view.stands_for[request.column] is None:
            raise InputError(_NO_TOKEN.format(token=word_of(run.trace.tokens, request.column)))
        of_blocks: list[float] = view.values[:, request.column].tolist()
        return of_blocks
    if request.site not in view.rows or np.isnan(view.values[view.rows.index(request.site), request.column]):
        raise InputError(_NO_HEAD)
    return [float(view.values[view.rows.index(request.site), request.column])]


def _title(request: PatchColumnRequest, run: CurrentRun, view: PatchView) -> str:
    if request.kind in BY_POSITION:
        there = view.stands_for[request.column]
        assert there is not None
        name = f"{run.model.info.name}, {word_of(run.trace.tokens, request.column)}"
        return f"{name}: {_WHAT[request.kind]}, from {quoted(view.other_labels[there])} ({there}) of another text"
    assert request.site is not None
    name = Head.of(run.model, run.trace, request.site, request.column).name
    return f"{name}: {_WHAT[request.kind]}, from another text"


def _patch_of(request: PatchColumnRequest, run: CurrentRun, view: PatchView) -> Patch | None:
    """None where the aim is not read from what the model itself gives."""
    model, aim = run.model, view.aim
    inputs, other_inputs = inputs_of(run), model.encode(request.other, run.written).inputs  # type: ignore[arg-type]
    other: Trace = run_text(model, request.other, target=run.written)
    place = view.stands_for[aim.position]
    there = replace(aim, position=answering_position(model, other) if place is None else place, value=view.other_value)
    read = answer_of(model, run.trace, inputs, aim)
    read_other = answer_of(model, other, other_inputs, there, "ids_other")
    if read is None or read_other is None:
        return None
    return Patch(run, request, view, inputs, other_inputs, read, read_other)


# --------------------------------------------------------------------------- by this program's own functions


def _by_own_functions(script: Script, run: CurrentRun, request: PatchColumnRequest, view: PatchView, why: str) -> None:
    open_here(script, run.model, why)
    script.section("the computation")
    given = {"kind": request.kind, "align": request.align, **aimed_at(view.aim), "position": view.aim.position}
    script.line(f"text = {written_out(script, run.text)}")
    texts = ["text", repr(request.other)]
    call_with(script, "patch", texts, {**given, "written": run.written}, run.trace.interventions)
    if request.kind in BY_POSITION:
        script.line(f"patched = view.values[:, {request.column}]", "(blocks,)")
    else:
        assert request.site is not None
        script.line(f"patched = view.values[{view.rows.index(request.site)}, {request.column}][None]")
    script.line("before, other = view.aim.value, view.other_value")
