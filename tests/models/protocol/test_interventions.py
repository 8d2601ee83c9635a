"""Interventions: each one against transformers' own eager attention with the same change made by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_models as models
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation, head_skip, parse_skip
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.interventions import (
    Intervention,
    Mask,
    Positions,
    Scale,
    applies,
    check,
    describe,
    effective_masks,
    factor_at,
    is_neutral,
    parse_mask,
    precedence,
    same_slot,
)
from attention_models.protocol.values import MOST, Site, SiteRef
from attention_models.views.cell import cell_view
from tests.models.tiny import SENTENCE, eager

TOLERANCE = 1e-5
LAYER, HEAD = 2, 1
DECODER = Site("decoder", 2, heads=4, key_heads=4, head_dim=8, queries=6, keys=6, causal=True)
loose: Any = Mask
"""As a notebook writes it: a pair for a site, pairs for cells."""
LOWEST = torch.finfo(torch.float32).min


def allowed_by(kind: str, window: int | None, causal: bool, n: int) -> np.ndarray:
    """(queries, keys) True where looking is allowed, written out cell by cell."""
    allowed = np.zeros((n, n), bool)
    for q in range(n):
        for k in range(n):
            trained = k <= q if causal else True
            allowed[q, k] = {
                "none": True,
                "full": True,
                "causal": k <= q,
                "padding": trained and k < n - (window or 0),
                "window": trained and abs(q - k) < (window or 0),
                "blocks": trained and q // (window or 1) == k // (window or 1),
                "prefix": k <= q or k < (window or 0),
            }[kind]
    return allowed


def added(allowed: np.ndarray) -> torch.Tensor:
    """The 4D mask that transformers' eager attention adds: (1, 1, queries, keys)."""
    return torch.zeros(1, 1, *allowed.shape).masked_fill(~torch.from_numpy(allowed), LOWEST)


@torch.no_grad()
def eager_logits(model: Model, text: str, mask: torch.Tensor | None = None, module: Any = None) -> np.ndarray:
    inputs = dict(model.encode(text).inputs)
    if mask is not None:
        inputs["attention_mask"] = mask
    logits: np.ndarray = (module or eager(model))(**inputs).logits[0].numpy()
    return logits


Change = Callable[[Any, dict[str, Any]], dict[str, Any]]


@pytest.fixture
def patched_eager(monkeypatch: pytest.MonkeyPatch) -> Callable[[Model, Change], None]:
    """Let `change(module, arguments)` rewrite what the eager attention function of a model's family is given."""

    def patch(model: Model, change: Change) -> None:
        source = sys.modules[type(model.module).__module__]
        original = source.eager_attention_forward

        def changed(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any) -> Any:
            given = {"query": query, "key": key, "value": value, "attention_mask": attention_mask, **kwargs}
            return original(module, **change(module, given))

        monkeypatch.setattr(source, "eager_attention_forward", changed)

    return patch


KINDS: list[tuple[str, int | None]] = [
    ("none", None),
    ("full", None),
    ("causal", None),
    ("padding", 3),
    ("window", 3),
    ("window", 1),
    ("blocks", 4),
    ("prefix", 5),
]


@pytest.mark.short("story_gpt-*", "story_bert-padding-3")
@pytest.mark.parametrize(("kind", "window"), KINDS)
@pytest.mark.parametrize("name", ["story_gpt", "story_bert"])
def test_each_mask_is_a_hand_built_mask_in_eager(name, kind, window, request):
    model = request.getfixturevalue(name)
    text = SENTENCE if name == "story_gpt" else "Tom lost his [MASK] in the park. He was sad."
    trace = models.run(model, text, interventions=[Mask(kind, window=window)])
    allowed = allowed_by(kind, window, name == "story_gpt", len(trace.tokens))
    np.testing.assert_allclose(trace.logits, eager_logits(model, text, added(allowed)), atol=TOLERANCE, rtol=TOLERANCE)
    for site in trace.sites:
        weights = trace.weights(site, 0)
        assert not weights[~allowed].any()
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)


@pytest.mark.short("gpt2-*", "gemma2-none-None-1", "bert-padding-2-1")
@pytest.mark.parametrize("head", [None, HEAD])
@pytest.mark.parametrize(("kind", "window"), [("none", None), ("window", 3), ("padding", 2)])
@pytest.mark.parametrize("name", ["story_gpt", "story_bert", "gpt2", "llama", "gemma2", "bert"])
def test_a_mask_of_one_layer_or_head(name, kind, window, head, request, tiny_model, patched_eager):
    model = request.getfixturevalue(name) if "story" in name else tiny_model(name)
    text = "Tom and Anna went to the park."
    stack = "encoder" if "bert" in name else "decoder"
    site = SiteRef(stack, 1)  # where Gemma 2 has no sliding window of its own
    trace = models.run(model, text, interventions=[Mask(kind, window=window, site=site, head=head)])
    allowed = allowed_by(kind, window, stack == "decoder", len(trace.tokens))

    def change(module: Any, given: dict[str, Any]) -> dict[str, Any]:
        if module.layer_idx == 1:
            trained, edit = given["attention_mask"], added(allowed)
            heads = given["query"].shape[1]
            trained = torch.zeros_like(edit) if trained is None else trained
            per_head = trained.expand(1, heads, *edit.shape[2:]).clone()
            chosen = slice(None) if head is None else slice(head, head + 1)
            per_head[:, chosen] = edit
            given["attention_mask"] = per_head
        return given

    patched_eager(model, change)
    np.testing.assert_allclose(trace.logits, eager_logits(model, text), atol=TOLERANCE, rtol=TOLERANCE)


def test_t5_with_its_bias_under_a_window(tiny_model, patched_eager):
    model = tiny_model("t5")
    item = Mask("window", window=2, site=SiteRef("encoder", 0))
    trace = models.run(model, SENTENCE, interventions=[item, Scale(0.5, site=SiteRef("encoder", 1), head=3)])
    allowed = added(allowed_by("window", 2, False, len(trace.source)))
    seen: list[Any] = []

    def change(module: Any, given: dict[str, Any]) -> dict[str, Any]:
        if module not in seen:
            seen.append(module)
        if seen.index(module) == 0:
            given["attention_mask"] = allowed
        if seen.index(module) == 1:
            given["query"] = given["query"].clone()
            given["query"][:, 3] *= 0.5
        return given

    patched_eager(model, change)
    np.testing.assert_allclose(trace.logits, eager_logits(model, SENTENCE), atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.short("story_gpt-0.25", "llama-0.0", "gemma2-2.0", "t5-0.25")
@pytest.mark.parametrize("factor", [0.25, 1.0, 2.0, 0.0])
@pytest.mark.parametrize("name", ["story_gpt", "story_bert", "llama", "gemma2", "t5"])
def test_a_scale_is_the_scaling_of_the_eager_model(name, factor, request, tiny_model):
    model = request.getfixturevalue(name) if "story" in name else tiny_model(name)
    trace = models.run(model, SENTENCE, interventions=[Scale(factor)])
    module = eager(model)
    for part in module.modules():
        if hasattr(part, "scaling"):
            part.scaling *= factor
    expected = eager_logits(model, SENTENCE, module=module)
    np.testing.assert_allclose(trace.logits, expected, atol=TOLERANCE, rtol=TOLERANCE)


@torch.no_grad()
def test_a_scale_of_one_head_is_its_query_weights_scaled(story_gpt):
    factor, site = 0.3, SiteRef("decoder", 5)
    trace = models.run(story_gpt, SENTENCE, interventions=[Scale(factor, site=site, head=5)])
    module = eager(story_gpt)
    projection = module.transformer.h[5].attn.c_attn  # (width, 3 * width): queries first
    head = slice(5 * 32, 6 * 32)
    projection.weight[:, head] *= factor
    projection.bias[head] *= factor
    expected = eager_logits(story_gpt, SENTENCE, module=module)
    np.testing.assert_allclose(trace.logits, expected, atol=TOLERANCE, rtol=TOLERANCE)


def test_factors_multiply_and_0_makes_rows_even(story_gpt):
    site = SiteRef("decoder", 5)
    both = models.run(story_gpt, SENTENCE, interventions=[Scale(0.5), Scale(0.5, site=site)])
    factors = [both.inputs[layer].factors for layer in (4, 5)]
    assert [None if f is None else f.tolist() for f in factors] == [[0.5] * 8, [0.25] * 8]
    even = models.run(story_gpt, SENTENCE, interventions=[Scale(0, site=site, head=5)]).weights(site, 5)
    rows = np.arange(1, len(even) + 1)
    np.testing.assert_allclose(even, np.tril(np.ones_like(even)) / rows[:, None], atol=1e-7)


@pytest.mark.parametrize(
    "nothing", [(), (Scale(1),), (Mask("trained"),), (Scale(1), Mask("trained", site=SiteRef("decoder", 1)))]
)
def test_what_changes_nothing_leaves_every_bit(story_gpt, nothing):
    plain = models.run(story_gpt, SENTENCE)
    edited = models.run(story_gpt, SENTENCE, interventions=nothing)
    np.testing.assert_array_equal(edited.logits, plain.logits)
    np.testing.assert_array_equal(edited.weights(("decoder", 5), 5), plain.weights(("decoder", 5), 5))


def test_painted_cells_block_and_allow(story_gpt, patched_eager):
    cells = ((13, 1), (12, 1, False), (3, 9, True), (13, 1, True), (500, 3))  # one twice, one beyond the text
    site = SiteRef("decoder", LAYER)
    trace = models.run(story_gpt, SENTENCE, interventions=[loose("painted", cells=cells, site=site, head=HEAD)])
    masked = trace.masked(site, HEAD)
    expected = np.triu(np.ones_like(masked), 1)
    expected[12, 1], expected[3, 9] = True, False
    np.testing.assert_array_equal(masked, expected)
    np.testing.assert_array_equal(trace.masked(site, 0), np.triu(np.ones_like(masked), 1))

    def change(module: Any, given: dict[str, Any]) -> dict[str, Any]:
        if module.layer_idx == LAYER:
            given["attention_mask"] = given["attention_mask"].expand(1, 8, -1, -1).clone()
            given["attention_mask"][0, HEAD] = added(~expected)[0, 0]
        return given

    patched_eager(story_gpt, change)
    np.testing.assert_allclose(trace.logits, eager_logits(story_gpt, SENTENCE), atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("name", ["story_gpt", "gemma2", "gpt_oss"])
def test_a_row_that_may_look_at_nothing_has_weights_of_0_and_finite_logits(name, request, tiny_model):
    model = request.getfixturevalue(name) if "story" in name else tiny_model(name)
    trace = models.run(model, SENTENCE, interventions=[Mask("padding", window=1000)])
    assert np.isfinite(trace.logits).all()
    for site in trace.sites:
        masked = trace.masked(site, 0)
        assert masked is not None
        assert masked.all()
        assert not trace.weights(site, 0).any()


@pytest.mark.parametrize(
    ("kind", "padding"), [("gpt2", "right"), ("bert", "right"), ("llama", "right"), ("llama", "left")]
)
def test_the_last_tokens_of_a_text_are_the_same_within_a_batch(tiny_model, kind, padding):
    """And not what fills it up to the length of the longest: a corpus is run in batches, and told as text by text."""
    model, edits = tiny_model(kind), [Mask("padding", window=2)]
    short = "Tom and Anna went."
    alone = models.run(model, short, interventions=edits)
    within = models.run(model, [SENTENCE, short], padding=padding, interventions=edits)[1]
    real = [i for i, token in enumerate(within.tokens) if not token.padding]
    for site in alone.sites:
        ours = within.weights(site, 1)[np.ix_(real, real)]
        np.testing.assert_allclose(ours, alone.weights(site, 1), atol=TOLERANCE)
    query, site = real[-1], within.sites[0]
    masked = cell_view(CellRequest(run=1, site=site.ref, head=1, query=query, key=real[-2]), model, within)
    assert masked.masked
    assert masked.reason == "mask “padding 2”"


def test_masks_build_on_wider_ones_and_paint_comes_last(story_gpt):
    site = SiteRef("decoder", 5)
    listed = [
        loose("painted", cells=((0, 0), (0, 7, True)), site=site),
        Mask("window", window=2, site=site, head=5),
        Mask("none"),
    ]
    trace = models.run(story_gpt, SENTENCE, interventions=listed)
    n = len(trace.tokens)
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    band = distance >= 2  # in both directions: the window of the head cuts what "none" opened
    band[0, 0], band[0, 7] = True, False
    np.testing.assert_array_equal(trace.masked(site, 5), band)
    painted = np.zeros_like(band)
    painted[0, 0] = True
    np.testing.assert_array_equal(trace.masked(site, 4), painted)
    assert trace.masked(("decoder", 4), 5) is None
    again = models.run(story_gpt, SENTENCE, interventions=listed[::-1])
    np.testing.assert_array_equal(again.logits, trace.logits)
    assert sorted(listed, key=precedence) == listed[::-1]


def test_masks_of_one_scope_build_on_each_other_in_order(story_gpt):
    both = models.run(story_gpt, SENTENCE, interventions=[Mask("window", window=4), Mask("padding", window=2)])
    n = len(both.tokens)
    expected = ~(allowed_by("window", 4, True, n) & allowed_by("padding", 2, True, n))
    np.testing.assert_array_equal(both.masked(("decoder", 0), 0), expected)
    opened = models.run(story_gpt, SENTENCE, interventions=[Mask("window", window=4), Mask("full")])
    assert opened.masked(("decoder", 0), 0) is None


def test_a_mask_everywhere_leaves_cross_attention_alone(tiny_model):
    everywhere = Mask("causal")
    cross = Site("cross", 0, heads=4, key_heads=4, head_dim=8, queries=3, keys=6)
    assert applies(everywhere, DECODER)
    assert not applies(everywhere, cross)
    assert applies(loose("causal", site=cross), cross)
    assert applies(Scale(0.5), cross)
    trace = models.run(tiny_model("t5"), SENTENCE, interventions=[everywhere])
    assert trace.masked(("cross", 0), 0) is None
    assert trace.masked(("encoder", 0), 0) is not None


# --------------------------------------------------------------------------- the values themselves


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Scale(-1), r"A scale factor of -1 would make the worst fit the best: give 0 .* or more\."),
        (lambda: Scale(float("nan")), "A scale factor of nan"),
        (lambda: Scale(float("inf")), "A scale factor of inf"),
        (lambda: loose("diagonal"), "There is no mask “diagonal”: choose one of trained, none, causal, "),
        (lambda: Mask("window"), r"A “window” mask needs a number from 1 to .*how many tokens back[^)]*\)\.$"),
        (lambda: Mask("window", window=0), r"A “window” mask needs a number from 1 to 1,048,576 .*, not 0\."),
        (lambda: Mask("blocks", window=MOST + 1), "A “blocks” mask needs a number from 1 to"),
        (lambda: Mask("causal", window=3), "A “causal” mask takes no number"),
        (lambda: Mask("painted"), "a painted mask needs cells"),
        (lambda: loose("none", cells=((0, 0),)), "Cells go with a painted mask"),
        (lambda: loose("painted", cells=((-1, 0),)), r"There is no cell \(-1, 0\): tokens count from 0"),
        (lambda: loose("painted", cells=((0, MOST),)), r"There is no cell \(0, 1048576\)"),
        (lambda: parse_mask("window:many"), "“window:many” is no mask: after the colon comes a number, as in window:8"),
        (lambda: parse_mask("window"), "A “window” mask needs a number"),
        (lambda: parse_mask("painted"), "A painted mask cannot be written here"),
        (lambda: parse_mask(""), "There is no mask “”"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (Scale(0.5, site=SiteRef("decoder", 9)), r"“scores × 0\.5, decoder layer 9”: this model has no such layer\."),
        (Scale(0.5, site=SiteRef("encoder", 0)), "this model has no such layer"),
        (Mask("none", site=SiteRef("decoder", 2), head=4), r"head 4”: there are only heads 0 to 3\."),
        (Mask("none", head=-1), "there are only heads 0 to 3"),
    ],
)
def test_a_place_that_did_not_run_is_named(item, sentence):
    with pytest.raises(ValueError, match=sentence):
        check([Positions("off"), item], [DECODER])
    check([Scale(0.5, site=DECODER.ref, head=3), Positions("off")], [DECODER])


def test_run_refuses_a_place_that_the_model_lacks(story_gpt):
    with pytest.raises(ValueError, match="this model has no such layer"):
        models.run(story_gpt, "Tom", interventions=[Scale(0.5, site=SiteRef("decoder", 8))])


@pytest.mark.parametrize(
    ("text", "mask"),
    [("causal", Mask("causal")), ("window:8", Mask("window", window=8)), ("full", Mask("full"))],
)
def test_a_mask_as_it_is_written(text, mask):
    assert parse_mask(text) == mask


@pytest.mark.parametrize(
    ("text", "skip"),
    [
        ("5.mlp", Ablation("mlp", SiteRef("", 5))),
        ("5.attention", Ablation("attention", SiteRef("", 5))),
        ("encoder.2.mlp", Ablation("mlp", SiteRef("encoder", 2))),
        ("decoder.0.cross", Ablation("cross", SiteRef("decoder", 0))),
        ("5.norm1", Ablation("norm1", SiteRef("", 5))),
        ("5.head3", Ablation("head", SiteRef("", 5), 3)),
        ("cross.2.head0:mean", Ablation("head", SiteRef("cross", 2), 0, "mean")),
        ("encoder.2.neuron17:4", Ablation("neuron", SiteRef("encoder", 2), 17, "position", 4)),
        ("5.layer", Ablation("layer", SiteRef("", 5))),
        ("5.mlp:zero", Ablation("mlp", SiteRef("", 5))),
    ],
)
def test_a_part_of_a_block_as_it_is_written(text, skip):
    assert parse_skip(text) == skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mlp", "“mlp” names no part of a block: write the layer and the part, as in 5.mlp"),
        ("-1.mlp", "“-1.mlp” names no part"),
        ("5", "“5” names no part"),
        ("", "“” names no part"),
        ("5.ffn", "A block has no part “ffn” that could be switched off: choose attention, cross, mlp, head, neuron, "),
        ("5.head", "Say which head, counted from 0, as in head3."),
        ("cross.2.neuron4", "“cross” is no stack of blocks"),
        ("5.mlp:half", "after the colon stands mean, zero, or the number of a position, as in 5.mlp:0"),
        ("5.norm1:mean", "Of a norm the gain is left out; it is held at nothing else"),
        ("5.mlp:99999999", "Say at which position, counted from 0: not 99999999"),
        ("5.norm", "no part “norm”"),
        ("5.norm0", "no part “norm0”"),
        ("5.norm12", "no part “norm12”"),
        ("cross.2.mlp", "“cross” is no stack of blocks: choose decoder or encoder. Cross-attention is a part"),
        ("99999999.mlp", "There is no block 99999999"),
    ],
)
def test_what_names_no_part_of_a_block_is_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=r"\.$") as error:
        parse_skip(text)
    assert sentence in str(error.value)


def test_a_block_may_be_named_in_several_ways():
    named: Any = Ablation
    whole = Ablation("mlp", SiteRef("decoder", 2))
    assert named("mlp", ("decoder", 2)) == named("mlp", DECODER) == whole
    assert named("mlp", 2) == Ablation("mlp", SiteRef("", 2)) != whole
    assert named("mlp", 2).of_stack("decoder") == whole == whole.of_stack("encoder")


def test_which_heads_are_replaced():
    skips = [
        Ablation("attention", SiteRef("", 1)),
        Ablation("cross", SiteRef("decoder", 2)),
        Ablation("mlp", DECODER.ref),
        Ablation("layer", SiteRef("decoder", 3)),
        Ablation("head", SiteRef("cross", 0), 1, fill="mean"),
    ]
    off = [
        (stack, layer, head)
        for stack in ("encoder", "decoder", "cross")
        for layer in range(4)
        for head in range(2)
        if head_skip(skips, SiteRef(stack, layer), head, "decoder")
    ]
    whole = [("decoder", 1), ("decoder", 3), ("cross", 2), ("cross", 3)]
    assert sorted(off) == sorted([("cross", 0, 1), *((*at, head) for at in whole for head in range(2))])
    on = Ablation("attention", SiteRef("decoder", 1), on=True)
    assert head_skip([on], SiteRef("decoder", 1), 0, "decoder") is None


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Scale(0.5), "scores × 0.5, everywhere"),
        (Scale(0.5, head=3), "scores × 0.5, head 3 of every layer"),
        (Scale(1 / 3, site=SiteRef("decoder", 5), head=3), "scores × 0.333, decoder layer 5, head 3"),
        (Mask("window", window=8, site=SiteRef("cross", 0)), "mask: window 8, cross layer 0"),
        (Mask("none"), "mask: none, everywhere"),
        (loose("painted", cells=((0, 0),)), "1 painted cell, everywhere"),
        (loose("painted", cells=((0, 0), (1, 0))), "2 painted cells, everywhere"),
        (Positions("off"), "positions off"),
        (Positions("shift", by=4), "positions from 4"),
        (Ablation("mlp", SiteRef("decoder", 5)), "feed-forward network off, decoder layer 5"),
        (Ablation("cross", SiteRef("decoder", 0)), "cross-attention off, decoder layer 0"),
        (Ablation("norm2", SiteRef("encoder", 1)), "gain of norm 2 off, encoder layer 1"),
        (Ablation("attention", SiteRef("", 3)), "attention off, layer 3"),
    ],
)
def test_each_says_what_it_does(item, words):
    assert describe(item) == words


def test_a_slot_is_a_knob_in_a_scope():
    layer = SiteRef("decoder", 1)
    assert same_slot(Scale(0.5), Scale(2))
    assert not same_slot(Scale(0.5), Scale(0.5, site=layer))
    assert not same_slot(Scale(0.5, site=layer), Scale(0.5, site=layer, head=0))
    assert not same_slot(Scale(0.5), Mask("none"))
    assert same_slot(Mask("none", site=layer), Mask("window", window=3, site=layer))
    assert not same_slot(loose("none"), loose("painted", cells=((0, 0),)))
    assert same_slot(loose("painted", cells=((0, 0),)), loose("painted", cells=((1, 0),)))
    assert same_slot(Positions("off"), Positions("shift", by=3))
    assert same_slot(Ablation("mlp", layer), Ablation("mlp", layer, on=True))
    assert not same_slot(Ablation("mlp", layer), Ablation("attention", layer))
    assert not same_slot(Ablation("mlp", layer), Ablation("mlp", SiteRef("decoder", 2)))


def test_as_trained_is_neutral():
    neutral: list[Intervention] = [Scale(1), Mask("trained"), Positions("shift"), Ablation("mlp", DECODER.ref, on=True)]
    assert all(is_neutral(item) for item in neutral)
    assert not is_neutral(Ablation("mlp", DECODER.ref))
    assert not any(is_neutral(item) for item in (Scale(0), Mask("none"), Positions("off"), Positions("shift", by=1)))


def test_they_are_frozen_hashable_and_take_a_site_in_any_form():
    item = loose("window", window=8, site=("decoder", 2), head=1)
    assert item == loose("window", window=8, site=DECODER, head=1)
    assert {item, Scale(0.5, site=DECODER)} == {item, Scale(0.5, site=SiteRef("decoder", 2))}  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        item.window = 3
    assert replace(item, window=3).window == 3
    assert loose("painted", cells=((1, 2), (3, 4, True))).cells == ((1, 2, False), (3, 4, True))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=30))
def test_of_a_cell_painted_twice_the_last_counts(cells):
    from attention_models.attention.attention import masked_cells
    from attention_models.attention.edits import edited
    from attention_models.attention.inputs import AttentionInputs

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 4, 6, 8) for _ in range(3))
    x = edited(AttentionInputs(q, k, v, scale=1.0, causal=True), DECODER, [Mask("painted", cells=tuple(cells))])
    expected = np.triu(np.ones((6, 6), bool), 1)
    for query, key, allow in cells:
        if query < 6 and key < 6:
            expected[query, key] = not allow
    shut = masked_cells(x)
    assert shut is not None
    np.testing.assert_array_equal(shut[0, 0].numpy(), expected)


def test_a_mask_that_replaces_covers_the_wider_ones_before_it():
    site = SiteRef("decoder", 5)
    window, head, paint = Mask("window", window=4), Mask("none", site=site, head=5), loose("painted", cells=((0, 0),))
    assert effective_masks([head, window]) == [head]
    assert effective_masks([paint, window]) == [window, paint]
    assert effective_masks([paint, head, Mask("blocks", window=2, site=site)]) == [head, paint]
    assert effective_masks([]) == []


def test_the_factor_at_a_head_is_the_product_of_all_that_apply():
    scales: list[Intervention] = [
        Scale(0.5),
        Scale(4, site=DECODER.ref),
        Scale(3, head=1),
        Scale(9, site=SiteRef("decoder", 0)),
        Mask("none"),
    ]
    assert factor_at(scales, DECODER, 0) == 2
    assert factor_at(scales, DECODER, 1) == 6
    assert factor_at([], DECODER, 0) == 1
