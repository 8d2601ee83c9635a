"""A `CellView` in words: each step's formula with its numbers in it, and what the step means."""

from __future__ import annotations

import math

from attention_explorer.panels.cell.step_list import (
    Explained,
    Step,
    mask_step,
    mixed_step,
    score_step,
    sink_share,
    softmax_step,
    sum_step,
    weight_step,
)
from attention_explorer.panels.cell.vector_bars import VectorRow, in_brackets
from attention_explorer.widgets.number_text import MINUS, added, counted, signed, value_text
from attention_models.protocol.cell import AdditiveScore, CellView
from attention_models.protocol.values import Site

_EDITS = ("mask “", "painted", "opened")


def explained_steps(view: CellView, site: Site, query: str, key: str) -> list[Explained]:
    """The steps from the two vectors to the logit, in order; those that this model does not take are left out.

    `query` and `key` are the two tokens as they are called in a sentence.
    """
    steps = [_shared_key(view), _rotation(view), _score(view), _scaled(view), _bias(view), _softcap(view)]
    steps += [_mask(view, site, query, key), softmax_step(view), weight_step(view), _value(view), _head_output(view)]
    steps += [_write(view), _logit(view)]
    return [step for step in steps if step is not None]


def row_remark(view: CellView, query: str, shown: int) -> str:
    """What is to be said of the whole row, of which `shown` keys are listed."""
    keys, hidden = len(view.row_masked), int(view.row_masked.sum())
    if hidden == keys:
        return f"“{query}” may look at nothing: its weights and this head's output are 0."
    masked = f", {hidden} masked" if hidden else ""
    largest = f". The {shown} largest weights:" if shown < keys else ""
    sink = f", {sink_share(view):.1%} to the sink" if view.sink is not None else ""
    return f"The whole row: “{query}” over {counted(keys, 'key')}{masked}{sink}{largest}"


def sharing(view: CellView) -> str:
    """ "shares key/value head 1 with heads 2, 3", "" for a head with a key/value head of its own."""
    others = [str(head) for head in view.key_group if head != view.request.head]
    if not others:
        return ""
    return f"shares key/value head {view.key_head} with head{'s' if len(others) > 1 else ''} {', '.join(others)}"


def _shared_key(view: CellView) -> Explained | None:
    if len(view.key_group) < 2:
        return None
    step = Step("shared k, v", f"key/value head {view.key_head}", sharing(view))
    return Explained(
        step,
        "Heads with queries of their own that share one head's keys and values. Ainslie et al. 2023 (grouped queries).",
    )


def _rotation(view: CellView) -> Explained | None:
    if not view.rotated:
        return None
    return Explained(
        Step("rotation", "q, k already turned", "by their positions (RoPE)"),
        "Positions turn q and k, two dimensions at a time; the bars show them after that. Su et al. 2021 (RoPE).",
    )


def additive_rows(view: CellView, score: AdditiveScore, query: str, key: str) -> tuple[VectorRow, ...]:
    """The bars from the query and the key to the products whose sum is an additive score."""
    return (
        VectorRow(f"q  {query}", view.q, "query"),
        VectorRow(f"k  {key}", view.k, "key"),
        VectorRow("tanh", score.tanh),
        VectorRow("v × tanh", view.products),
    )


def additive_sentence(score: AdditiveScore, dimension: int, numbers: list[float]) -> str:
    """One dimension written out: "tanh(0.31 − 0.20) = 0.110; × 0.520 = 0.057"."""
    query, key, tanh, product = numbers
    v = in_brackets(value_text(float(score.v[dimension])))
    return f"tanh({value_text(query)} {added(key)}) = {value_text(tanh)}; × {v} = {value_text(product)}"


def _score(view: CellView) -> Explained:
    if view.additive is not None:
        meaning = (
            "How well the key fits the query: the sum of the products above. Bahdanau et al. 2015, appendix A.1.2."
        )
        return score_step(view, "v · tanh(q + k)", meaning)
    meaning = "How well the key fits the query: the sum of the products above. Q Kᵀ in Vaswani et al. 2017, eq. 1."
    return score_step(view, "q · k", meaning)


def _scaled(view: CellView) -> Explained | None:
    if view.additive is not None:
        return None
    dim = len(view.q)
    usual = math.isclose(view.scale, dim**-0.5, rel_tol=1e-6)
    by = f"/ √{dim}" if usual else f"× {view.scale:.4g}"
    note = "divided by √d" if usual else "this model does not scale" if view.scale == 1 else "this model's own scale"
    changed = view.factor != 1
    if changed:
        by, note = f"{by} × {view.factor:.3g}", f"× {view.factor:.3g} is an intervention"
    return Explained(
        Step(
            "scaled",
            f"{value_text(view.raw)} {by} = {value_text(view.scaled)}",
            note,
            "warning" if changed else "plain",
        ),
        "A sum of d products spreads like √d; large scores would saturate the softmax. Vaswani et al. 2017, 3.2.1.",
    )


def _bias(view: CellView) -> Explained | None:
    if view.bias is None:
        return None
    total = "" if view.softcap is not None else f" = {value_text(view.score)}"
    return Explained(
        Step("position", f"{value_text(view.scaled)} {added(view.bias)}{total}", "bias for the distance"),
        "A number for how far apart the two tokens are. Raffel et al. 2020 (T5), 2.1; Press et al. 2022 (ALiBi).",
    )


def _softcap(view: CellView) -> Explained | None:
    if view.softcap is None:
        return None
    cap = f"{view.softcap:.4g}"
    inside = value_text(view.scaled) if view.bias is None else f"({value_text(view.scaled)} {added(view.bias)})"
    return Explained(
        Step("soft cap", f"{cap} tanh({inside} / {cap}) = {value_text(view.score)}", f"never beyond ±{cap}"),
        "No score leaves the range of the cap: c · tanh(s / c). Gemma Team 2024 (Gemma 2), section 2.",
    )


def _mask(view: CellView, site: Site, query: str, key: str) -> Explained:
    return mask_step(
        view,
        "mask",
        view.reason or _why_allowed(view, site, query, key),
        f"A masked score counts as {MINUS}∞, so that its weight is exactly 0. Vaswani et al. 2017, 3.2.3.",
        edited=view.reason.startswith(_EDITS),
    )


def _why_allowed(view: CellView, site: Site, query: str, key: str) -> str:
    if site.stack == "cross":
        return "every source token is open"
    if view.request.key == view.request.query:
        return "a token may look at itself"
    if site.causal or site.stack == "decoder":
        is_before = view.request.key < view.request.query
        return f"“{key}” comes before “{query}”" if is_before else "this run lets it look ahead"
    return "within reach" if view.row_masked.any() else "this model looks both ways"


def _value(view: CellView) -> Explained:
    meaning = (
        "The key token's value times the weight: this cell's part of the head's output. Vaswani et al. 2017, eq. 1."
    )
    return mixed_step(view, "v", meaning)


def _head_output(view: CellView) -> Explained:
    meaning = "The sum of weight times value over the row: what this head reads. head_i in Vaswani et al. 2017, 3.2.2."
    return sum_step(view, "head output", "v", "all keys of the row", meaning)


def _write(view: CellView) -> Explained:
    meaning = (
        "Brought to the model's width, on its way into the residual stream: a sum over keys and heads. Elhage et al. "
        "2021."
    )
    if view.write_norm is None or view.head_write_norm is None:
        return Explained(Step("× W_O", "not found", "the layer's output matrix"), meaning)
    note = f"head {value_text(view.head_write_norm)}"
    if view.stream_norm is not None:
        note += f" · stream {value_text(view.stream_norm)}"
    return Explained(Step("× W_O", f"‖write‖ = {value_text(view.write_norm)}", note), meaning)


def _logit(view: CellView) -> Explained:
    meaning = "What the write itself adds to the logit, the last norm's divisor held fixed. Elhage et al. 2021."
    if view.effect is None or view.head_effect is None:
        return Explained(Step("→ logit", "no direct effect", "the reason is below"), meaning)
    note = f"head {signed(view.head_effect)}"
    if view.logit is not None:
        note += f" · logit {value_text(view.logit)}"
    return Explained(Step("→ logit", f"{view.target_label} {signed(view.effect)}", note, "result"), meaning)
