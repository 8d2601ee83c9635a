"""What the blocks of each family are made of, written down by hand from its code in transformers.

A module's name has {} in the place of the block's number; it is the module whose output is added to the stream.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Blocks:
    """One stack of a family.

    Attributes:
        block: its blocks.
        attention: what self-attention writes.
        network: what the feed-forward network writes.
        last: the matrix that reads the network's hidden units; "" for a mixture of experts.
        placement: where normalisations stand.
        cross: what cross-attention writes; "" for a stack without.
        parallel: attention and network read the same stream.
        activation: what the function between the network's matrices is called.
        gated: whether the network has a gate.
        norm: which normalises what leaves the last block; "" where none does.
    """

    block: str
    attention: str
    network: str
    last: str
    placement: str
    cross: str = ""
    parallel: bool = False
    activation: str = "GELU"
    gated: bool = False
    norm: str = ""


def gpt2(root: str = "transformer.") -> Blocks:
    return Blocks(
        f"{root}h.{{}}",
        "attn",
        "mlp",
        "mlp.c_proj",
        "pre",
        activation="GELU (tanh)",
        norm=f"{root}ln_f",
    )


def _llama(root: str = "model.") -> Blocks:
    return Blocks(
        f"{root}layers.{{}}",
        "self_attn",
        "mlp",
        "mlp.down_proj",
        "pre",
        activation="SiLU",
        gated=True,
        norm=f"{root}norm",
    )


def _gemma() -> Blocks:
    return Blocks(
        "model.layers.{}",
        "post_attention_layernorm",
        "post_feedforward_layernorm",
        "mlp.down_proj",
        "both",
        activation="GELU (tanh)",
        gated=True,
        norm="model.norm",
    )


def bert(root: str = "bert.encoder.") -> Blocks:
    return Blocks(f"{root}layer.{{}}", "attention.output.dense", "output.dense", "output.dense", "post")


def _t5(stack: str, network: int, cross: str = "") -> Blocks:
    return Blocks(
        f"{stack}.block.{{}}",
        "layer.0.SelfAttention",
        f"layer.{network}.DenseReluDense",
        f"layer.{network}.DenseReluDense.wo",
        "pre",
        cross=cross,
        activation="ReLU",
        norm=f"{stack}.final_layer_norm",
    )


def _mt5(stack: str, network: int, cross: str = "") -> Blocks:
    one = _t5(stack, network, cross)
    return Blocks(one.block, one.attention, one.network, one.last, "pre", cross, False, "GELU (tanh)", True, one.norm)


def bart(stack: str, cross: str = "", placement: str = "post", norm: str = "", root: str = "model.") -> Blocks:
    return Blocks(f"{root}{stack}.layers.{{}}", "self_attn", "fc2", "fc2", placement, cross=cross, norm=norm)


FAMILIES: dict[str, dict[str, Blocks]] = {
    "gpt2": {"decoder": gpt2()},
    "gpt2_bare": {"decoder": gpt2()},
    "llama": {"decoder": _llama()},
    "mistral": {"decoder": _llama()},
    "qwen2": {"decoder": _llama()},
    "qwen3": {"decoder": _llama()},
    "phi3": {"decoder": _llama()},
    "gemma2": {"decoder": _gemma()},
    "gemma3": {"decoder": _gemma()},
    "gpt_neox": {
        "decoder": Blocks(
            "gpt_neox.layers.{}",
            "attention",
            "mlp",
            "mlp.dense_4h_to_h",
            "pre",
            parallel=True,
            norm="gpt_neox.final_layer_norm",
        )
    },
    "opt": {
        "decoder": Blocks(
            "model.decoder.layers.{}",
            "self_attn",
            "fc2",
            "fc2",
            "pre",
            activation="ReLU",
            norm="model.decoder.final_layer_norm",
        )
    },
    "gpt_oss": {
        "decoder": Blocks(
            "model.layers.{}", "self_attn", "mlp", "", "pre", activation="", gated=True, norm="model.norm"
        )
    },
    "bert": {"encoder": bert()},
    "bert_decoder": {"decoder": bert()},
    "electra": {"encoder": bert("electra.encoder.")},
    "roberta": {"encoder": bert("roberta.encoder.")},
    "xlm_roberta": {"encoder": bert("roberta.encoder.")},
    "albert": {
        "encoder": Blocks(
            "albert.encoder.albert_layer_groups.0",
            "albert_layers.0.attention.dense",
            "albert_layers.0.ffn_output",
            "albert_layers.0.ffn_output",
            "post",
            activation="GELU (tanh)",
        )
    },
    "distilbert": {
        "encoder": Blocks("distilbert.transformer.layer.{}", "attention.out_lin", "ffn.lin2", "ffn.lin2", "post")
    },
    "modernbert": {
        "encoder": Blocks("model.layers.{}", "attn.Wo", "mlp.Wo", "mlp.Wo", "pre", gated=True, norm="model.final_norm")
    },
    "t5": {"encoder": _t5("encoder", 1), "decoder": _t5("decoder", 2, "layer.1.EncDecAttention")},
    "mt5": {"encoder": _mt5("encoder", 1), "decoder": _mt5("decoder", 2, "layer.1.EncDecAttention")},
    "bart": {"encoder": bart("encoder"), "decoder": bart("decoder", "encoder_attn")},
    "mbart": {
        "encoder": bart("encoder", placement="pre", norm="model.encoder.layer_norm"),
        "decoder": bart("decoder", "encoder_attn", "pre", "model.decoder.layer_norm"),
    },
    "marian": {"encoder": bart("encoder"), "decoder": bart("decoder", "encoder_attn")},
}
