"""The weights of all heads as a script: given by the model itself, or by queries and keys as they stand.

Interventions on attention are put into the model's own; with others it is queries and keys.
"""

from __future__ import annotations

from importlib import import_module

import torch

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.values import Site
from attention_models.scripts.head import keep_weights, outputs_of, why_no_weights
from attention_models.scripts.loading import load, load_recurrent, why_not_loaded
from attention_models.scripts.patterns import masks_of, visible_code, visible_of
from attention_models.scripts.rerun import given
from attention_models.scripts.script_text import Script
from attention_models.textbook.transformer import MultiHeadAttention

# Interventions on attention as lines: the family's own eager attention, given other queries and another mask.


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


_MOST_BYTES = 4 << 30


@torch.no_grad()
def all_weights(script: Script, run: CurrentRun) -> None:
    """Lines that end with `weights`: by stack a list of layers, each (heads, queries, keys) float32.

    Raises:
        InputError: there are too many weights to hold at once, too many numbers, or nothing that they are made of.
    """
    trace, model = run.trace, run.model
    size = sum(4 * site.heads * site.queries * site.keys for site in trace.sites)
    if size > _MOST_BYTES:
        raise InputError(
            f"All weights of this text take {size / 1e9:,.0f} GB, too many for a script that holds them at once. "
            "Try a shorter text, or the lines of one head (Head)."
        )
    if isinstance(model, RecurrentModel):
        _by_recurrent(script, model, run)
    elif why_not_loaded(model) or (trace.interventions and not edits_attention_alone(run)):
        _from_queries_and_keys(script, run)
    else:
        _by_model(script, run)


def layers_of(run: CurrentRun) -> dict[str, list[Site]]:
    """The sites of each stack in the order of `weights`."""
    found: dict[str, list[Site]] = {}
    for site in run.trace.sites:
        found.setdefault(site.stack, []).append(site)
    return found


def _by_model(script: Script, run: CurrentRun) -> None:
    """The model runs again, with eager attention, which gives its weights."""
    model, trace = run.model, run.trace
    load(script, model)
    if trace.interventions:
        edit(script, run)
    arguments, row = given(script, run)
    of_textbook = bool(why_no_weights(model))
    if of_textbook:
        keep_weights(script, trace)
        script.line(f"with torch.no_grad():\n    model({arguments})")
        places = {site.ref: place for place, site in enumerate(trace.sites)}
    else:
        script.line(f"with torch.no_grad():\n    out = model({arguments}, output_attentions=True)")
    if trace.interventions:
        put_back(script)
    if model.dtype_name != "float32":
        script.remark(f"The model rounds its weights to {model.dtype_name}; on screen they are as before that.")
    script.line("weights = {}", "of each stack a list of layers: (heads, queries, keys)")
    for stack, sites in layers_of(run).items():
        if of_textbook:
            layers = f"[kept[i] for i in {[places[site.ref] for site in sites]}]"
        else:
            layers = f"out.{outputs_of(stack, bool(trace.source))}[:{len(sites)}]"
        script.line(f'weights["{stack}"] = [w[{row}].float() for w in {layers}]', _shape(sites))
    for stack, sites in layers_of(run).items():
        rows = _empty_rows(trace.inputs[trace.index(sites[0])])
        if rows:
            script.line(
                f'for w in weights["{stack}"]:\n    w[:, {rows}] = 0', "nothing is visible to padding before it"
            )


def _shape(sites: list[Site]) -> str:
    layers = sites[0].layer if len(sites) == 1 else f"{sites[0].layer} to {sites[-1].layer}"
    return f"layer{'s' if len(sites) > 1 else ''} {layers}: ({sites[0].heads}, {sites[0].queries}, {sites[0].keys})"


def _empty_rows(x: AttentionInputs) -> list[int]:
    """Queries to which nothing is visible: transformers' own code spreads their weight, and nobody reads it."""
    if x.precomputed is not None or x.mask is None:
        return []
    seen = visible_of(x).any(dim=-1).any(dim=0)  # (queries,)
    return [int(i) for i in (~seen).nonzero()[:, 0]]


def _by_recurrent(script: Script, model: RecurrentModel, run: CurrentRun) -> None:
    load_recurrent(script, model)
    script.section("the numbers on screen")
    trace = run.trace
    for name, tokens in (("source", trace.source), ("target", trace.tokens)):
        script.line(f"{name} = torch.tensor([{[token.id for token in tokens]}])", f"(1, {len(tokens)})")
    script.section("the computation")
    script.line("with torch.no_grad():\n    looked = model(source, target).inputs")
    shape = f"({len(trace.tokens)}, {len(trace.source)})"
    script.line("scores = looked.bias[0, 0]", f"{shape} what attention_models/textbook/scores.py gives of each state")
    script.line('scores = scores.masked_fill(~looked.mask[0, 0], float("-inf"))', f"{shape} padding, and its window")
    script.line('weights = {"cross": [torch.softmax(scores.float(), dim=-1)[None]]}', "each row sums to 1")


# ------------------------------------------------------------------ from queries and keys

_FORMULA = '''def weights_of(Q, K, scaling, visible=None, bias=None, slopes=None, sinks=None, softcap=None):
    """One layer's, (heads, queries, keys), of Q (heads, queries, d) and K (key heads, keys, d)."""
    K = K.repeat_interleave(len(Q) // len(K), dim=0)  # heads that share a key
    scores = Q @ K.mT * scaling
    if bias is not None:
        scores = scores + bias  # what positions add
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if slopes is not None:
        scores = scores + slopes  # what positions add, in the mask
    if visible is not None:
        scores = scores.masked_fill(~visible, float("-inf"))
    if sinks is not None:  # a score that no key has
        scores = torch.cat([scores, sinks[:, None, None].expand(*scores.shape[:2], 1)], dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., : K.shape[1]]
    return weights.nan_to_num()  # 0 where nothing is visible'''


def _from_queries_and_keys(script: Script, run: CurrentRun) -> None:
    """Queries and keys of all heads, as the run has them, and the formula."""
    trace, model = run.trace, run.model
    if model.info.weights_only:
        raise InputError(model.info.weights_only)
    script.line(_FORMULA)
    script.section("the numbers on screen")
    script.line("weights = {}", "of each stack a list of layers: (heads, queries, keys)")
    for stack, sites in layers_of(run).items():
        script.line(f'weights["{stack}"] = []')
        for site in sites:
            script.remark(f"{stack} layer {site.layer}")
            arguments = _numbers(script, run, site, trace.inputs[trace.index(site)])
            script.line(f'weights["{stack}"].append(weights_of(Q, K, {arguments}))')
    script.section("the computation")


def _numbers(script: Script, run: CurrentRun, site: Site, x: AttentionInputs) -> str:
    """Lines with what the weights of a layer are made of; the arguments of `weights_of` after Q and K."""
    found = run.model.module.get_submodule(site.module) if site.module else None
    additive = found.additive if isinstance(found, MultiHeadAttention) else None
    n, m, d = x.queries, x.keys, x.query.shape[-1]
    script.tensor("Q", x.query[0].float(), f"({x.heads}, {n}, {d}) the queries")
    script.tensor("K", x.key[0].float(), f"({x.key.shape[1]}, {m}, {d}) the keys")
    arguments = [repr(float(x.scale))]
    if x.factors is not None:
        script.tensor("factors", x.factors.float() * x.scale, f"({x.heads},) the scale, with your intervention")
        arguments = ["factors[:, None, None]"]
    masked = attention.masked_cells(x)
    if masked is not None:
        script.line(f"n, m = {n}, {m}")
        arguments.append(f"visible={visible_code(script, ~masked[0].expand(-1, n, m))}")
    if additive is not None:
        script.tensor("v", additive.weight, f"({x.heads}, {d}) learned")
        script.line('bias = torch.einsum("hqkd,hd->hqk", torch.tanh(Q[:, :, None] + K[:, None]), v)', "v . tanh(q + k)")
        arguments.append("bias=bias")
    elif x.bias is not None and bool(x.bias.any()):
        script.tensor("bias", x.bias[0].float().expand(-1, n, m), "what positions add")
        arguments.append("bias=bias")
    slopes = None if x.mask is None or x.mask.dtype == torch.bool else attention.added_bias(x)[0]
    if slopes is not None and bool(slopes.any()):
        script.tensor("slopes", slopes.float().expand(-1, n, m), "what positions add, in the mask")
        arguments.append("slopes=slopes")
    if x.sinks is not None:
        script.tensor("sinks", x.sinks.float(), f"({x.heads},)")
        arguments.append("sinks=sinks")
    if x.softcap is not None:
        arguments.append(f"softcap={x.softcap!r}")
    return ", ".join(arguments)
