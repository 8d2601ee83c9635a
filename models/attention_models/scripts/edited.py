"""Interventions on attention as lines: the family's own eager attention, given other queries and another mask."""

from __future__ import annotations

from importlib import import_module

import torch

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.values import Site
from attention_models.scripts.patterns import masks_of
from attention_models.scripts.script_text import Script

_EDITED = '''
def edited(module, query, key, value, attention_mask, *more, **options):
    """(batch, queries, heads, d) and the weights (batch, heads, queries, keys), with your interventions."""
    factors, visible, silent = edits[module]
    query = query * torch.tensor(factors)[:, None, None].to(query)  # q . k is scaled
    hidden = torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(query.dtype).min).to(query)
    mixed, weights = own[type(module).__module__](
        module, query, key, value, hidden.expand(1, query.shape[1], -1, -1), *more, **options
    )
    seen = visible.any(dim=-1).expand(query.shape[1:3])  # (heads, queries)
    mixed = mixed * seen.T[None, :, :, None]  # 0 where nothing is visible
    mixed[:, :, silent] = 0  # heads that are switched off
    return mixed, weights * seen[None, :, :, None]
'''


def edits_attention_alone(run: CurrentRun) -> bool:
    """Whether the run's interventions are such that the family's own attention takes them: scales, masks, heads off."""
    for item in run.trace.interventions:
        is_head_off = isinstance(item, Ablation) and item.part == "head" and item.fill == "zero"
        if not (isinstance(item, (Scale, Mask)) or is_head_off or (isinstance(item, Ablation) and item.on)):
            return False
    return all(_takes(run, site, x) for site, x in zip(run.trace.sites, run.trace.inputs, strict=True))


def _takes(run: CurrentRun, site: Site, x: AttentionInputs) -> bool:
    """Whether the attention of `site` goes through the function that its family's file names so."""
    if x.precomputed is not None or not site.module:
        return False
    if x.mask is not None and x.mask.dtype != torch.bool and bool(attention.added_bias(x).any()):
        return False  # slopes are in the mask, which is to be another one
    return hasattr(import_module(_home(run, site)), "eager_attention_forward")


def _home(run: CurrentRun, site: Site) -> str:
    return type(run.model.module.get_submodule(site.module)).__module__


def edit(script: Script, run: CurrentRun) -> None:
    """Lines that put the interventions into the attention of `model`."""
    trace = run.trace
    homes = sorted({_home(run, site) for site in trace.sites})
    script.uses("import sys")
    script.section("your interventions")
    script.remark("Of each attention: a factor a head for q . k, which keys each query sees, heads that are off.")
    script.line("edits = {}")
    off = [item.of_stack(run.model.info.predicting_stack) for item in trace.interventions if isinstance(item, Ablation)]
    heads = {(skip.site, skip.unit) for skip in off if not skip.on}
    for stack in dict.fromkeys(site.stack for site in trace.sites):
        sites = [site for site in trace.sites if site.stack == stack]
        inputs = [trace.inputs[trace.index(site)] for site in sites]
        script.line(f"n, m = {sites[0].queries}, {sites[0].keys}", f"queries and keys: {stack}")
        for name, code, layers in masks_of(script, inputs, f"{stack}_mask"):
            if name != code:
                script.line(f"{name} = ({code})[None]", f"(1, {inputs[0].queries}, {inputs[0].keys}) True is visible")
            for layer in layers:
                site, x = sites[layer], inputs[layer]
                of_heads = [1.0] * x.heads if x.factors is None else x.factors.float().tolist()
                factors = f"[{of_heads[0]}] * {x.heads}" if len(set(of_heads)) == 1 else str(of_heads)
                silent = [head for head in range(x.heads) if (site.ref, head) in heads]
                script.line(f"edits[model.get_submodule({site.module!r})] = {factors}, {name}, {silent}")
    script.line(f"own = {{name: sys.modules[name].eager_attention_forward for name in {homes!r}}}")
    script.line(_EDITED)
    script.line("for name in own:\n    sys.modules[name].eager_attention_forward = edited")


def put_back(script: Script) -> None:
    """The lines after the model ran: what comes next, in a notebook say, finds the family as it was."""
    script.line("for name, function in own.items():\n    sys.modules[name].eager_attention_forward = function")
