"""Writes a tiny llama as llama.cpp's converter does: other names, q and k turned about, the tokenizer in the header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_of(
    folder: Path,
    path: Path,
    architecture: str = "llama",
    tokenizer: bool = True,
    template: str = "",
    packed: bool = False,
    parts: int = 1,
) -> Path:
    """The llama checkpoint in `folder` as the GGUF file `path`, in float32."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    if parts > 1:
        writer.add_uint16("split.count", parts)
    if tokenizer:
        _add_tokenizer(writer, folder)
    if template:
        writer.add_chat_template(template)
    for name, tensor in load_file(folder / "model.safetensors").items():
        turned = _turned(name, tensor, config)
        if packed and turned.ndim == 2 and turned.shape[1] % 32 == 0:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(_name(name), gguf.quants.quantize(turned, kind), raw_dtype=kind)
        else:
            writer.add_tensor(_name(name), turned)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter, folder: Path) -> None:
    saved: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = saved["model"]["vocab"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(sorted(vocabulary, key=vocabulary.__getitem__))
    writer.add_token_types([3 if token == "<|endoftext|>" else 1 for token in sorted(vocabulary, key=vocabulary.get)])
    writer.add_token_merges([" ".join(pair) for pair in saved["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)


def _name(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in TOP:
        return f"{TOP[stem]}.weight"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{NAMES[part]}.weight"


def _turned(name: str, tensor: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    """llama.cpp keeps the two halves of a rotated pair side by side."""
    tensor = tensor.astype(np.float32)
    for part, heads in (("q_proj", config["num_attention_heads"]), ("k_proj", config["num_key_value_heads"])):
        if part in name:
            rows = tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, tensor.shape[1])
            return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(tensor.shape))
    return tensor
