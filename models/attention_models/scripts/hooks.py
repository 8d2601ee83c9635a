"""The residual stream in a script: what enters each block, by hooks, and what leaves the last."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from attention_models.attention.inputs import AttentionInputs
from attention_models.dataflow.norms import Norm
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.files.devices import weight_of
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.values import Site, SiteRef
from attention_models.scripts.script_text import Script
from attention_models.views.residual import output_projection

# Another attention function in a script: transformers' eager one, wrapped where its own file looks it up.


_NAME = "eager_attention_forward"


def home_of(model: Model, trace: Trace, sites: Sequence[SiteRef]) -> str:
    """The Python module whose attention function the modules of `sites` call; "" where they call none of one name.

    Nor is there one where an attention module runs more than once, as where layers share their weights.
    """
    named = [site.module for site in trace.sites]
    homes = set()
    for ref in sites:
        name = trace.sites[trace.index(ref)].module
        if not name or named.count(name) != 1:
            return ""
        homes.add(type(model.module.get_submodule(name)).__module__)
    home = homes.pop() if len(homes) == 1 else ""
    return home if hasattr(sys.modules.get(home), _NAME) else ""


def wrap(script: Script, home: str, changes: Sequence[str]) -> None:
    """Lines after which `changes` act on what attention gives: `out` (1, queries, heads, size) and `weights`.

    They stand in a function of `module`, `query`, `key` and `value` (1, key heads, keys, size).
    """
    package, _, name = home.rpartition(".")
    script.uses(f"from {package} import {name} as modeling")
    lines = [
        "eager = modeling.eager_attention_forward",
        "",
        "def attend(module, query, key, value, *args, **kwargs):",
        "    out, weights = eager(module, query, key, value, *args, **kwargs)",
        *(f"    {line}" for line in changes),
        "    return out, weights",
        "",
        "modeling.eager_attention_forward = attend",
    ]
    script.line("\n".join(lines), "softmax(Q K^T * scaling) V, as the model's own file has it")


# Where a hook reaches single heads: the module that reads what they give, side by side, and multiplies it by W_O.


@torch.no_grad()
def output_names(copies: BatchedRuns) -> dict[SiteRef, str]:
    """Of each site the dotted name of its module, where the run shows that it is given exactly what the heads gave.

    A module that runs more than once, as where layers share their weights, is left out: a hook would act each time.
    """
    model, trace = copies.model, copies.trace
    modules = _modules(copies, trace)
    given: dict[nn.Module, list[Tensor]] = {}
    gave: dict[SiteRef, Tensor] = {}

    def of_heads(site: Site, _x: AttentionInputs, out: Tensor) -> Tensor:
        gave[site.ref] = out[0].transpose(0, 1).flatten(1)  # (queries, heads * value_dim)
        return out

    with ExitStack() as hooks:
        for module in set(modules.values()):
            hooks.callback(module.register_forward_pre_hook(_keeping(given)).remove)
        copies.run(1, [of_heads], positions=[0])
    return {
        ref: model.module_names[module]
        for ref, module in modules.items()
        if len(given.get(module, [])) == 1 and _are_equal(given[module][0], gave[ref])
    }


def _are_equal(given: Tensor, gave: Tensor) -> bool:
    return given.numel() == gave.numel() and bool((given.view_as(gave) == gave).all())


def _modules(copies: BatchedRuns, trace: Trace) -> dict[SiteRef, nn.Module]:
    found = {site.ref: output_projection(copies.model, trace, site) for site in trace.sites}
    return {ref: module for ref, module in found.items() if module is not None}


def _keeping(given: dict[nn.Module, list[Tensor]]) -> Callable[..., None]:
    def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], Tensor):
            given.setdefault(module, []).append(args[0].detach().contiguous())

    return hook


def columns_of(trace: Trace, site: SiteRef, head: int) -> tuple[int, int]:
    """From which to which number of what the module is given a head's are."""
    place = trace.index(site)
    size = int(trace.inputs[place].value.shape[-1])
    return head * size, (head + 1) * size


_SAME = 1e-5  # of the largest number


def residual_stream(model: nn.Module, blocks: Sequence[nn.Module], given: Mapping[str, Any]) -> Tensor:
    """(blocks + 1, tokens, width): as it enters the first block, then as it leaves each; no last norm."""
    entering: list[Tensor] = []
    leaving: list[Tensor] = []

    def enter(_block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        entering.append(args[0] if args else kwargs["hidden_states"])

    def leave(_block: nn.Module, _args: tuple[Any, ...], out: Any) -> None:
        leaving.append(out[0] if isinstance(out, tuple) else out)

    hooks = [block.register_forward_pre_hook(enter, with_kwargs=True) for block in dict.fromkeys(blocks)]
    hooks.append(blocks[-1].register_forward_hook(leave))
    try:
        with torch.no_grad():
            model(**given)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.cat([*entering, leaving[-1]])


def gain_code(norm: Norm, module: nn.Module) -> str | None:
    """What to write for the gain of `module`, which a script calls norm; "" where it has none, None where none fits."""
    if norm.gain is None:
        return ""
    kept = weight_of(module).detach().double().cpu()
    codes = (("norm.weight", kept), ("(1 + norm.weight)", 1 + kept))
    return next((code for code, gain in codes if torch.equal(gain, norm.gain)), None)


def blocks_code(model: Model, trace: Trace, inputs: Mapping[str, Tensor], stack: str) -> str:
    """What the blocks of a stack are called in a script; "" where hooks on them do not give the stream of the run."""
    blocks = [block for name, block in model.blocks if name == stack]
    kept = trace.residual.get(stack, ())
    if not blocks or not kept:
        return ""
    try:
        found = residual_stream(model.module, blocks, {**inputs, **model.forward_options})
    except (TypeError, KeyError, RuntimeError, AttributeError):
        return ""  # a block takes its stream under another name
    if len(found) != len(kept) or any(not are_close(a, b) for a, b in zip(found, kept, strict=True)):
        return ""
    home = model.module_names[blocks[0]].rpartition(".")[0]
    return f'list(model.get_submodule("{home}"))' if [*model.module.get_submodule(home).children()] == blocks else ""


def are_close(a: Tensor, b: Tensor) -> bool:
    """Whether `a` is `b` but for rounding, of which the largest number of `b` tells how much."""
    if a.shape != b.shape:
        return False
    return float((a.float() - b.float().to(a.device)).abs().max()) <= _SAME * max(1.0, float(b.abs().max()))


def print_stream(script: Script) -> None:
    """The function above, with what it needs."""
    script.uses(
        "from collections.abc import Mapping, Sequence", "from typing import Any", "from torch import Tensor, nn"
    )
    script.source_of(residual_stream)
