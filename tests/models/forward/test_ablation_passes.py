"""A part switched off: transformers' own eager forward with that part's last matrix set to 0 gives the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import attention_models as models
from attention_models import open_checkpoint, run
from attention_models.decoding.cached_run import CachedRun, start_run
from attention_models.forward import logits as later
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.eager import hidden_states, target_for
from tests.models.tiny import TinyModel

LAYER = 1
ATOL = 1e-5


@dataclass(frozen=True)
class Names:
    """Where a family keeps the parts of block 1, by the names that its checkpoints give them."""

    block: str
    attention: str
    mlp: str | tuple[str, ...]
    norms: tuple[str, ...]
    cross: str = ""
    encoder: str = ""  # the block of the encoder, of a model that has both
    encoder_mlp: str = ""


_LLAMA = Names("model.layers.1", "self_attn.o_proj", "mlp.down_proj", ("input_layernorm", "post_attention_layernorm"))
_GEMMA = Names(
    "model.layers.1",
    "self_attn.o_proj",
    "mlp.down_proj",
    (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
)
_GPT2 = Names("transformer.h.1", "attn.c_proj", "mlp.c_proj", ("ln_1", "ln_2"))
_BERT_PARTS = ("attention.output.dense", "output.dense", ("attention.output.LayerNorm", "output.LayerNorm"))
_BART_NORMS = ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")
_BART = Names(
    "model.decoder.layers.1",
    "self_attn.out_proj",
    "fc2",
    _BART_NORMS,
    "encoder_attn.out_proj",
    "model.encoder.layers.1",
    "fc2",
)
_T5 = Names(
    "decoder.block.1",
    "layer.0.SelfAttention.o",
    "layer.2.DenseReluDense.wo",
    ("layer.0.layer_norm", "layer.1.layer_norm", "layer.2.layer_norm"),
    "layer.1.EncDecAttention.o",
    "encoder.block.1",
    "layer.1.DenseReluDense.wo",
)

FAMILIES = {
    "gpt2": _GPT2,
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "phi3": _LLAMA,
    "gemma2": _GEMMA,
    "gemma3": _GEMMA,
    "gpt_neox": Names(  # both read the same stream
        "gpt_neox.layers.1", "attention.dense", "mlp.dense_4h_to_h", ("input_layernorm", "post_attention_layernorm")
    ),
    "opt": Names("model.decoder.layers.1", "self_attn.out_proj", "fc2", ("self_attn_layer_norm", "final_layer_norm")),
    "gpt_oss": Names(
        "model.layers.1",
        "self_attn.o_proj",
        ("mlp.experts.down_proj", "mlp.experts.down_proj_bias"),
        ("input_layernorm", "post_attention_layernorm"),
    ),
    "llama4": Names(
        "model.layers.1",
        "self_attn.o_proj",
        ("feed_forward.experts.down_proj", "feed_forward.shared_expert.down_proj"),
        ("input_layernorm", "post_attention_layernorm"),
    ),
    "bert": Names("bert.encoder.layer.1", *_BERT_PARTS),
    "electra": Names("electra.encoder.layer.1", *_BERT_PARTS),
    "roberta": Names("roberta.encoder.layer.1", *_BERT_PARTS),
    "xlm_roberta": Names("roberta.encoder.layer.1", *_BERT_PARTS),
    "distilbert": Names(
        "distilbert.transformer.layer.1", "attention.out_lin", "ffn.lin2", ("sa_layer_norm", "output_layer_norm")
    ),
    "modernbert": Names("model.layers.1", "attn.Wo", "mlp.Wo", ("attn_norm", "mlp_norm")),
    "bert2bert": Names(
        "decoder.bert.encoder.layer.1",
        "attention.output.dense",
        "output.dense",
        ("attention.output.LayerNorm", "crossattention.output.LayerNorm", "output.LayerNorm"),
        "crossattention.output.dense",
        "encoder.encoder.layer.1",
        "output.dense",
    ),
    "t5": _T5,
    "mt5": Names(**{**_T5.__dict__, "mlp": "layer.2.DenseReluDense.wo"}),
    "bart": _BART,
    "mbart": _BART,
    "marian": _BART,
    # weights alone are seen of these
    "bloom": Names(
        "transformer.h.1", "self_attention.dense", "mlp.dense_4h_to_h", ("input_layernorm", "post_attention_layernorm")
    ),
    "mpt": Names("transformer.blocks.1", "attn.out_proj", "ffn.down_proj", ("norm_1", "norm_2")),
    "gpt_neo": Names("transformer.h.1", "attn.attention.out_proj", "mlp.c_proj", ("ln_1", "ln_2")),
    "deberta_v2": Names("deberta.encoder.layer.1", *_BERT_PARTS),
    "xlnet": Names("layer.1", "rel_attn.o", "ff.layer_2", ("rel_attn.layer_norm", "ff.layer_norm")),
}


_SMALL = {**tiny._LLAMA, "pad_token_id": 0}
_SIX = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}
_FALCON = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "alibi": False}

MORE = {
    "falcon": (  # one norm for both, which read the same stream
        tiny.Kind("FalconForCausalLM", "FalconConfig", {**_FALCON, "parallel_attn": True}, tiny.byte_level),
        Names("transformer.h.1", "self_attention.dense", "mlp.dense_4h_to_h", ("input_layernorm",)),
    ),
    "granite": (  # what is added is multiplied by a number first
        tiny.Kind("GraniteForCausalLM", "GraniteConfig", {**_SMALL, "residual_multiplier": 0.5}, tiny.byte_level),
        _LLAMA,
    ),
    "cohere": (
        tiny.Kind("CohereForCausalLM", "CohereConfig", _SMALL, tiny.byte_level),
        Names("model.layers.1", "self_attn.o_proj", "mlp.down_proj", ("input_layernorm",)),
    ),
    "olmo2": (  # normalised after, and nothing before
        tiny.Kind("Olmo2ForCausalLM", "Olmo2Config", _SMALL, tiny.byte_level),
        Names(
            "model.layers.1",
            "self_attn.o_proj",
            "mlp.down_proj",
            ("post_attention_layernorm", "post_feedforward_layernorm"),
        ),
    ),
    "gptj": (
        tiny.Kind("GPTJForCausalLM", "GPTJConfig", {**_SIX, "rotary_dim": 4}, tiny.byte_level),
        Names("transformer.h.1", "attn.out_proj", "mlp.fc_out", ("ln_1",)),
    ),
    "mixtral": (
        tiny.Kind("MixtralForCausalLM", "MixtralConfig", {**_SMALL, "num_local_experts": 4}, tiny.byte_level),
        Names(
            "model.layers.1",
            "self_attn.o_proj",
            "mlp.experts.down_proj",
            ("input_layernorm", "post_attention_layernorm"),
        ),
    ),
    "qwen2_moe": (  # experts, and one beside them that all tokens go through
        tiny.Kind(
            "Qwen2MoeForCausalLM",
            "Qwen2MoeConfig",
            {**_SMALL, "num_experts": 4, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16},
            tiny.byte_level,
        ),
        Names(
            "model.layers.1",
            "self_attn.o_proj",
            ("mlp.experts.down_proj", "mlp.shared_expert.down_proj"),
            ("input_layernorm", "post_attention_layernorm"),
        ),
    ),
    "glm4": (
        tiny.Kind("Glm4ForCausalLM", "Glm4Config", _SMALL, tiny.byte_level),
        Names(
            "model.layers.1",
            "self_attn.o_proj",
            "mlp.down_proj",
            ("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"),
        ),
    ),
    "opt_post": (
        tiny.Kind("OPTForCausalLM", "OPTConfig", {**tiny._OPT, "do_layer_norm_before": False}, tiny.byte_level),
        FAMILIES["opt"],
    ),
}
"""Kinds that are not among `tiny.KINDS`."""

ALL = FAMILIES | {kind: names for kind, (_, names) in MORE.items()}


def fill(theirs: nn.Module, name: str, number: float) -> None:
    """Set a matrix and its bias, or a parameter, of transformers' own model to one number."""
    owner, _, last = name.rpartition(".")
    found = getattr(theirs.get_submodule(owner), last)
    with torch.no_grad():
        for parameter in found.parameters() if isinstance(found, nn.Module) else [found]:
            parameter.fill_(number)


def without_part(model: Model, kind: str, part: str, encoder: bool = False) -> nn.Module:
    """transformers' own model, in which nothing is added by that part, or a norm multiplies by 1 and adds 0."""
    theirs: nn.Module = tiny.eager(model)
    names = ALL[kind]
    if encoder:
        fill(theirs, f"{names.encoder}.{names.encoder_mlp}", 0.0)
    elif part.startswith("norm"):
        norm: Any = theirs.get_submodule(f"{names.block}.{names.norms[int(part[4:]) - 1]}")
        with torch.no_grad():
            norm.weight.fill_(0.0 if kind.startswith("gemma") else 1.0)  # Gemma stores g - 1
            if getattr(norm, "bias", None) is not None:
                norm.bias.fill_(0.0)
    else:
        last = getattr(names, part)
        for name in (last,) if isinstance(last, str) else last:
            fill(theirs, f"{names.block}.{name}", 0.0)
    return theirs


def said(out: Any) -> Any:
    """Logits of a trace or of a model's output; of a model without an output head its states."""
    if isinstance(out, Trace):
        return out.logits if out.has_logits else out.last_hidden.numpy()  # type: ignore[union-attr]
    return out.logits[0] if getattr(out, "logits", None) is not None else out.last_hidden_state[0]


def assert_is(model: Model, theirs: nn.Module, skip: Ablation) -> None:
    """Logits and residual stream of a run without the part are those of `theirs`, and not those of the model as is."""
    target = target_for(model)
    trace = run(model, tiny.SENTENCE, target=target, interventions=[skip])
    with torch.no_grad():
        out: Any = theirs(**model.encode(tiny.SENTENCE, target).inputs, output_hidden_states=True)
    expected = said(out).numpy()
    size = max(1.0, float(np.abs(expected).max()))
    assert np.abs(said(trace) - expected).max() / size < ATOL
    assert np.abs(said(run(model, tiny.SENTENCE, target=target)) - expected).max() / size > 1e-3
    if model.config.model_type == "xlnet":
        return  # its states have the batch second
    for stack, states in hidden_states(out, model).items():
        for ours, state in zip(trace.residual[stack][:-1], states[:-1], strict=True):
            torch.testing.assert_close(ours, state, atol=1e-4, rtol=1e-5)


@pytest.fixture(scope="module")
def trained_like(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """Tiny models whose gains and biases are not those of a fresh one, which would be 1 and 0."""
    from functools import cache

    def made(kind: str) -> Model:
        folder = tiny.save(MORE[kind][0] if kind in MORE else kind, tmp_path_factory.mktemp(kind) / kind)
        module = tiny.eager(open_checkpoint(folder))
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.dim() == 1:
                    parameter.add_(0.4 * torch.randn(parameter.shape, generator=generator))
        module.save_pretrained(folder)
        return open_checkpoint(folder)

    return cache(made)


PARTS = [
    (kind, part)
    for kind, names in ALL.items()
    for part in (
        "attention",
        "mlp",
        *(("cross",) if names.cross else ()),
        *(f"norm{i + 1}" for i in range(len(names.norms))),
    )
]


@pytest.mark.short("gemma2-norm2", "t5-mlp", "cohere-attention")
@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_a_part_that_is_off_adds_nothing(trained_like: TinyModel, kind: str, part: str) -> None:
    model = trained_like(kind)
    stack = model.info.predicting_stack
    assert_is(model, without_part(model, kind, part), Ablation(part, SiteRef(stack, LAYER)))


@pytest.mark.short("t5")
@pytest.mark.parametrize("kind", [kind for kind, names in FAMILIES.items() if names.encoder])
def test_the_encoders_block_is_another_one(trained_like: TinyModel, kind: str) -> None:
    model = trained_like(kind)
    assert_is(model, without_part(model, kind, "mlp", encoder=True), Ablation("mlp", SiteRef("encoder", LAYER)))


@pytest.mark.parametrize("part", ["attention", "mlp", "norm1", "norm2"])
def test_of_layers_that_share_their_weights_one_is_changed(trained_like: TinyModel, part: str) -> None:
    model = trained_like("albert")
    theirs = tiny.eager(model)
    layer = theirs.get_submodule("albert.encoder.albert_layer_groups.0.albert_layers.0")
    name = {"attention": "attention.dense", "mlp": "ffn_output", "norm1": "attention.LayerNorm"}
    module: Any = layer.get_submodule(name.get(part, "full_layer_layer_norm"))
    calls = 0

    def second_only(_module: nn.Module, args: tuple[torch.Tensor], out: torch.Tensor) -> torch.Tensor | None:
        nonlocal calls
        calls += 1
        if calls != LAYER + 1:
            return None
        plain = nn.functional.layer_norm(args[0], args[0].shape[-1:], eps=model.config.layer_norm_eps)
        return plain if part.startswith("norm") else torch.zeros_like(out)

    module.register_forward_hook(second_only)
    assert_is(model, theirs, Ablation(part, SiteRef("encoder", LAYER)))
    assert calls == 3


def test_a_state_space_model_is_no_feed_forward_network(trained_like: TinyModel) -> None:
    model = trained_like("jamba")
    theirs = tiny.eager(model)
    fill(theirs, "model.layers.0.feed_forward.down_proj", 0.0)
    assert_is(model, theirs, Ablation("mlp", SiteRef("decoder", 0)))
    with pytest.raises(InputError, match=r"^“attention off, decoder layer 0”: this block of .* has no attention"):
        run(model, tiny.SENTENCE, interventions=[Ablation("attention", SiteRef("decoder", 0))])


@pytest.mark.parametrize(("part", "module"), [("attention", "attn.c_proj"), ("mlp", "mlp.c_proj")])
def test_the_shipped_model(story_gpt: Model, part: str, module: str) -> None:
    theirs = tiny.eager(story_gpt)
    fill(theirs, f"transformer.h.5.{module}", 0.0)
    assert_is(story_gpt, theirs, Ablation(part, SiteRef("decoder", 5)))


def test_a_vision_models_block(tiny_folder: Any) -> None:
    model = open_checkpoint("vit-quickdraw")
    theirs = tiny.eager(model)
    fill(theirs, "vit.layers.2.mlp.fc2", 0.0)
    trace = run(model, "sample:fish-1", interventions=[Ablation("mlp", 2)])  # type: ignore[arg-type]
    with torch.no_grad():
        out = theirs(**model.encode("sample:fish-1").inputs)
    np.testing.assert_allclose(trace.logits[0], out.logits[0].numpy(), atol=ATOL)


def test_a_module_of_ones_own() -> None:
    """torch's own encoder layers: nothing of them is known by name."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    own = nn.Sequential(nn.Embedding(128, 16), encoder, nn.Linear(16, 128)).eval()
    letters = (lambda text: list(map(ord, text))), (lambda ids: "".join(map(chr, ids)))
    model = models.adopt(own, letters, family="masked")
    text = "abc def"
    trace = run(model, text, interventions=[Ablation("mlp", SiteRef("encoder", 1))])
    with torch.no_grad():
        ids = torch.tensor([[token.id for token in trace.tokens]])
        fill(own, "1.layers.1.linear2", 0.0)
        expected = own(ids)[0].numpy()
    np.testing.assert_allclose(trace.logits, expected, atol=ATOL)


def test_several_at_once_beside_other_interventions(story_gpt: Model) -> None:
    theirs = tiny.eager(story_gpt)
    for name in ("transformer.h.1.attn.c_proj", "transformer.h.1.mlp.c_proj", "transformer.h.6.mlp.c_proj"):
        fill(theirs, name, 0.0)
    for block in theirs.get_submodule("transformer.h"):  # scores x 2, where q is made
        width = story_gpt.info.width
        with torch.no_grad():
            block.attn.c_attn.weight[:, :width] *= 2
            block.attn.c_attn.bias[:width] *= 2
    skips = [
        Ablation("attention", SiteRef("decoder", 1)),
        Ablation("mlp", SiteRef("", 1)),
        Ablation("mlp", SiteRef("decoder", 6)),
    ]
    trace = run(story_gpt, tiny.SENTENCE, interventions=[*skips, Scale(2.0)])
    with torch.no_grad():
        expected = theirs(**story_gpt.encode(tiny.SENTENCE).inputs).logits[0].numpy()
    np.testing.assert_allclose(trace.logits, expected, atol=ATOL * np.abs(expected).max())


def test_after_it_the_model_is_as_it_was(story_gpt: Model) -> None:
    before = run(story_gpt, tiny.SENTENCE).logits
    run(story_gpt, tiny.SENTENCE, interventions=[Ablation("mlp", SiteRef("decoder", 3))])
    np.testing.assert_array_equal(run(story_gpt, tiny.SENTENCE).logits, before)
    still = run(story_gpt, tiny.SENTENCE, interventions=[Ablation("mlp", SiteRef("decoder", 3), on=True)])
    np.testing.assert_array_equal(still.logits, before)


def test_a_text_of_one_token_and_a_batch(story_gpt: Model, tiny_folder: Any) -> None:
    skip = Ablation("mlp", SiteRef("decoder", 1))
    afresh = open_checkpoint(tiny_folder("gpt2"))
    one = run(afresh, [5], interventions=[skip])
    theirs = tiny.eager(afresh)
    fill(theirs, "transformer.h.1.mlp.c_proj", 0.0)
    with torch.no_grad():
        expected = theirs(torch.tensor([[5]])).logits[0].numpy()
    np.testing.assert_allclose(one.logits, expected, atol=ATOL)
    texts = ["Tom and Anna went", "The cat"]
    for trace, text in zip(run(story_gpt, texts, interventions=[skip]), texts, strict=True):
        alone = run(story_gpt, text, interventions=[skip]).logits
        np.testing.assert_allclose(trace.logits[: len(alone)], alone, atol=1e-4)


@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "t5", "marian"])
def test_what_is_written_step_by_step_is_what_a_whole_pass_says(trained_like: TinyModel, kind: str) -> None:
    model = trained_like(kind)
    skips = [Ablation("mlp", SiteRef("decoder", 1)), Ablation("attention", SiteRef("decoder", 0))]
    skips += [Ablation("mlp", SiteRef("encoder", 0)), Ablation("cross", SiteRef("decoder", 2))] if model.seq2seq else []
    writing = start_run(model, model.encode(tiny.SENTENCE), skips)
    assert isinstance(writing, CachedRun)
    for _ in range(4):
        logits = writing.logits()
        ids = writing.ids[0].tolist()
        whole = (
            run(model, tiny.SENTENCE, target=ids[1:] or None, interventions=skips)
            if model.seq2seq
            else run(model, ids, interventions=skips)
        )
        np.testing.assert_allclose(logits[0].numpy(), whole.logits[-1], atol=1e-4)
        writing.append(logits.argmax(dim=-1))


@pytest.mark.parametrize(
    ("skip", "sentence"),
    [
        (Ablation("mlp", SiteRef("decoder", 8)), "has no such layer; its decoder has layers 0 to 7"),
        (Ablation("mlp", SiteRef("encoder", 0)), "its only stack is the decoder"),
        (Ablation("cross", SiteRef("decoder", 0)), "this block of story-gpt has no cross-attention with anything"),
        (Ablation("norm3", SiteRef("decoder", 0)), "It has attention, feed-forward network, norm 1, norm 2."),
    ],
)
def test_what_is_not_there_is_a_sentence(story_gpt: Model, skip: Ablation, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        run(story_gpt, "Tom", interventions=[skip])
    assert sentence in str(error.value)
    with pytest.raises(InputError):
        list(models.decode(story_gpt, "Tom", 2, interventions=[skip]))


def test_a_recurrent_model_has_no_blocks() -> None:
    model = open_checkpoint("recurrent-en-es-bahdanau")
    with pytest.raises(InputError, match="interventions are for transformers"):
        run(model, "Good morning.", target="Buenos", interventions=[Ablation("mlp", SiteRef("decoder", 0))])


def test_weights_of_the_layers_before_are_untouched(story_gpt: Model) -> None:
    plain = run(story_gpt, tiny.SENTENCE)
    off = run(story_gpt, tiny.SENTENCE, interventions=[Ablation("attention", SiteRef("decoder", 4))])
    for layer in range(5):  # its own weights are still those that it computes
        np.testing.assert_array_equal(off.weights(("decoder", layer), 0), plain.weights(("decoder", layer), 0))
    assert np.abs(off.weights(("decoder", 5), 0) - plain.weights(("decoder", 5), 0)).max() > 1e-3
    with pytest.raises(ValueError, match="no such layer"):
        run(story_gpt, tiny.SENTENCE, interventions=[Mask("none", site=SiteRef("decoder", 9))])


@pytest.mark.full
def test_in_half_precision_and_beyond_the_logits_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    half = open_checkpoint("story-gpt", dtype="bfloat16")
    skips = [Ablation("norm1", SiteRef("decoder", 2)), Ablation("mlp", SiteRef("decoder", 5))]
    trace = run(half, tiny.SENTENCE, interventions=skips)
    theirs: Any = tiny.eager(half).to(torch.bfloat16)
    fill(theirs, "transformer.h.5.mlp.c_proj", 0.0)
    norm: Any = theirs.transformer.h[2].ln_1
    with torch.no_grad():
        norm.weight.fill_(1.0)
        norm.bias.fill_(0.0)
        expected = theirs(**half.encode(tiny.SENTENCE).inputs).logits[0].float().numpy()
    assert np.abs(trace.logits - expected).max() < 0.05 * np.abs(expected).max()
    assert np.abs(run(half, tiny.SENTENCE).logits - expected).max() > 0.1 * np.abs(expected).max()
    whole = open_checkpoint("story-gpt")
    kept = run(whole, tiny.SENTENCE, interventions=skips).logits
    monkeypatch.setattr(later, "KEPT_BYTES", 1)
    made = run(whole, tiny.SENTENCE, interventions=skips)
    assert made.output_logits is None
    np.testing.assert_allclose(made.logits, kept, atol=1e-4)
