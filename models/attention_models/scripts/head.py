"""All weights of one head as a script: the model opened by transformers, or its queries and keys as they stand."""

from __future__ import annotations

import torch

from attention_models.attention import attention
from attention_models.attention.inputs import Part
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.trace import SiteLike, Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.values import SiteRef
from attention_models.scripts.heads import Head
from attention_models.scripts.loading import load, why_not_loaded
from attention_models.scripts.script_text import Script
from attention_models.textbook.transformer import MultiHeadAttention, _single, eager_attention_forward

_SHOWN = 3  # weights that are printed beside those on screen

_GIVEN = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
"""What transformers calls the weights of each stack of an encoder-decoder model."""


def write(request: HeadRequest, context: Context) -> Script:
    run = context.run(request.run)
    return head_script(run.model, run.trace, request.site, request.head, request.cell)


@torch.no_grad()
def head_script(model: Model, trace: Trace, site: SiteLike, head: int, cell: tuple[int, int] | None = None) -> Script:
    """The lines end with `weights`, (queries, keys), and print some of the row of `cell` (query, key), that one first.

    Without a `cell` they are the largest of the last row.

    Raises:
        IndexError: there is no such head.
        InputError: the model cannot be opened by itself, and queries and keys are too many to be written out.
    """
    found = Head.of(model, trace, site, head)
    script = Script(f"{found.name}: all its weights")
    if why_not_by_model(model, trace):
        _from_queries_and_keys(script, found)
    else:
        _by_model(script, found)
    weights = attention.weights(found.x, Part([head]))[0, 0].cpu()  # (queries, keys)
    query, *first = cell or (weights.shape[0] - 1,)
    script.line("print(weights)")
    largest = weights[query].topk(min(_SHOWN, weights.shape[1])).indices.tolist()
    for key in list(dict.fromkeys([*first, *largest]))[:_SHOWN]:
        script.remark(f"{found.query_word(query)} attends to {found.key_word(key)}")
        script.show(f"weight of ({query}, {key})", f"weights[{query}, {key}]", float(weights[query, key]))
    return script


def why_not_by_model(model: Model, trace: Trace) -> str:
    """Why the run cannot be had again by opening the model elsewhere; "" where it can."""
    if trace.interventions:
        return "interventions are on"
    if trace.origin is None or trace.origin.batch is not None or trace.picture is not None:
        return "it is not a run of one text"
    return why_no_weights(model) or why_not_loaded(model)


def why_no_weights(model: Model) -> str:
    """Why the module itself does not give its weights; "" where it does."""
    if any(isinstance(module, MultiHeadAttention) for module in model.module.modules()):
        return "the textbook transformer keeps no weights"
    return ""


def given_to(script: Script, model: Model, trace: Trace) -> str:
    """Lines that make the model's input; what `model(...)` is called with."""
    read = trace.source or trace.tokens
    script.line(f"ids = torch.tensor([{[token.id for token in read]}])", f"(1, {len(read)}) the tokens")
    call = "input_ids=ids, attention_mask=torch.ones_like(ids)"
    segments = trace.origin.segment_ids if trace.origin is not None else ()
    if any(segments) and model.takes_segments(segments):
        script.line(f"segments = torch.tensor([{list(segments)}])", "which of two texts each is of")
        call += ", token_type_ids=segments"
    if trace.source:
        script.line(f"written = torch.tensor([{[token.id for token in trace.tokens]}])", "what the decoder has said")
        call += ", decoder_input_ids=written"
    return call


def _by_model(script: Script, head: Head) -> None:
    site, trace = head.site, head.trace
    load(script, head.model)
    script.section("the computation")
    call = given_to(script, head.model, trace)
    script.line(f"with torch.no_grad():\n    out = model({call}, output_attentions=True)")
    shape = f"({site.queries}, {site.keys}) queries down, keys across"
    script.line(f"weights = out.{output_of(trace, site.ref)}[0, {head.head}].float()", shape)


def output_of(trace: Trace, site: SiteRef) -> str:
    """Where the output of transformers' model has the weights of a site: "attentions[5]", (texts, heads, q, k)."""
    of_stack = [other.ref for other in trace.sites if other.stack == site.stack]
    return f"{outputs_of(site.stack, bool(trace.source))}[{of_stack.index(site)}]"


def outputs_of(stack: str, seq2seq: bool) -> str:
    """The output of transformers' model with the weights of a stack, one of each layer: "attentions"."""
    return _GIVEN[stack] if seq2seq else "attentions"


def keep_weights(script: Script, trace: Trace) -> None:
    """Lines after which `kept` gets the weights of a model for which `why_no_weights` has a reason."""
    script.line("kept = []", "the weights of each attention, in the order in which they run")
    names = [site.module for site in trace.sites]
    script.line(
        f"for name in {names!r}:\n"
        "    model.get_submodule(name).register_forward_hook(lambda _, given, out: kept.append(out[1]))"
    )


def _from_queries_and_keys(script: Script, head: Head) -> None:
    """Queries and keys as they stand, and the formula."""
    x, part = head.x, Part([head.head])
    if x.precomputed is not None:
        raise InputError(head.model.info.weights_only)
    n, m = x.queries, x.keys
    module: MultiHeadAttention | None = head.textbook
    script.section("the numbers on screen")
    script.tensor("Q", x.query[0, head.head].float(), f"({n}, {x.query.shape[-1]}) the queries, one a row")
    script.tensor("K", x.key[0, head.key_head].float(), f"({m}, {x.key.shape[-1]}) the keys, one a row")
    factor = 1.0 if x.factors is None else float(x.factors[head.head])
    script.number("scaling", x.scale * factor, "with your intervention" if factor != 1 else "")
    learned = module.additive.weight[head.head] if module is not None and module.additive is not None else None
    if learned is not None:
        script.tensor("v", learned, "learned")
    masked = attention.masked_cells(x, part)
    if masked is not None:
        script.tensor("visible", ~masked[0, 0].expand(n, m), f"({n}, {m}) False is hidden")
    if x.bias is not None and learned is None:
        script.tensor("bias", part.take_cells(x.bias)[0, 0].float().expand(n, m), f"({n}, {m}) what positions add")
    slopes = None if x.mask is None or x.mask.dtype == torch.bool else attention.added_bias(x, part)[0, 0]
    if slopes is not None and bool(slopes.any()):
        script.tensor("slopes", slopes.float().expand(n, m), f"({n}, {m}) what positions add, in the mask")
    if x.sinks is not None:
        script.number("sink", float(x.sinks[head.head]), "a score that no key has")
    if module is not None and learned is None:
        script.uses("from types import SimpleNamespace", "from typing import Any", "from torch import Tensor, nn")
        script.source_of(_single, eager_attention_forward)
        script.section("the computation")
        visible, bias = "visible" if masked is not None else "None", "bias" if x.bias is not None else "None"
        script.line(
            "mixed, weights = eager_attention_forward(\n"
            "    SimpleNamespace(is_causal=False), Q[None, None], K[None, None], K[None, None],\n"
            f"    {visible}, scaling, {bias}\n)"
        )
        script.line("weights = weights[0, 0]", f"({n}, {m}) each row sums to 1")
        return
    script.section("the computation")
    if learned is not None:
        script.line("scores = torch.tanh(Q[:, None] + K) @ v", f"({n}, {m}) v . tanh(q + k)")
    else:
        script.line("scores = Q @ K.T * scaling", f"({n}, {m})")
    if x.bias is not None and learned is None:
        script.line("scores = scores + bias", f"({n}, {m})")
    if x.softcap is not None:
        script.line(f"scores = {x.softcap!r} * torch.tanh(scores / {x.softcap!r})", f"({n}, {m}) the soft cap")
    if slopes is not None and bool(slopes.any()):
        script.line("scores = scores + slopes", f"({n}, {m})")
    if masked is not None:
        script.line('scores = scores.masked_fill(~visible, float("-inf"))', f"({n}, {m})")
    if x.sinks is not None:
        script.line(f"scores = torch.cat([scores, torch.full(({n}, 1), sink)], dim=1)", f"({n}, {m + 1})")
    script.line("weights = torch.softmax(scores, dim=-1)", "each row sums to 1")
    if x.sinks is not None:
        script.line("weights = weights[:, :-1]", f"({n}, {m}) less the sink's share")
    if masked is not None:
        script.line("weights = weights.nan_to_num()", "0 where nothing is visible")
