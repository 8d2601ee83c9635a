"""One cell's arithmetic, recomputed in float64 from the queries, keys and values that were kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import run
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.forward.trace import Trace
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.cell import CellRequest, CellView
from attention_models.protocol.interventions import Intervention, Mask, Positions, Scale
from attention_models.protocol.values import Site, SiteRef
from attention_models.views.cell import cell_view
from attention_models.views.residual import IN_BETWEEN, logit_direction, output_projection, output_weight
from tests.models.tiny import SENTENCE

TOLERANCE = 1e-5  # of the largest number of its row: single precision, summed over a head's dimensions
WINDOW = 8  # of gemma2 and gpt_oss, in every other layer from the first

# model, stack, layer, head, query, key
CELLS = [
    ("story-gpt", "decoder", 5, 5, 13, 1),
    ("story-gpt", "decoder", 0, 2, 3, 7),  # masked
    ("story-bert", "encoder", 2, 1, 4, 9),
    ("llama", "decoder", 1, 3, 9, 2),
    ("t5", "encoder", 0, 1, 2, 8),
    ("t5", "decoder", 1, 2, 2, 1),
    ("t5", "cross", 2, 3, 1, 4),
    ("gemma2", "decoder", 0, 2, 10, 1),  # beyond the window
    ("gemma2", "decoder", 1, 2, 10, 1),
    ("gpt_oss", "decoder", 1, 1, 10, 3),
]


@pytest.fixture
def model_of(tiny_model, story_gpt, story_bert):
    return lambda name: {"story-gpt": story_gpt, "story-bert": story_bert}.get(name) or tiny_model(name)


def traced(model: Model, *interventions: Intervention) -> Trace:
    target = "to the park" if model.info.family == "seq2seq" else None
    return run(model, SENTENCE, target=target, interventions=interventions)


def view_of(
    model: Model, trace: Trace, stack: str, layer: int, head: int, query: int, key: int, target: int | None = None
) -> CellView:
    site = trace.sites[trace.index((stack, layer))].ref
    return cell_view(CellRequest(run=1, site=site, head=head, query=query, key=key, target=target), model, trace)


def hidden_keys(name: str, site: Site, query: int) -> np.ndarray:
    """(keys,) bool: which keys the model as trained hides from `query`."""
    keys = np.arange(site.keys)
    if site.stack != "decoder":
        return np.zeros(site.keys, bool)
    windowed = name in ("gemma2", "gpt_oss") and site.layer % 2 == 0
    hidden: np.ndarray = (keys > query) | ((query - keys >= WINDOW) if windowed else False)
    return hidden


def close(found: Any, wanted: Any) -> None:
    wanted = np.asarray(wanted, np.float64)
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize(("name", "stack", "layer", "head", "query", "key"), CELLS)
def test_every_number_from_q_k_and_v(model_of, name, stack, layer, head, query, key):
    model = model_of(name)
    trace = traced(model)
    site, x = trace.sites[trace.index((stack, layer))], trace.inputs[trace.index((stack, layer))]
    view = view_of(model, trace, stack, layer, head, query, key)
    key_head = head // (site.heads // site.key_heads)
    q = x.query[0, head, query].double().numpy()
    keys, values = x.key[0, key_head].double().numpy(), x.value[0, key_head].double().numpy()
    raw = keys @ q
    scores = raw * x.scale
    if x.bias is not None:
        scores = scores + x.bias[0, head, query].double().numpy()
    if name == "gemma2":
        scores = 1.5 * np.tanh(scores / 1.5)
    hidden = hidden_keys(name, site, query)
    powers = np.where(hidden, 0.0, np.exp(scores))
    sink = float(torch.exp(x.sinks[head].double())) if x.sinks is not None else 0.0
    total = powers.sum() + sink
    weights = powers / total
    output_matrix = output_weight(model, trace, site, head)
    assert output_matrix is not None
    write = weights[key] * values[key] @ output_matrix.double().numpy()
    head_write = weights @ values @ output_matrix.double().numpy()

    close(view.q, q)
    close(view.k, keys[key])
    close(view.products, q * keys[key])
    close(view.raw, raw[key])
    close(view.row_raw, raw)
    close(view.scaled, raw[key] * x.scale)
    close(view.score, scores[key])
    close(view.row_scores, scores)
    assert view.row_masked.tolist() == hidden.tolist()
    assert view.masked == hidden[key]
    close(view.numerator / view.denominator, weights[key])
    assert view.shift is not None
    close(view.numerator * np.exp(view.shift), powers[key])
    close(view.denominator * np.exp(view.shift), total)
    close((view.sink or 0.0) * np.exp(view.shift), sink)
    close(view.weight, weights[key])
    close(view.row_weights, weights)
    close(view.value, values[key])
    close(view.value_norm, np.linalg.norm(values[key]))
    close(view.mixed, weights[key] * values[key])
    close(view.mixed_norm, np.linalg.norm(weights[key] * values[key]))
    close(view.head_output, weights @ values)
    close(view.head_output_norm, np.linalg.norm(weights @ values))
    close(view.write, write)
    close(view.write_norm, np.linalg.norm(write))
    close(view.head_write_norm, np.linalg.norm(head_write))
    stream = trace.residual["decoder" if stack == "cross" else stack][layer + 1][query]
    close(view.stream_norm, np.linalg.norm(stream.double().numpy()))
    assert view.key_head == key_head
    assert view.key_group == tuple(h for h in range(site.heads) if h // (site.heads // site.key_heads) == key_head)


def test_what_each_kind_of_model_has(model_of):
    def has(name: str, stack: str = "decoder", layer: int = 0) -> tuple[bool, bool, bool, bool]:
        model = model_of(name)
        view = view_of(model, traced(model), stack, layer, 0, 2, 1)
        return view.rotated, view.bias is not None, view.softcap is not None, view.sink is not None

    assert has("story-gpt") == (False, False, False, False)
    assert has("llama") == (True, False, False, False)
    assert has("gemma2") == (True, False, True, False)
    assert has("gpt_oss") == (True, False, False, True)
    assert has("t5") == (False, True, False, False)
    assert has("t5", "cross") == (False, False, False, False)  # is handed a bias of zeros


def test_positions_off_turn_nothing(model_of):
    model = model_of("llama")
    assert not view_of(model, traced(model, Positions("off")), "decoder", 0, 0, 2, 1).rotated


@pytest.mark.parametrize(
    ("name", "stack", "layer", "hooked"),
    [
        ("story-gpt", "decoder", 5, "transformer.h.5.attn"),
        ("story-bert", "encoder", 2, "bert.encoder.layer.2.attention.output.dense"),
        ("llama", "decoder", 1, "model.layers.1.self_attn"),
        ("modernbert", "encoder", 1, "model.layers.1.attn"),
        ("phi3", "decoder", 2, "model.layers.2.self_attn"),
        ("t5", "cross", 2, "decoder.block.2.layer.1.EncDecAttention"),
    ],
)
def test_writes_sum_to_what_the_module_gives(model_of, name, stack, layer, hooked):
    model = model_of(name)
    given: list[torch.Tensor] = []
    handle = model.module.get_submodule(hooked).register_forward_hook(
        lambda _module, _args, out: given.append(out[0] if isinstance(out, tuple) else out)
    )
    try:
        trace = traced(model)
    finally:
        handle.remove()
    site = trace.sites[trace.index((stack, layer))]
    query = site.queries - 1
    projection = output_projection(model, trace, site)
    assert projection is not None
    bias = getattr(projection, "bias", None)
    total = np.zeros(model.info.width) if bias is None else bias.double().numpy()
    for head in range(site.heads):
        writes = [view_of(model, trace, stack, layer, head, query, key).write for key in range(site.keys)]
        of_head = np.sum([write.astype(np.float64) for write in writes if write is not None], axis=0)
        view = view_of(model, trace, stack, layer, head, query, 0)
        close(view.head_write_norm, np.linalg.norm(of_head))
        total = total + of_head
    close(given[-1][0, query].numpy(), total)


def test_all_direct_effects_sum_to_the_logit(story_gpt):
    """Embedding, every head of every layer, every bias and every MLP: the whole residual stream, taken apart."""
    mlps: list[torch.Tensor] = []
    blocks = range(story_gpt.info.stacks[0].layers)
    handles = [
        story_gpt.module.get_submodule(f"transformer.h.{i}.mlp").register_forward_hook(
            lambda _module, _args, out: mlps.append(out[0])
        )
        for i in blocks
    ]
    try:
        trace = traced(story_gpt)
    finally:
        for handle in handles:
            handle.remove()
    query = len(trace.tokens) - 1
    token = predict(story_gpt, trace, [query])[0].candidates[1].id
    direction, _ = logit_direction(story_gpt, trace, "decoder", query, token)
    assert direction is not None
    norm = story_gpt.module.get_submodule("transformer.ln_f")
    total = float(trace.residual["decoder"][0][query] @ direction)
    total += float(norm.bias @ story_gpt.output_head.weight[token])
    for layer in blocks:
        for head in range(trace.sites[layer].heads):
            effect = view_of(story_gpt, trace, "decoder", layer, head, query, 0, token).head_effect
            assert effect is not None
            total += effect
        projection = output_projection(story_gpt, trace, trace.sites[layer])
        assert projection is not None
        total += float(projection.bias @ direction) + float(mlps[layer][query] @ direction)
    assert total == pytest.approx(float(trace.logits[query, token]), abs=1e-3)


def test_an_effect_is_the_change_with_the_divisor_held(story_gpt):
    trace = traced(story_gpt)
    view = view_of(story_gpt, trace, "decoder", 5, 5, 13, 1)
    final = trace.residual["decoder"][-1][13].double().numpy()
    norm = story_gpt.module.get_submodule("transformer.ln_f")
    gain, shift = norm.weight.double().numpy(), norm.bias.double().numpy()
    row = story_gpt.output_head.weight[view.target].double().numpy()
    divisor = np.sqrt(final.var() + norm.eps)

    def logit(stream: np.ndarray) -> float:
        return float(((stream - stream.mean()) / divisor * gain + shift) @ row)

    assert view.write is not None
    assert logit(final) == pytest.approx(trace.logits[13, view.target], abs=1e-4)
    assert view.effect == pytest.approx(logit(final + view.write) - logit(final), abs=1e-5)
    assert view.logit == pytest.approx(trace.logits[13, view.target])


@pytest.mark.parametrize(("name", "stack"), [("llama", "decoder"), ("gpt_oss", "decoder"), ("t5", "cross")])
def test_a_stream_under_an_rms_norm_is_the_logit(model_of, name, stack):
    """No mean and no bias is taken off there, so that the direction gives the whole logit (T5 shrinks its own)."""
    model = model_of(name)
    trace = traced(model)
    direction, note = logit_direction(model, trace, stack, 2, 7)
    assert direction is not None
    assert note == ""
    assert float(trace.residual["decoder"][-1][2] @ direction) == pytest.approx(float(trace.logits[2, 7]), abs=1e-4)


@pytest.mark.parametrize("name", ["gpt2_classifier", "gpt2_tagger", "llama_classifier", "llama_reward"])
def test_an_effect_on_a_class_is_the_change_with_the_divisor_held(model_of, name):
    """The classes of a decoder are one matrix behind its last normalisation, read at the last token."""
    model = model_of(name)
    trace = traced(model)
    query, last = len(trace.tokens) - 1, trace.sites[-1]
    head = next(child for part, child in model.module.named_children() if part in ("score", "classifier"))
    final = trace.residual["decoder"][-1][query].double()
    norm = model.module.get_submodule("transformer.ln_f" if name.startswith("gpt2") else "model.norm")
    is_rms = not isinstance(norm, torch.nn.LayerNorm)
    divisor = (final.square().mean() + norm.variance_epsilon if is_rms else final.var(unbiased=False) + norm.eps).sqrt()

    def logits(stream: torch.Tensor) -> torch.Tensor:
        normed = (stream if is_rms else stream - stream.mean()) / divisor * norm.weight.double()
        normed = normed if is_rms else normed + norm.bias.double()
        bias = torch.zeros(1) if head.bias is None else head.bias
        return torch.nn.functional.linear(normed, head.weight.double()) + bias.double()

    np.testing.assert_allclose(logits(final), trace.logits[query], atol=1e-4)
    for candidate in view_of(model, trace, "decoder", last.layer, 1, query, 2).candidates:
        view = view_of(model, trace, "decoder", last.layer, 1, query, 2, target=candidate.id)
        assert view.target_label == candidate.label == model.config.id2label[candidate.id]
        assert view.logit == pytest.approx(float(trace.logits[query, candidate.id]))
        change = logits(final + torch.tensor(view.write).double()) - logits(final)
        assert view.effect == pytest.approx(float(change[candidate.id]), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "stack", "said"),
    [
        ("bert_classifier", "encoder", "rescales"),
        ("bert_tagger", "encoder", "rescales"),
        ("gpt2_classifier", "decoder", "read off at"),
        ("story-bert", "encoder", "rescales"),
        ("gemma2", "decoder", "normalised or scaled"),
        ("marian", "decoder", "rescales"),
        ("t5", "encoder", "cross-attention"),
        ("bert_bare", "encoder", "no output head"),
    ],
)
def test_no_effect_has_a_reason(model_of, name, stack, said):
    model = model_of(name)
    view = view_of(model, traced(model), stack, 0, 0, 2, 1)
    assert view.effect is None
    assert view.head_effect is None
    assert said in view.effect_note
    assert view.write is not None


def test_layers_between_the_stream_and_the_classes_are_named(model_of):
    model = model_of("modernbert_classifier")
    trace = traced(model)
    assert logit_direction(model, trace, "encoder", 0, 1) == (None, IN_BETWEEN)


def test_candidates_are_those_of_the_prediction(story_gpt):
    trace = traced(story_gpt)
    view = view_of(story_gpt, trace, "decoder", 5, 5, 13, 1)
    wanted = predict(story_gpt, trace, [13], top=len(view.candidates))[0].candidates
    assert [(c.id, c.label, c.logit, c.rank) for c in view.candidates] == [
        (c.id, c.label, c.logit, c.rank) for c in wanted
    ]
    assert [c.probability for c in view.candidates] == pytest.approx([c.probability for c in wanted], abs=1e-7)
    assert view.target == wanted[0].id
    other = view_of(story_gpt, trace, "decoder", 5, 5, 13, 1, target=wanted[3].id)
    assert (other.target, other.target_label) == (wanted[3].id, wanted[3].label)
    assert other.effect != view.effect


REASONS: list[tuple[str, Sequence[Intervention], int, int, str]] = [
    ("story-gpt", (), 5, 2, ""),
    ("story-gpt", (), 2, 5, "causal: it comes later"),
    ("gemma2", (), 10, 1, "sliding window: it is too far away"),
    ("llama4", (), 8, 7, "it lies in a chunk before this one"),
    ("llama4", (), 7, 8, "causal: it comes later"),
    ("story-bert", (), 2, 5, ""),
    ("story-gpt", (Mask("none"),), 2, 5, "opened by the mask “none”"),
    ("story-gpt", (Mask("none"),), 5, 2, ""),
    ("story-gpt", (Mask("window", window=3),), 5, 2, "mask “window 3”"),
    ("story-gpt", (Mask("window", window=3),), 2, 3, "causal: it comes later"),
    ("story-gpt", (Mask("blocks", window=4),), 5, 2, "mask “blocks 4”"),
    ("story-gpt", (Mask("padding", window=2),), 13, 12, "mask “padding 2”"),
    ("story-gpt", (Mask("padding", window=2),), 2, 5, "causal: it comes later"),
    ("story-bert", (Mask("causal"),), 2, 5, "mask “causal”"),
    ("story-gpt", (Mask("painted", cells=((5, 2, False),)),), 5, 2, "painted over by hand"),
    ("story-gpt", (Mask("painted", cells=((2, 5, True),)),), 2, 5, "opened by hand"),
    ("story-gpt", (Mask("none"), Mask("painted", cells=((5, 2, False),))), 2, 5, "opened by the mask “none”"),
    ("story-gpt", (Mask("none"), Mask("window", window=3)), 2, 4, "opened by the mask “none”"),
    ("story-gpt", (Mask("window", window=3), Mask("none")), 5, 2, ""),
    ("story-gpt", (Mask("none", head=0), Mask("causal")), 2, 5, "opened by the mask “none”"),
    ("story-gpt", (Mask("prefix", window=6),), 2, 5, "opened by the mask “prefix 6”"),
    ("story-gpt", (Mask("causal", head=3),), 2, 5, "causal: it comes later"),
]


@pytest.mark.parametrize(("name", "interventions", "query", "key", "reason"), REASONS)
def test_why_a_cell_is_masked(model_of, name, interventions, query, key, reason):
    model = model_of(name)
    view = view_of(model, traced(model, *interventions), "encoder" if "bert" in name else "decoder", 0, 0, query, key)
    assert view.reason == reason
    assert view.masked == (bool(reason) and "opened" not in reason)


def test_a_decoder_of_two_stacks_looks_back_too(model_of):
    model = model_of("t5")
    assert view_of(model, traced(model), "decoder", 0, 0, 1, 2).reason == "causal: it comes later"


def test_a_factor_multiplies_the_scale(story_gpt):
    view = view_of(story_gpt, traced(story_gpt, Scale(0.5, head=5)), "decoder", 0, 5, 13, 1)
    assert view.factor == 0.5
    assert view.scaled == pytest.approx(0.5 * view.raw / np.sqrt(32), rel=1e-6)
    assert view.score == pytest.approx(view.scaled, rel=1e-5)


@pytest.mark.parametrize("name", ["story-gpt", "gpt_oss"])
def test_a_row_without_keys_is_zero_and_no_nan(model_of, name):
    model = model_of(name)
    painted = Mask("painted", cells=tuple((4, key, False) for key in range(60)))
    view = view_of(model, traced(model, painted), "decoder", 1, 2, 4, 1)
    has_sink = name == "gpt_oss"  # which then takes all of the row
    assert (view.shift is None) == (not has_sink)
    assert (view.numerator, view.denominator, view.weight) == (0.0, 1.0 if has_sink else 0.0, 0.0)
    assert not view.row_weights.any()
    assert not view.head_output.any()
    assert view.write_norm == 0.0
    assert view.effect == 0.0
    numbers = [getattr(view, field.name) for field in fields(view)]
    assert all(np.isfinite(n).all() for n in numbers if isinstance(n, (float, np.ndarray)))


def test_a_cell_outside_is_refused(story_gpt):
    trace = traced(story_gpt)
    for head, query, key in ((8, 0, 0), (0, 14, 0), (0, 0, -1)):
        with pytest.raises(IndexError, match="There is no cell"):
            view_of(story_gpt, trace, "decoder", 0, head, query, key)
    with pytest.raises(IndexError):
        view_of(story_gpt, trace, "decoder", 8, 0, 0, 0)


def test_arrays_are_read_only(story_gpt):
    view = view_of(story_gpt, traced(story_gpt), "decoder", 5, 5, 13, 1)
    arrays = [getattr(view, field.name) for field in fields(view)]
    assert not any(array.flags.writeable for array in arrays if isinstance(array, np.ndarray))


@pytest.mark.parametrize("part", ["attention", "mlp"])
def test_a_layer_that_is_switched_off_writes_nothing(story_gpt: Model, part: str) -> None:
    site = SiteRef("decoder", 5)
    trace = run(story_gpt, SENTENCE, interventions=[Ablation(part, SiteRef("", 5))])
    last = len(trace.tokens) - 1
    view = cell_view(CellRequest(run=1, site=site, head=5, query=last, key=0), story_gpt, trace)
    plain = cell_view(CellRequest(run=1, site=site, head=5, query=last, key=0), story_gpt, run(story_gpt, SENTENCE))
    assert (view.weight, view.raw) == (plain.weight, plain.raw)
    if part == "mlp":
        assert view.write_norm == plain.write_norm
        return
    assert view.write_norm == view.head_write_norm == 0
    assert view.effect is view.head_effect is None
    assert "attention off, decoder layer 5" in view.effect_note
