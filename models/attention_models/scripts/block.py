"""One block at one position as a script: residual stream, norms, what attention and feed-forward network write."""

from __future__ import annotations

import numpy as np
import torch

from attention_models.flow.block import block_view
from attention_models.flow.block_rerun import block_of
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.protocol.flow import (
    STREAM,
    BlockRequest,
    BlockView,
    Box,
    FeedForwardBox,
    HeadsBox,
    NormBox,
    SumBox,
)
from attention_models.scripts.heads import word_of
from attention_models.scripts.loading import load, why_not_loaded
from attention_models.scripts.script_text import Script
from attention_models.textbook import transformer
from attention_models.textbook.transformer import Block

_SAME = 1e-5  # of the largest number: a module called alone gives what it gave in the run
_LARGE = 4096
"""Numbers of a box: wider vectors are read from the model, not written out."""


def write(request: BlockRequest, context: Context) -> Script:
    run = context.run(request.run)
    return block_script(block_view(request, run, block_of(run, request.stack, request.layer, context)), run)


@torch.no_grad()
def block_script(view: BlockView, run: CurrentRun) -> Script:
    """The lines end with `after`, the residual stream as it leaves the block, (width,)."""
    model, request, width = run.model, view.request, len(view.before)
    tokens = run.trace.source if request.stack == "encoder" and run.trace.source else run.trace.tokens
    name = f"{model.info.name}, {request.stack} block {request.layer} at {word_of(tokens, request.position)}"
    script = Script(f"{name}: the residual stream through it")
    block = model.module.get_submodule(view.module) if view.module else None
    if isinstance(block, Block):
        _as_printed(script, block)
    loadable = not why_not_loaded(model) and not run.trace.interventions
    called = {i for i, box in enumerate(view.boxes) if loadable and _can_be_called(model, box)}
    if called:
        load(script, model)
    script.section("the numbers on screen")
    script.tensor("before", view.before, f"({width},) the residual stream as it enters")
    names = {STREAM: "before"}
    for i, box in enumerate(view.boxes):
        names[i] = "after" if i == len(view.boxes) - 1 else f"x{i}"
        if i in called or isinstance(box, SumBox) or not len(box.after):
            continue
        if isinstance(box, NormBox) and not box.off and box.before is not None:
            for what, numbers in (("gain", box.gain), ("bias", box.bias)):
                if numbers is not None:
                    script.tensor(f"{what}{i}", numbers, f"({len(numbers)},) of {box.module}, learned")
        else:
            script.tensor(names[i], box.after, f"({len(box.after)},) what {box.module or 'it'} gave: {_kind(box)}")
    script.section("the computation")
    for i in range(len(view.boxes)):
        _box(script, view, i, names, i in called)
    last = next(i for i in reversed(range(len(view.boxes))) if len(view.boxes[i].after))
    script.show("length after the block", f"{names[last]}.norm()", float(np.linalg.norm(view.after.astype(np.float64))))
    script.show("its first number", f"{names[last]}[0]", float(view.after[0]))
    return script


def _as_printed(script: Script, block: Block) -> None:
    """The lines of the textbook transformer that put the sublayers together."""
    around = transformer._post_norm if block._around is transformer._post_norm else transformer._pre_norm
    script.uses("from collections.abc import Callable", "from torch import Tensor, nn")
    script.line("Join, Sublayer = Callable, Callable")
    script.source_of(around)
    script.remark("Each sublayer of the block goes through it:")


def _kind(box: Box) -> str:
    if isinstance(box, HeadsBox):
        return f"its {box.heads} heads, joined; Cell shows how one comes about"
    return "the feed-forward network" if isinstance(box, FeedForwardBox) else box.kind


def _can_be_called(model: Model, box: Box) -> bool:
    """Whether the module, called alone with what the box read, gives what it gave in the run."""
    if not box.module or box.before is None or not len(box.after) or isinstance(box, (HeadsBox, SumBox)):
        return False
    if isinstance(box, NormBox) and (len(box.before) <= _LARGE or box.off):
        return False
    try:
        module = model.module.get_submodule(box.module)
        given = torch.from_numpy(box.before.copy()).to(model.device, model.dtype)[None, None]
        with model.ready():
            gave = module(given)
        gave = (gave[0] if isinstance(gave, tuple) else gave)[0, 0].float().cpu().numpy()
    except (AttributeError, TypeError, RuntimeError, ValueError, IndexError):
        return False
    if gave.shape != box.after.shape:
        return False
    return bool(np.abs(gave - box.after).max() <= _SAME * max(1.0, float(np.abs(box.after).max())))


def _box(script: Script, view: BlockView, i: int, names: dict[int, str], is_called: bool) -> None:
    box, width = view.boxes[i], f"({len(view.boxes[i].after)},)"
    if not len(box.after):
        return
    read = [names[place] for place in box.reads if place == STREAM or len(view.boxes[place].after)]
    if isinstance(box, SumBox):
        factors = box.factors or (1.0,) * len(read)
        terms = [name if factor == 1 else f"{factor!r} * {name}" for factor, name in zip(factors, read, strict=True)]
        script.line(f"{names[i]} = {' + '.join(terms)}", f"{width} the residual connection")
        return
    given = " + ".join(read) if read else names[STREAM]
    if is_called:
        name, whole = names[i], given if len(read) < 2 else f"({given})"
        script.line(f'with torch.no_grad():\n    {name} = model.get_submodule("{box.module}")({whole}[None, None])')
        script.line(f"{name} = ({name}[0] if isinstance({name}, tuple) else {name})[0, 0]", f"{width} {_kind(box)}")
    elif isinstance(box, NormBox) and not box.off and box.before is not None:
        _norm(script, names[i], given, i, box)
    else:
        script.remark(f"{names[i]}: what {box.module} gave, as it stands above")
        return
    script.show(f"length of {names[i]}", f"{names[i]}.norm()", float(np.linalg.norm(box.after.astype(np.float64))))


def _norm(script: Script, name: str, given: str, i: int, box: NormBox) -> None:
    width = f"({len(box.after)},)"
    if box.rms:
        script.line(f"{name} = {given}", f"{width} RMSNorm")
    else:
        whole = given if len(box.reads) < 2 else f"({given})"
        script.line(f"{name} = {given} - {whole}.mean()", f"{width} LayerNorm")
    script.line(f"{name} = {name} / ({name}.square().mean() + {box.eps!r}).sqrt()", width)
    if box.gain is not None:
        script.line(f"{name} = {name} * gain{i}", width)
    if box.bias is not None:
        script.line(f"{name} = {name} + bias{i}", width)
