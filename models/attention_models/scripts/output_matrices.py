"""Where a hook reaches single heads: the module that reads what they give, side by side, and multiplies it by W_O."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from attention_models.attention.inputs import AttentionInputs
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.forward.trace import Trace
from attention_models.protocol.values import Site, SiteRef
from attention_models.views.residual import output_projection


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
