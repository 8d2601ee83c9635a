"""What zeroing one head changes, as a script: a hook before W_O, and the answer without it and with it."""

from __future__ import annotations

import math

from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.sweep import answer
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.effects import EffectsView, HeadEffectRequest
from attention_models.scripts.heads import Head
from attention_models.scripts.hooks import columns_of, output_names
from attention_models.scripts.own_functions import call, open_here
from attention_models.scripts.rerun import (
    Answer,
    aim_words,
    aimed_at,
    answer_of,
    begin,
    check_alone,
    inputs_of,
    show_value,
    why_not_again,
)
from attention_models.scripts.script_text import Script

_UNREACHED = "its heads are joined in a way of its own"


def write(request: HeadEffectRequest, context: Context) -> Script:
    """Raises IndexError where there is no such head, InputError where nothing can be ablated."""
    run = context.run(request.run)
    check_alone(run)
    name = Head.of(run.model, run.trace, request.site, request.head).name
    view = answer(request, context)
    while math.isnan(_effect(view, request)):
        view = answer(request, context)
    script = Script(f"{name}: what changes without it", f"Measured is {aim_words(run, view.aim)}.")
    why, output, read = why_not_again(run), "", None
    inputs = inputs_of(run)
    if not why:
        output = output_names(BatchedRuns.of_run(run)).get(request.site, "")
        read = answer_of(run.model, run.trace, inputs, view.aim) if output else None
        why = _UNREACHED
    if read is None:
        _by_own_functions(script, run, view, request, why)
        return script
    begin(script, run, inputs, view.aim, read)
    _by_a_hook(script, run, output, request, read)
    before, effect = view.aim.value, _effect(view, request)
    show_value(script, view.aim, "as it is", "before", before)
    show_value(script, view.aim, "without the head", "after", before + effect)
    show_value(script, view.aim, "change", "after - before", effect)
    return script


def _effect(view: EffectsView, request: HeadEffectRequest) -> float:
    found = view.of(request.site)
    assert found is not None
    return float(found[request.head])


def _by_a_hook(script: Script, run: CurrentRun, output: str, request: HeadEffectRequest, read: Answer) -> None:
    start, end = columns_of(run.trace, request.site, request.head)
    script.line(
        f"def without_head(module, args):\n"
        f"    joined = args[0].clone()  # (1, tokens, heads * {end - start}) what the heads gave, side by side\n"
        f"    joined[..., {start}:{end}] = 0  # head {request.head}: Michel et al. 2019\n"
        f"    return (joined, *args[1:])\n"
    )
    script.line(f'W_O = model.get_submodule("{output}")')
    script.line(
        "with torch.no_grad():\n"
        "    out = model(**given)\n"
        "    hook = W_O.register_forward_pre_hook(without_head)\n"
        "    ablated = model(**given)\n"
        "    hook.remove()"
    )
    script.line("before, after = answer(out), answer(ablated)")


def _by_own_functions(script: Script, run: CurrentRun, view: EffectsView, request: HeadEffectRequest, why: str) -> None:
    aim, effect = view.aim, _effect(view, request)
    open_here(script, run.model, why)
    script.uses("from attention_models.protocol.values import SiteRef")
    script.section("the computation")
    call(script, "head_effects", run, {**aimed_at(aim), "position": aim.position})
    script.line(f"change = view.of({request.site!r})[{request.head}]")
    show_value(script, aim, "as it is", "view.aim.value", aim.value)
    show_value(script, aim, "change", "change", effect)
