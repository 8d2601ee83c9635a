"""The residual stream in a script: what enters each block, by hooks, and what leaves the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attention_models.dataflow.norms import Norm
from attention_models.files.devices import weight_of
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.scripts.script_text import Script

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
