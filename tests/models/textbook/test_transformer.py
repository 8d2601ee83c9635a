"""The textbook transformer against torch's and transformers' own, with their weights copied over, to 1e-5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    BloomConfig,
    BloomModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

from attention_models.forward.capture import IMPLEMENTATION
from attention_models.textbook.pretrained import TextbookModel, made
from attention_models.textbook.transformer import IGNORE, Block, Sinusoids, loss
from attention_models.textbook.transformer_config import TransformerConfig

TOLERANCE = 1e-5
IDS = torch.tensor([[5, 9, 3, 17, 11, 8, 21], [4, 4, 12, 7, 30, 1, 2]])
WRITTEN = torch.tensor([[1, 6, 19, 25], [1, 9, 9, 14]])

SIZES: dict[str, Any] = {"vocabulary": 32, "width": 32, "layers": 2, "heads": 4, "inner": 48, "context": 16}


def settings(kind: Any, **given: Any) -> Any:
    """A config of transformers' own."""
    return kind(**given, attn_implementation="eager")


def textbook(**switches: Any) -> TextbookModel:
    torch.manual_seed(5)
    model = made(TransformerConfig(**{**SIZES, **switches}))
    model.eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # biases and gains too
    return model


def copied(model: nn.Module, given: nn.Module, names: Mapping[str, str]) -> None:
    """Copy parameters of `given` over; `names` says what parts of their names are called here."""
    weights = {}
    for name, value in given.state_dict().items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        weights[name] = value
    wanted = dict(model.named_parameters())
    assert set(wanted) <= set(weights)  # every number of ours comes from them
    model.load_state_dict({name: weights[name] for name in wanted}, strict=False)


def scattered(model: Any) -> Any:
    """Weights far enough from 0 that no part of the model is idle."""
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return model.eval()


def close(ours: Tensor, theirs: Tensor) -> None:
    assert float(theirs.abs().max()) > 0.5
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE * max(1.0, float(theirs.abs().max())), rtol=0)


# --------------------------------------------------------------------------- torch


def torch_names(of: dict[str, Tensor], theirs: str, ours: str) -> dict[str, Tensor]:
    """The packed projections of torch's attention, taken apart."""
    parts: dict[str, Tensor] = {}
    for kind in ("weight", "bias"):
        packed = of[f"{theirs}.in_proj_{kind}"].chunk(3)
        parts |= {f"{ours}.{name}_proj.{kind}": part for name, part in zip("qkv", packed, strict=True)}
        parts[f"{ours}.o_proj.{kind}"] = of[f"{theirs}.out_proj.{kind}"]
    return parts


def block_like(layer: nn.Module, config: TransformerConfig, stack: str) -> Block:
    of = layer.state_dict()
    norms = ["self_attn_norm", "cross_attn_norm", "feed_forward_norm"]
    if stack == "encoder":
        norms.remove("cross_attn_norm")
    named = torch_names(of, "self_attn", "self_attn")
    if stack == "decoder":
        named |= torch_names(of, "multihead_attn", "cross_attn")
    for kind in ("weight", "bias"):
        named |= {f"{ours}.{kind}": of[f"norm{i}.{kind}"] for i, ours in enumerate(norms, 1)}
        named |= {f"feed_forward.up_proj.{kind}": of[f"linear1.{kind}"]}
        named |= {f"feed_forward.down_proj.{kind}": of[f"linear2.{kind}"]}
    block = Block(config, 0, stack).eval()
    block.load_state_dict(named)
    return block


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("place", ["post", "pre"])
def test_blocks_equal_those_of_torch(place, activation):
    config = TransformerConfig(**SIZES, norm_place=place, feed_forward=activation)
    options = {"dropout": 0.0, "activation": activation, "norm_first": place == "pre", "batch_first": True}
    encoder = scattered(nn.TransformerEncoderLayer(32, 4, 48, **options))
    decoder = scattered(nn.TransformerDecoderLayer(32, 4, 48, **options))
    x, y = torch.randn(2, 7, 32), torch.randn(2, 4, 32)
    memory = block_like(encoder, config, "encoder")(x)
    future = nn.Transformer.generate_square_subsequent_mask(4)
    with torch.no_grad():
        close(memory, encoder(x))
        ours = block_like(decoder, config, "decoder")(y, None, memory)
        close(ours, decoder(y, memory, tgt_mask=future, tgt_is_causal=True))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_both_stacks_equal_torchs_transformer():
    config = TransformerConfig(**SIZES, norm_place="pre")
    theirs = nn.Transformer(32, 4, 2, 2, 48, dropout=0.0, batch_first=True, norm_first=True)
    scattered(theirs)
    x, y = torch.randn(2, 7, 32), torch.randn(2, 4, 32)
    model = made(config).eval().model
    for stack, other in ((model.encoder, theirs.encoder), (model.decoder, theirs.decoder)):
        stack.layers = nn.ModuleList(block_like(layer, config, stack.stack) for layer in other.layers)
        stack.norm.load_state_dict(other.norm.state_dict())
    with torch.no_grad():
        future = nn.Transformer.generate_square_subsequent_mask(4)
        wanted = theirs(x, y, tgt_mask=future, tgt_is_causal=True)
        memory = model.encoder.blocks(x)
        close(model.decoder.blocks(y, memory=memory), wanted)


# --------------------------------------------------------------------------- transformers


def test_it_equals_marian():
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = settings(
        MarianConfig,
        vocab_size=32,
        d_model=32,
        **sizes,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=16,
        pad_token_id=0,
    )
    theirs = scattered(MarianMTModel(config))
    ours = made(TransformerConfig(**SIZES)).eval()
    names = {
        "embed_tokens": "embedding",
        "out_proj": "o_proj",
        "self_attn_layer_norm": "self_attn_norm",
        "encoder_attn_layer_norm": "cross_attn_norm",
        "encoder_attn": "cross_attn",
        "final_layer_norm": "feed_forward_norm",
        "fc1": "feed_forward.up_proj",
        "fc2": "feed_forward.down_proj",
    }
    copied(ours, theirs, names)
    for stack, other in ((ours.model.encoder, theirs.model.encoder), (ours.model.decoder, theirs.model.decoder)):
        stack.position_embedding.weight.copy_(other.embed_positions.weight)  # Marian puts all sines first
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    with torch.no_grad():
        wanted = theirs(input_ids=IDS, attention_mask=mask, decoder_input_ids=WRITTEN).logits
        close(ours(IDS, mask, WRITTEN).logits, wanted - theirs.final_logits_bias)


def test_it_equals_llama():
    config = settings(
        LlamaConfig,
        vocab_size=32,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=16,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
    )
    theirs = scattered(LlamaForCausalLM(config))
    switches: dict[str, Any] = {
        "positions": "rope",
        "norm": "rms",
        "norm_place": "pre",
        "feed_forward": "swiglu",
        "key_heads": 2,
    }
    switches |= {"bias": False, "tied": False, "scaled_embedding": False}
    ours = made(TransformerConfig(**SIZES, shape="decoder", **switches)).eval()
    names = {
        "model.embed_tokens": "model.decoder.embedding",
        "model.layers": "model.decoder.layers",
        "model.norm": "model.decoder.norm",
        "input_layernorm": "self_attn_norm",
        "post_attention_layernorm": "feed_forward_norm",
        "mlp.": "feed_forward.",
    }
    copied(ours, theirs, names)
    with torch.no_grad():
        close(ours(IDS).logits, theirs(IDS).logits)
        later = torch.arange(3, 10)[None]
        close(ours(IDS, position_ids=later).logits, theirs(IDS, position_ids=later).logits)


def test_it_equals_gpt2():
    config = settings(
        GPT2Config,
        vocab_size=32,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_inner=48,
        n_positions=16,
        activation_function="gelu",
    )
    theirs = scattered(GPT2LMHeadModel(config))
    switches: dict[str, Any] = {
        "positions": "learned",
        "norm_place": "pre",
        "feed_forward": "gelu",
        "scaled_embedding": False,
    }
    ours = made(TransformerConfig(**SIZES, shape="decoder", **switches)).eval()
    of = theirs.state_dict()
    named = {
        "model.decoder.embedding.weight": of["transformer.wte.weight"],
        "model.decoder.position_embedding.weight": of["transformer.wpe.weight"],
        "model.decoder.norm.weight": of["transformer.ln_f.weight"],
        "model.decoder.norm.bias": of["transformer.ln_f.bias"],
    }
    for i in range(2):
        here, there = f"model.decoder.layers.{i}.", f"transformer.h.{i}."
        for kind in ("weight", "bias"):

            def linear(name: str, there: str = there, kind: str = kind) -> Tensor:
                found: Tensor = of[f"{there}{name}.{kind}"]
                return found.mT if kind == "weight" else found

            parts = linear("attn.c_attn").chunk(3)
            named |= {f"{here}self_attn.{n}_proj.{kind}": part for n, part in zip("qkv", parts, strict=True)}
            named[f"{here}self_attn.o_proj.{kind}"] = linear("attn.c_proj")
            named[f"{here}feed_forward.up_proj.{kind}"] = linear("mlp.c_fc")
            named[f"{here}feed_forward.down_proj.{kind}"] = linear("mlp.c_proj")
            named[f"{here}self_attn_norm.{kind}"] = of[f"{there}ln_1.{kind}"]
            named[f"{here}feed_forward_norm.{kind}"] = of[f"{there}ln_2.{kind}"]
    assert set(named) == {name for name, _ in ours.named_parameters()}
    ours.load_state_dict(named, strict=False)
    with torch.no_grad():
        close(ours(IDS).logits, theirs(IDS).logits)


@pytest.mark.parametrize("padded", [False, True])
def test_it_equals_t5(padded):
    config = settings(
        T5Config,
        vocab_size=32,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=12,
        feed_forward_proj="relu",
        layer_norm_epsilon=1e-5,
        tie_word_embeddings=False,
    )
    theirs = scattered(T5ForConditionalGeneration(config))
    switches: dict[str, Any] = {
        "positions": "t5",
        "norm": "rms",
        "norm_place": "pre",
        "score": "dot",
        "buckets": 8,
        "farthest": 12,
    }
    switches |= {"bias": False, "tied": False, "scaled_embedding": False}
    ours = made(TransformerConfig(**SIZES, **switches)).eval()
    names = {
        "coder.block.0.layer.0.SelfAttention.relative_attention_bias": "coder.position_bias.relative_attention_bias",
        "encoder.": "model.encoder.",
        "decoder.": "model.decoder.",
        "embed_tokens": "embedding",
        "final_layer_norm": "norm",
        "block.": "layers.",
        "layer.0.SelfAttention.": "self_attn.",
        "layer.0.layer_norm": "self_attn_norm",
        "layer.1.EncDecAttention.": "cross_attn.",
        "DenseReluDense.wi.": "up_proj.",
        "DenseReluDense.wo.": "down_proj.",
        **{f"_attn.{letter}.": f"_attn.{letter}_proj." for letter in "qkvo"},
    }
    last = {"encoder": 1, "decoder": 2}
    renamed = nn.Module()
    weights = {}
    for name, value in theirs.state_dict().items():
        stack = name.split(".")[0]
        if stack in last:
            name = name.replace(f"layer.{last[stack]}.layer_norm", "feed_forward_norm")
            name = name.replace(f"layer.{last[stack]}.DenseReluDense", "feed_forward.DenseReluDense")
            name = name.replace("layer.1.layer_norm", "cross_attn_norm")
        for theirs_name, ours_name in names.items():
            name = name.replace(theirs_name, ours_name)
        weights[name] = value
    renamed.state_dict = lambda: weights  # type: ignore[method-assign,assignment]
    copied(ours, renamed, {})
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2]) if padded else torch.ones_like(IDS)
    with torch.no_grad():
        close(ours(IDS, mask, WRITTEN).logits, theirs(IDS, attention_mask=mask, decoder_input_ids=WRITTEN).logits)


def test_alibi_equals_blooms():
    config = BloomConfig(vocab_size=32, hidden_size=32, n_layer=1, n_head=4)
    theirs: Any = scattered(BloomModel(config))
    theirs = theirs.h[0].self_attention
    block = Block(TransformerConfig(**SIZES, shape="decoder", positions="alibi"), 0, "decoder").eval()
    ours = block.self_attn
    packed = theirs.query_key_value  # of each head its query, key and value
    for kind in ("weight", "bias"):
        parts = getattr(packed, kind).unflatten(0, (4, 3, 8)).unbind(1)
        for name, part in zip("qkv", parts, strict=True):
            getattr(getattr(ours, f"{name}_proj"), kind).data.copy_(part.flatten(0, 1))
        getattr(ours.o_proj, kind).data.copy_(getattr(theirs.dense, kind))
    model: Any = textbook(shape="decoder", positions="alibi").model.decoder
    keys = torch.arange(7)
    bias = model.position_bias(keys - keys[:, None])
    x, nothing = torch.randn(2, 7, 32), torch.zeros(2, 7, 32)
    lowest = torch.finfo(torch.float32).min
    future = torch.full((7, 7), lowest).triu(1)[None, None]
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    alibi = build_alibi_tensor(torch.ones(2, 7), 4, torch.float32)
    with torch.no_grad():
        wanted = theirs(x, nothing, alibi, future)[0]
        close(ours(x, bias=bias)[0], wanted)


# --------------------------------------------------------------------------- closed forms


def test_sinusoids_are_those_of_the_paper():
    table = Sinusoids(TransformerConfig(**SIZES)).weight.double()
    place, i = np.arange(16)[:, None], np.arange(16)[None]
    angle = place / 10_000 ** (2 * i / 32)
    np.testing.assert_allclose(table[:, 0::2], np.sin(angle), atol=1e-6)
    np.testing.assert_allclose(table[:, 1::2], np.cos(angle), atol=1e-6)


def test_appended_positions_have_dimensions_of_their_own():
    model: Any = textbook(shape="decoder", positions="appended")
    entered: dict[str, Any] = {}
    model.model.decoder.layers[0].register_forward_pre_hook(lambda _, args: entered.update(x=args[0]))
    run(model, IDS)
    assert model.model.decoder.embedding.weight.shape == (32, 16)
    assert model.lm_head.weight.shape == (32, 32)
    np.testing.assert_allclose(entered["x"][..., :16], model.model.decoder.embedding.weight[IDS].detach() * 32**0.5)
    angle = np.arange(7)[:, None] / 10_000 ** (2 * np.arange(8)[None] / 16)
    for row in entered["x"][..., 16:]:
        np.testing.assert_allclose(row[:, 0::2], np.sin(angle), atol=1e-6)
        np.testing.assert_allclose(row[:, 1::2], np.cos(angle), atol=1e-6)


def test_a_matrix_of_a_concatenation_is_a_sum_of_two_maps():
    model: Any = textbook(shape="decoder", positions="concatenated")
    entered: dict[str, Any] = {}
    model.model.decoder.layers[0].register_forward_pre_hook(lambda _, args: entered.update(x=args[0]))
    run(model, IDS)
    of_tokens, of_positions = model.model.decoder.joint.weight.detach().double().split(32, dim=1)
    tokens = model.model.decoder.embedding.weight.detach().double()[IDS] * 32**0.5
    places = model.model.decoder.position_embedding.weight.double()[:7]
    wanted = tokens @ of_tokens.mT + places @ of_positions.mT
    torch.testing.assert_close(entered["x"].double(), wanted, atol=1e-5, rtol=0)


def test_no_matrix_is_shared_where_positions_are_appended(tmp_path):
    model: Any = textbook(positions="appended", tied=True)
    assert not model.config.tied
    ids = {"input_ids": IDS, "decoder_input_ids": WRITTEN}
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    with torch.no_grad():
        assert torch.equal(again(**ids).logits, model(**ids).logits)
    with pytest.raises(ValueError, match="has to be 2 or more"):
        TransformerConfig(width=1, heads=1, positions="appended")


def test_additive_scores_are_those_of_bahdanau():
    model: Any = textbook(shape="encoder", score="additive", positions="none").double()
    attention = model.model.encoder.layers[0].self_attn
    x = torch.randn(1, 5, 32, dtype=torch.float64)
    _, weights = attention(x)
    q = (x[0] @ attention.q_proj.weight.mT + attention.q_proj.bias).view(5, 4, 8)
    k = (x[0] @ attention.k_proj.weight.mT + attention.k_proj.bias).view(5, 4, 8)
    for head in range(4):
        v = attention.additive.weight[head]
        scores = torch.stack(
            [torch.stack([torch.tanh(q[i, head] + k[j, head]) @ v for j in range(5)]) for i in range(5)]
        )
        torch.testing.assert_close(weights[0, head], scores.softmax(-1), atol=1e-6, rtol=0)


def test_a_mask_of_the_future_is_what_makes_it_causal():
    changed = IDS.clone()
    changed[:, 4] = 13
    for causal in (True, False):
        model: Any = textbook(shape="decoder", causal_mask=causal)
        with torch.no_grad():
            apart = (model(IDS).logits - model(changed).logits).abs().amax(dim=(0, 2))
        assert (apart[:4].max() == 0) == causal
        assert apart[4:].min() > 1e-3


def test_label_smoothing_is_a_mixture_with_the_even_distribution():
    logits, labels = torch.randn(6, 9, dtype=torch.float64), torch.tensor([1, 3, IGNORE, 8, 0, 2])
    kept = labels != IGNORE
    log_p = logits[kept].log_softmax(-1)
    true = log_p[range(5), labels[kept]]
    wanted = -(0.9 * true + 0.1 * log_p.mean(-1)).mean()
    assert float(loss(logits, labels, 0.1)) == pytest.approx(float(wanted), abs=1e-6)


# --------------------------------------------------------------------------- every switch

EVERY: list[dict[str, Any]] = [
    {"shape": shape, "positions": positions, **more}
    for shape in ("encoder-decoder", "decoder", "encoder")
    for positions in ("none", "sinusoidal", "appended", "concatenated", "learned", "rope", "alibi", "t5")
    for more in (
        {},
        {"norm": "rms", "norm_place": "pre", "feed_forward": "swiglu", "key_heads": 2, "tied": False, "bias": False},
        {"feed_forward": "none", "residual": False, "score": "dot"},
    )
] + [{"shape": shape, "score": "additive", "key_heads": 1} for shape in ("encoder-decoder", "decoder", "encoder")]


def run(model: TextbookModel, ids: Tensor, **more: Any) -> Tensor:
    more = {"decoder_input_ids": WRITTEN, **more} if model.config.shape == "encoder-decoder" else more
    with torch.no_grad():
        logits: Tensor = model(ids, **more).logits
    return logits


@pytest.mark.short(
    "encoder-decoder-none*",
    "encoder-decoder-rope*",
    "decoder-alibi*",
    "decoder-t5*",
    "encoder-learned*",
    "*-additive-1",
)
@pytest.mark.parametrize("switches", EVERY, ids=lambda s: "-".join(map(str, s.values())))
def test_the_one_attention_function_gives_what_the_formula_gives(switches):
    model = textbook(**switches)
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    plain, padded = run(model, IDS), run(model, IDS, attention_mask=mask)
    model.set_attn_implementation(IMPLEMENTATION)
    close(run(model, IDS), plain)
    rows = slice(None) if model.config.shape == "encoder-decoder" else slice(0, 5)
    close(run(model, IDS, attention_mask=mask)[1, rows], padded[1, rows])


@pytest.mark.short(
    "encoder-decoder-none*",
    "encoder-decoder-rope*",
    "decoder-alibi*",
    "decoder-t5*",
    "decoder-learned*",
    "*-additive-1",
)
@pytest.mark.parametrize(
    "switches", [s for s in EVERY if s["shape"] != "encoder"], ids=lambda s: "-".join(map(str, s.values()))
)
def test_what_is_cached_changes_nothing(switches):
    model: Any = textbook(**switches)
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    start = {"input_ids": IDS[:1], "do_sample": False, "max_new_tokens": 6, "output_logits": True}
    start |= {"return_dict_in_generate": True, "decoder_start_token_id": 1}
    with_cache, without = model.generate(**start, use_cache=True), model.generate(**start, use_cache=False)
    assert with_cache.sequences.tolist() == without.sequences.tolist()
    close(torch.stack(with_cache.logits), torch.stack(without.logits))


@pytest.mark.short(
    "encoder-decoder-none*",
    "encoder-decoder-rope*",
    "decoder-alibi*",
    "decoder-t5*",
    "encoder-learned*",
    "*-additive-1",
)
@pytest.mark.parametrize("switches", EVERY, ids=lambda s: "-".join(map(str, s.values())))
def test_every_parameter_learns_and_gradients_are_those_of_the_differences(switches):
    smooth = {"feed_forward": "gelu", **switches}  # a ReLU has a kink, where no difference tells its slope
    model = textbook(**smooth, dropout=0.0).double()
    more = {"decoder_input_ids": WRITTEN} if model.config.shape == "encoder-decoder" else {}
    labels = WRITTEN if more else IDS

    def value() -> Any:
        return loss(model(IDS, **more).logits, labels)

    value().backward()
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        direction = torch.randn_like(parameter)
        slope = float((parameter.grad * direction).sum())
        step = 1e-6
        with torch.no_grad():
            parameter.add_(step * direction)
            above = float(value())
            parameter.sub_(2 * step * direction)
            below = float(value())
            parameter.add_(step * direction)
        assert (above - below) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-7), name
