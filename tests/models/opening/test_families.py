"""Every family: a checkpoint of random weights is saved, opened and run, and equals transformers' own eager forward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from attention_models import open_checkpoint, run
from attention_models.opening.open import describe
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.values import SiteRef
from attention_models.trust.check import compare_with_eager
from tests.models import tiny
from tests.models.eager import TARGET, assert_same_as_eager, target_for
from tests.models.tiny import TinyFolder, TinyModel

FAMILIES = {
    "causal": (
        *("gpt2", "gpt2_bare", "llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "gpt_neox", "opt"),
        *("gpt_oss", "llama4", "bert_decoder", "bart_decoder"),
    ),
    "masked": (
        *("bert", "bert_pretrained", "albert", "electra", "distilbert", "roberta", "xlm_roberta", "modernbert"),
    ),
    "encoder": ("bert_bare", "bert_classifier", "bert_tagger", "electra_discriminator", "t5_encoder", "llama_bare"),
    "seq2seq": ("t5", "mt5", "bart", "mbart", "marian", "bert2bert"),
}
ALL = [(family, kind) for family, kinds in FAMILIES.items() for kind in kinds]

WINDOWS = {  # keys back from each query in each layer, the query's own included; None: all
    "gpt2": (None, None, None),
    "mistral": (8, 8, 8),
    "phi3": (8, 8, 8),
    "gemma2": (8, None, 8),
    "gemma3": (8, None, 8),
    "gpt_oss": (8, None, 8),
}


@pytest.mark.short(
    *("causal-gpt2", "causal-mistral", "causal-gemma2", "causal-gpt_oss", "causal-llama4", "causal-gpt_neox"),
    *("masked-*", "encoder-bert_tagger", "encoder-t5_encoder", "seq2seq-t5", "seq2seq-bart"),
)
@pytest.mark.parametrize(("family", "kind"), ALL)
def test_equals_eager(tiny_model: TinyModel, family: str, kind: str) -> None:
    model = tiny_model(kind)
    assert model.info.family == family
    trace = assert_same_as_eager(model, tiny.SENTENCE)
    assert (trace.output_logits is None) == (family == "encoder" and model.info.class_head is None)
    # the heads choose: otherwise any two would agree
    assert max(float(trace.weights(0, head).max(-1).mean()) for head in range(4)) > 0.2
    assert float(np.abs(trace.weights(0, 0) - trace.weights(0, 1)).max()) > 0.1
    # what was said before loading is what ran
    layers: dict[str, int] = {}
    for site in trace.sites:
        layers[site.stack] = layers.get(site.stack, 0) + 1
        said = next(stack for stack in model.info.stacks if stack.stack == site.stack)
        assert (site.heads, site.key_heads) == (said.heads, said.key_heads)
    assert layers == {stack.stack: stack.layers for stack in model.info.stacks}


@pytest.mark.short("*-gpt2", "*-llama4", "*-gpt_oss", "*-modernbert", "*-bert_tagger", "*-t5", "*-marian")
@pytest.mark.parametrize(("family", "kind"), ALL)
def test_trust_strip_holds(tiny_model: TinyModel, family: str, kind: str) -> None:
    model = tiny_model(kind)
    target = target_for(model)
    trace = run(model, tiny.SENTENCE, target=target)
    found = compare_with_eager(model, model.encode(tiny.SENTENCE, target), trace)
    assert max(found.logit_difference, found.weight_difference) < found.tolerance


@pytest.mark.parametrize("kind", WINDOWS)
def test_sliding_windows_are_masked(tiny_model: TinyModel, kind: str) -> None:
    trace = run(tiny_model(kind), tiny.SENTENCE)
    places = np.arange(len(trace.tokens))
    assert len(places) > 12
    back = places[:, None] - places
    for layer, window in enumerate(WINDOWS[kind]):
        masked = trace.masked(layer, 0)
        assert masked is not None
        assert np.array_equal(masked, (back < 0) | (back >= (window or len(places))))


def test_chunks_are_masked(tiny_model: TinyModel) -> None:
    trace = run(tiny_model("llama4"), tiny.SENTENCE)
    places = np.arange(len(trace.tokens))
    for layer, chunk in enumerate((8, 8, len(places))):
        masked = trace.masked(layer, 0)
        assert masked is not None
        open_ = (places[:, None] >= places) & (places[:, None] // chunk == places // chunk)
        assert np.array_equal(masked, ~open_)


def test_local_layers_of_modernbert(tiny_model: TinyModel) -> None:
    trace = run(tiny_model("modernbert"), tiny.SENTENCE)
    places = np.arange(len(trace.tokens))
    apart = np.abs(places[:, None] - places)
    assert trace.masked(0, 0) is None
    for layer in (1, 2):
        masked = trace.masked(layer, 0)
        assert masked is not None
        assert np.array_equal(masked, apart > 4)


def test_layers_with_other_numbers_of_heads(tiny_folder: TinyFolder) -> None:
    model = open_checkpoint(tiny_folder("llama"))
    narrow = model.module.get_submodule("model.layers.1.self_attn")
    narrow.q_proj, narrow.o_proj = nn.Linear(32, 16, bias=False), nn.Linear(16, 32, bias=False)
    narrow.num_key_value_groups = 1  # type: ignore[assignment]
    trace = run(model, tiny.SENTENCE)
    assert [(site.heads, site.key_heads) for site in trace.sites] == [(4, 2), (2, 2), (4, 2)]
    with torch.no_grad():
        assert compare_with_eager(model, model.encode(tiny.SENTENCE), trace).weight_difference < 1e-5
    atlas = trace.atlas(16)
    assert np.isfinite(atlas[1, :2]).all()
    assert np.isnan(atlas[1, 2:]).all()
    with pytest.raises(IndexError, match="heads 0 to 1"):
        trace.weights(1, 2)


def test_layers_without_attention(tiny_model: TinyModel) -> None:
    model = tiny_model("jamba")
    trace = run(model, tiny.SENTENCE)
    assert [site.ref for site in trace.sites] == [SiteRef("decoder", 1)]
    theirs = [weights for weights in tiny.eager_run(model, tiny.SENTENCE).attentions if weights is not None]
    np.testing.assert_allclose(trace.weights(0, 2), theirs[0][0, 2].numpy(), atol=1e-6)
    assert compare_with_eager(model, model.encode(tiny.SENTENCE), trace).weight_difference < 1e-5


def test_two_models_put_together(tiny_model: TinyModel) -> None:
    model = tiny_model("bert2bert")
    assert [(stack.stack, stack.layers) for stack in model.info.stacks] == [
        ("encoder", 3),
        ("decoder", 2),
        ("cross", 2),
    ]
    trace = run(model, tiny.SENTENCE, target=TARGET)
    assert [site.ref for site in trace.sites][3:] == [
        SiteRef(stack, layer) for layer in range(2) for stack in ("decoder", "cross")
    ]
    assert len(trace.residual["encoder"]) == 4
    assert len(trace.residual["decoder"]) == 3


@pytest.mark.parametrize(
    ("kind", "words"),
    [("mamba", "mamba may have none"), ("whisper", "whisper listens to sound")],
)
def test_what_has_nothing_to_show(tiny_folder: TinyFolder, kind: str, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        describe(str(tiny_folder(kind)))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("long_t5", "long_t5: transformers' own code for longt5 keeps the attention of its encoder to itself"),
        ("diff_llama", "diff_llama: diffllama computes several attentions in one layer"),
        (
            "longformer",
            "transformers' own code for longformer keeps queries and keys to itself, and it gives no weight for every",
        ),
    ],
)
def test_what_shows_in_a_first_run(tiny_folder: TinyFolder, kind: str, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        open_checkpoint(tiny_folder(kind))


def test_a_model_that_can_not_be_run(tiny_folder: TinyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("The size of tensor a (2) must match the size of tensor b (4)")

    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", broken)
    with pytest.raises(CheckpointError, match="llama was loaded, but cannot be run: The size of tensor a"):
        open_checkpoint(tiny_folder("llama"))
