"""The logit lens as a script: the residual stream after each block, through the last norm and the output head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attention_models.dataflow.readout import readout_of
from attention_models.effects.lens import lens_view
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.effects import LensAtRequest, LensView
from attention_models.protocol.errors import InputError
from attention_models.scripts.heads import word_of
from attention_models.scripts.hooks import are_close, blocks_code, print_stream
from attention_models.scripts.loading import load
from attention_models.scripts.own_functions import call, open_here
from attention_models.scripts.rerun import check_alone, give, inputs_of, why_not_again
from attention_models.scripts.script_text import Script, quoted

_UNREAD = "its output head is more than a norm and a matrix"


def write(request: LensAtRequest, context: Context) -> Script:
    """Raises InputError where no layer can be read so."""
    run, position = context.run(request.run), request.position
    check_alone(run)
    model, trace = run.model, run.trace
    inputs = inputs_of(run)
    view = lens_view(request, model, trace, inputs, context.should_stop, context.report)
    if view.targets is None or view.labels is None:
        raise InputError(view.why)
    target = int(view.targets[position])
    label = quoted(view.labels[target])
    script = Script(
        f"{model.info.name}: what it would say at {word_of(trace.tokens, position)} if it ended after each layer",
        f"The logit lens (nostalgebraist 2020). Followed is {label}; before any block it is the embedding.",
    )
    why, blocks, logits = why_not_again(run), "", ""
    if not why:
        blocks = blocks_code(model, trace, inputs, model.info.predicting_stack)
        logits = _logits_code(run, inputs) if blocks else ""
        why = _UNREAD
    if logits:
        load(script, model)
        print_stream(script)
        if "head_of(" in logits:
            script.source_of(head_of)
        script.section("the text")
        give(script, inputs)
        script.section("the computation")
        _by_hooks(script, run, view, position, target, blocks, logits)
    else:
        open_here(script, model, why)
        script.section("the computation")
        call(script, "logit_lens", run, {"target": request.target})
        _show(script, view, position, ("view.best", "view.best_share", "view.target_share", "view.target_rank"), True)
    return script


def head_of(model: nn.Module, body: nn.Module, states: Tensor, given: Mapping[str, Any]) -> Tensor:
    """What the model's own head makes of `states`, (rows, width), given by its body: (rows, answers)."""

    def put(_body: nn.Module, _args: tuple[Any, ...], out: Any) -> Any:
        out.last_hidden_state = states[None]
        return out

    hook = body.register_forward_hook(put)
    try:
        with torch.no_grad():
            logits: Tensor = model(**given).logits
    finally:
        hook.remove()
    return logits[0]


def _by_hooks(
    script: Script, run: CurrentRun, view: LensView, position: int, target: int, blocks: str, logits: str
) -> None:
    rows, width = len(view.norms), run.model.info.width
    script.line(f"blocks = {blocks}")
    script.line(
        f"stream = residual_stream(model, blocks, given)[:, {position}]", f"({rows}, {width}) the embedding, each layer"
    )
    script.line(logits)
    script.line("p = torch.softmax(logits.float(), dim=-1)")
    script.line("best = p.argmax(dim=-1)", f"({rows},) the likeliest after each layer")
    script.line(f"followed = p[:, {target}]")
    script.line("rank = 1 + (p > followed[:, None]).sum(dim=-1)", "1 is the likeliest")
    _show(script, view, position, ("best", "p.max(dim=-1).values", "followed", "rank"), False)
    script.show_each("length of the stream, blocks run", "stream.norm(dim=-1)", view.norms[:, position].tolist())


def _show(script: Script, view: LensView, position: int, codes: tuple[str, ...], of_all: bool) -> None:
    """Of each layer what the cell and the curve say."""
    names = ("likeliest token", "its probability", "probability of the followed", "rank of the followed")
    values = (view.best, view.best_share, view.target_share, view.target_rank)
    place = f"[:, {position}]" if of_all else ""
    for name, code, of_layers in zip(names, codes, values, strict=True):
        assert of_layers is not None
        script.show_each(f"{name}, blocks run", f"{code}{place}", of_layers[:, position].tolist())


@torch.no_grad()
def _logits_code(run: CurrentRun, inputs: Mapping[str, Tensor]) -> str:
    """Lines that make `logits`, (rows, answers), of `stream`; "" where none found does what the model does."""
    model, trace = run.model, run.trace
    stack = model.info.predicting_stack
    places = sorted({0, len(trace.tokens) // 2, len(trace.tokens) - 1})
    last = trace.residual[stack][-1][places]
    own = trace.logits_at(places).float().cpu()  # (places, answers)
    readout = readout_of(model, trace)
    norm, head = readout.norm_module, readout.head
    names = model.module_names
    lines = [] if norm is None else [f'norm = model.get_submodule("{names.get(norm, "")}")']
    normed = "stream" if norm is None else "norm(stream)"
    states = last if norm is None else norm(last)
    if head is not None and (norm is None or norm in names) and head in names:
        lines.append(f'head = model.get_submodule("{names[head]}")')
        for factor in (1.0, model.info.width**-0.5):
            given = normed if factor == 1 else f"{normed} * {factor!r}"
            if _is_close(head, states * factor, own):
                return "\n".join([*lines, f"with torch.no_grad():\n    logits = head({given})"])
    tried = [(states, normed, lines[:1])] if norm is not None and norm in names else []
    return _own_head(run, inputs, [*tried, (last, "stream", [])], own)


def _is_close(head: nn.Module, states: Tensor, own: Tensor) -> bool:
    try:
        return are_close(head(states), own)
    except RuntimeError:
        return False


def _own_head(
    run: CurrentRun, inputs: Mapping[str, Tensor], tried: Sequence[tuple[Tensor, str, list[str]]], own: Tensor
) -> str:
    """The model's own forward past its body, which may end with the last norm or before it.

    `tried` are what the body might give, what that is called in the script, and the lines before.
    """
    model = run.model
    body: Any = getattr(model.module, "base_model", None)
    if body is None or body is model.module or body not in model.module_names:
        return ""
    for given, code, before in tried:
        try:
            made = head_of(model.module, body, given, {**inputs, **model.forward_options})
        except (RuntimeError, TypeError, AttributeError, ValueError, IndexError):
            continue
        if are_close(made, own):
            name = model.module_names[body]
            return "\n".join([*before, f'logits = head_of(model, model.get_submodule("{name}"), {code}, given)'])
    return ""
