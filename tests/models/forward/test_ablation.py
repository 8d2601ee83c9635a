"""Heads, neurons and layers replaced: transformers' own eager forward, changed by hooks of its own, gives the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attention_models import open_checkpoint, run
from attention_models.decoding.cached_run import CachedRun, start_run
from attention_models.forward.ablation import mean_inputs, mean_sentences
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation, Fill
from attention_models.protocol.errors import InputError
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.eager import target_for
from tests.models.tiny import TinyModel

ATOL = 1e-5

LAYER = 1

MATRICES = {  # where a family keeps W_O and the last matrix of the feed-forward network of block 1
    "gpt2": ("transformer.h.1.attn.c_proj", "transformer.h.1.mlp.c_proj"),
    "llama": ("model.layers.1.self_attn.o_proj", "model.layers.1.mlp.down_proj"),
    "gemma2": ("model.layers.1.self_attn.o_proj", "model.layers.1.mlp.down_proj"),
    "gpt_neox": ("gpt_neox.layers.1.attention.dense", "gpt_neox.layers.1.mlp.dense_4h_to_h"),
    "opt": ("model.decoder.layers.1.self_attn.out_proj", "model.decoder.layers.1.fc2"),
    "bert": ("bert.encoder.layer.1.attention.output.dense", "bert.encoder.layer.1.output.dense"),
    "distilbert": ("distilbert.transformer.layer.1.attention.out_lin", "distilbert.transformer.layer.1.ffn.lin2"),
    "t5": ("decoder.block.1.layer.0.SelfAttention.o", "decoder.block.1.layer.2.DenseReluDense.wo"),
    "marian": ("model.decoder.layers.1.self_attn.out_proj", "model.decoder.layers.1.fc2"),
}


def reads(theirs: nn.Module, name: str, edit: Callable[[Tensor], None]) -> nn.Module:
    """transformers' model whose matrix `name` is given what `edit` makes of its input, (batch, tokens, n)."""

    def hook(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        read = args[0].clone()
        edit(read if read.dim() == 3 else read[None])
        return (read, *args[1:])

    theirs.get_submodule(name).register_forward_pre_hook(hook)
    return theirs


def said(model: Model, theirs: Any) -> np.ndarray:
    with torch.no_grad():
        out = theirs(**model.encode(tiny.SENTENCE, target_for(model)).inputs)
    given: Tensor = out.logits if getattr(out, "logits", None) is not None else out.last_hidden_state
    return given[0].numpy()


def ours(model: Model, *skips: Ablation) -> np.ndarray:
    trace = run(model, tiny.SENTENCE, target=target_for(model), interventions=skips)
    if trace.has_logits:
        return trace.logits
    assert trace.last_hidden is not None
    return trace.last_hidden.numpy()


def assert_same(model: Model, expected: np.ndarray, *skips: Ablation) -> None:
    size = max(1.0, float(np.abs(expected).max()))
    found = ours(model, *skips)
    assert np.abs(found - expected).max() / size < ATOL
    assert np.abs(ours(model) - expected).max() / size > 10 * ATOL


def slice_of(model: Model, head: int) -> slice:
    site = next(s for s in run(model, tiny.SENTENCE, target=target_for(model)).sites)
    size = site.head_dim
    return slice(head * size, (head + 1) * size)


@pytest.mark.parametrize("kind", MATRICES)
def test_a_head_that_is_off_is_a_slice_of_zeros_before_w_o(tiny_model: TinyModel, kind: str) -> None:
    model, here = tiny_model(kind), slice_of(tiny_model(kind), 1)
    theirs = reads(tiny.eager(model), MATRICES[kind][0], lambda read: read[..., here].zero_())  # type: ignore[arg-type]
    assert_same(model, said(model, theirs), Ablation("head", SiteRef(model.info.predicting_stack, LAYER), 1))


@pytest.mark.parametrize("kind", MATRICES)
def test_a_neuron_that_is_off_is_a_zero_before_the_last_matrix(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    ref = SiteRef(model.info.predicting_stack, LAYER)
    neurons = range(0, 12)  # one alone changes little of a tiny model

    def edit(read: Tensor) -> None:
        read[..., list(neurons)] = 0.0

    theirs = reads(tiny.eager(model), MATRICES[kind][1], edit)
    assert_same(model, said(model, theirs), *(Ablation("neuron", ref, neuron) for neuron in neurons))


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2", "bert", "t5"])
def test_what_is_held_at_a_position_is_everywhere_as_there(tiny_model: TinyModel, kind: str) -> None:
    model, here = tiny_model(kind), slice_of(tiny_model(kind), 1)
    ref, (w_o, last) = SiteRef(model.info.predicting_stack, LAYER), MATRICES[kind]

    def pin_head(read: Tensor) -> None:
        read[..., here] = read[:, 2:3, here].clone()

    def pin_neuron(read: Tensor) -> None:
        read[..., 3] = read[:, 2:3, 3].clone()

    theirs = reads(reads(tiny.eager(model), w_o, pin_head), last, pin_neuron)
    skips = Ablation("head", ref, 1, "position", 2), Ablation("neuron", ref, 3, "position", 2)
    assert_same(model, said(model, theirs), *skips)

    def pin_all(_module: nn.Module, _args: Any, out: Tensor) -> Tensor:
        return out[:, 2:3].expand_as(out)

    whole: Any = tiny.eager(model)
    if kind == "gemma2":  # what is written is normalised, each position by itself
        last = "model.layers.1.post_feedforward_layernorm"
    whole.get_submodule(last).register_forward_hook(pin_all)
    assert_same(model, said(model, whole), Ablation("mlp", ref, None, "position", 2))


@pytest.mark.short("llama", "t5")
@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "t5", "marian"])
def test_what_is_held_at_its_mean_gives_the_mean_over_our_sentences(tiny_model: TinyModel, kind: str) -> None:
    model, here = tiny_model(kind), slice_of(tiny_model(kind), 1)
    ref, (w_o, last) = SiteRef(model.info.predicting_stack, LAYER), MATRICES[kind]
    seen: dict[str, list[Tensor]] = {"heads": [], "neurons": [], "writes": []}
    theirs: Any = tiny.eager(model)
    hooks = [
        theirs.get_submodule(w_o).register_forward_pre_hook(lambda _, args: seen["heads"].append(args[0][..., here])),
        theirs.get_submodule(last).register_forward_pre_hook(lambda _, args: seen["neurons"].append(args[0][..., 3])),
        theirs.get_submodule(last).register_forward_hook(lambda *args: seen["writes"].append(args[2])),
    ]
    with torch.no_grad():
        for encoded in mean_inputs(model):
            theirs(**encoded.inputs)
    for hook in hooks:
        hook.remove()
    head = torch.cat([t.flatten(0, 1) for t in seen["heads"]]).double().mean(dim=0).float()
    neuron = torch.cat([t.flatten() for t in seen["neurons"]]).double().mean().float()
    write = torch.cat([t.flatten(0, 1) for t in seen["writes"]]).double().mean(dim=0).float()

    def mean_head(read: Tensor) -> None:
        read[..., here] = head

    def mean_neuron(read: Tensor) -> None:
        read[..., 3] = neuron

    changed = reads(reads(tiny.eager(model), w_o, mean_head), last, mean_neuron)
    assert_same(model, said(model, changed), Ablation("head", ref, 1, "mean"), Ablation("neuron", ref, 3, "mean"))
    whole: Any = tiny.eager(model)
    whole.get_submodule(last).register_forward_hook(lambda _m, _a, out: write.expand_as(out))
    assert_same(model, said(model, whole), Ablation("mlp", ref, fill="mean"))


@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
def test_a_layer_that_is_off_is_all_of_its_sublayers(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    ref = SiteRef(model.info.predicting_stack, LAYER)
    parts = ("attention", "mlp", *(("cross",) if model.seq2seq else ()))
    one_by_one = ours(model, *(Ablation(part, ref) for part in parts))
    np.testing.assert_array_equal(ours(model, Ablation("layer", ref)), one_by_one)
    kept = ours(model, Ablation("layer", ref), Ablation("mlp", ref, fill="mean"))
    without = [part for part in parts if part != "mlp"]
    np.testing.assert_array_equal(
        kept, ours(model, *(Ablation(p, ref) for p in without), Ablation("mlp", ref, fill="mean"))
    )


def test_all_heads_that_are_off_leave_the_bias_of_w_o(story_gpt: Model) -> None:
    theirs: Any = tiny.eager(story_gpt)
    with torch.no_grad():
        theirs.transformer.h[3].attn.c_proj.weight.fill_(0.0)
    ref = SiteRef("decoder", 3)
    assert_same(story_gpt, said(story_gpt, theirs), *(Ablation("head", ref, head) for head in range(8)))


def test_ablating_nothing_changes_no_bit(story_gpt: Model) -> None:
    ref = SiteRef("decoder", 3)
    on = [
        Ablation("head", ref, 1, on=True),
        Ablation("neuron", ref, 5, "mean", on=True),
        Ablation("layer", ref, on=True),
    ]
    np.testing.assert_array_equal(ours(story_gpt, *on), ours(story_gpt))
    run(story_gpt, tiny.SENTENCE, interventions=[Ablation("head", ref, 1, "mean")])  # means are measured
    np.testing.assert_array_equal(ours(story_gpt), ours(story_gpt, *on))


def test_cross_attention_has_heads_of_its_own(tiny_model: TinyModel) -> None:
    model, here = tiny_model("marian"), slice_of(tiny_model("marian"), 0)
    name = "model.decoder.layers.1.encoder_attn.out_proj"
    theirs = reads(tiny.eager(model), name, lambda read: read[..., here].zero_())  # type: ignore[arg-type]
    assert_same(model, said(model, theirs), Ablation("head", SiteRef("cross", LAYER), 0))


def test_of_shared_keys_one_query_head_is_off(tiny_model: TinyModel) -> None:
    model = tiny_model("llama")
    site = run(model, tiny.SENTENCE).sites[LAYER]
    assert site.key_heads < site.heads
    one, other = (ours(model, Ablation("head", site.ref, head)) for head in (0, 1))
    assert np.abs(one - other).max() > 1e-4


@pytest.mark.parametrize("fill", ["zero", "mean", "position"])
def test_what_is_written_step_by_step_is_what_a_whole_pass_says(story_gpt: Model, fill: Fill) -> None:
    at = 1 if fill == "position" else None
    skips = [
        Ablation("head", SiteRef("decoder", 2), 3, fill, at),
        Ablation("neuron", SiteRef("decoder", 1), 7, fill, at),
    ]
    skips.append(Ablation("mlp", SiteRef("decoder", 4), None, fill, at))
    writing = start_run(story_gpt, story_gpt.encode(tiny.SENTENCE), skips)
    assert isinstance(writing, CachedRun)
    assert (writing.prevents_caching is not None) == (fill == "position")
    for _ in range(3):
        logits = writing.logits()
        whole = run(story_gpt, writing.ids[0].tolist(), interventions=skips)
        np.testing.assert_allclose(logits[0].numpy(), whole.logits[-1], atol=1e-4)
        writing.append(logits.argmax(dim=-1))


def test_of_a_batch_each_text_is_as_alone(story_gpt: Model) -> None:
    skips = [Ablation("head", SiteRef("decoder", 2), 3), Ablation("mlp", SiteRef("decoder", 1), None, "position", 0)]
    texts = ["Tom and Anna went to the park.", "The cat"]
    for trace, text in zip(run(story_gpt, texts, interventions=skips), texts, strict=True):
        alone = run(story_gpt, text, interventions=skips).logits
        np.testing.assert_allclose(trace.logits[: len(alone)], alone, atol=1e-4)


@pytest.mark.parametrize(
    ("skip", "sentence"),
    [
        (Ablation("head", SiteRef("decoder", 2), 8), "there are only heads 0 to 7"),
        (Ablation("head", SiteRef("decoder", 8), 0), "this model has no such layer"),
        (Ablation("head", SiteRef("cross", 0), 0), "this model has no such layer"),
        (Ablation("neuron", SiteRef("decoder", 2), 99999), "there are only neurons 0 to 1,023"),
        (Ablation("head", SiteRef("decoder", 2), 3, "position", 500), "there are only positions 0 to "),
        (Ablation("mlp", SiteRef("decoder", 2), None, "position", 500), "there are only positions 0 to "),
    ],
)
def test_what_is_not_there_is_a_sentence(story_gpt: Model, skip: Ablation, sentence: str) -> None:
    with pytest.raises((ValueError, InputError), match=sentence):
        run(story_gpt, "Tom", interventions=[skip])


def test_experts_have_no_neurons_of_one_network(tiny_model: TinyModel) -> None:
    with pytest.raises(InputError, match="no single matrix of this block"):
        run(tiny_model("gpt_oss"), tiny.SENTENCE, interventions=[Ablation("neuron", SiteRef("decoder", 1), 0)])


def test_of_a_family_that_shows_only_weights_no_head_is_reached(tiny_model: TinyModel) -> None:
    model = tiny_model("bloom")
    with pytest.raises(ValueError, match="So masks, scales and single heads cannot be changed"):
        run(model, tiny.SENTENCE, interventions=[Ablation("head", SiteRef("decoder", 1), 0)])
    theirs: Any = tiny.eager(model)
    name = next(n for n, m in theirs.named_modules() if n.endswith("1.mlp.dense_4h_to_h") and isinstance(m, nn.Linear))
    theirs = reads(theirs, name, lambda read: read[..., 5].zero_())  # type: ignore[arg-type]
    np.testing.assert_allclose(
        ours(model, Ablation("neuron", SiteRef("decoder", 1), 5)), said(model, theirs), atol=ATOL
    )


def test_a_vision_models_head() -> None:
    model = open_checkpoint("vit-quickdraw")
    theirs: Any = tiny.eager(model)
    size = run(model, "sample:fish-1").sites[0].head_dim
    name = "vit.layers.2.attention.o_proj"
    reads(theirs, name, lambda read: read[..., size : 2 * size].zero_())  # type: ignore[arg-type]
    trace = run(model, "sample:fish-1", interventions=[Ablation("head", SiteRef("encoder", 2), 1)])
    with torch.no_grad():
        out = theirs(**model.encode("sample:fish-1").inputs)
    np.testing.assert_allclose(trace.logits[0], out.logits[0].numpy(), atol=ATOL)
    run(model, "sample:fish-1", interventions=[Ablation("head", SiteRef("encoder", 2), 1, "mean")])


def test_means_are_of_sentences_that_each_have_a_translation(story_gpt: Model, en_es: Model) -> None:
    assert len(mean_sentences()) >= 20
    assert all(english and spanish for english, spanish in mean_sentences())
    assert len(list(mean_inputs(story_gpt))) == len(list(mean_inputs(en_es))) == len(mean_sentences())
    translated = next(iter(mean_inputs(en_es)))
    assert "río" in "".join(token.text for token in translated.tokens)


@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
def test_a_layer_alone_is_of_the_stack_that_predicts(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    stack = model.info.predicting_stack
    target = target_for(model)
    by_name, by_number = (
        run(model, tiny.SENTENCE, target=target, interventions=[Ablation("head", site, 2)]).logits
        for site in (SiteRef(stack, LAYER), SiteRef("", LAYER))
    )
    np.testing.assert_array_equal(by_name, by_number)
    assert np.abs(by_name - run(model, tiny.SENTENCE, target=target).logits).max() > 100 * ATOL
    with pytest.raises(ValueError, match="this model has no such layer"):
        run(model, tiny.SENTENCE, target=target, interventions=[Ablation("head", SiteRef("", 9), 2)])
