"""Folders with small textbook transformers of random weights, as a training saves them."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import torch

from attention_models.textbook.pretrained import made
from attention_models.textbook.tokenizer import tokenizer_of
from attention_models.textbook.transformer_config import TransformerConfig

KINDS: dict[str, dict[str, Any]] = {
    "encoder-decoder": {},
    "decoder": {"shape": "decoder"},
    "encoder": {"shape": "encoder"},
    "llama-like": {
        "shape": "decoder",
        **{"positions": "rope", "norm": "rms", "norm_place": "pre", "feed_forward": "swiglu", "key_heads": 2},
        **{"bias": False, "tied": False},
    },
    "t5-like": {"positions": "t5", "norm": "rms", "norm_place": "pre", "score": "dot", "scaled_embedding": False},
    "not-causal": {"shape": "decoder", "positions": "alibi", "causal_mask": False},
    "additive": {"positions": "concatenated", "score": "additive", "norm_place": "pre"},
    "appended": {"shape": "decoder", "positions": "appended", "norm_place": "pre"},
    "bare": {"shape": "decoder", "positions": "learned", "residual": False, "feed_forward": "none"},
    "slopes-both-ways": {"shape": "encoder", "positions": "alibi", "norm_place": "pre"},
}

TEXT = "abcdefgab>"


def text_for(shape: str) -> str:
    return "abc>c<mask>a" if shape == "encoder" else TEXT


def write_folder(folder: Path, context: int = 64, **switches: Any) -> Path:
    """Write such a model into `folder`."""
    shape = switches.get("shape", "encoder-decoder")
    tokenizer = tokenizer_of(string.ascii_lowercase + ">", shape, context)
    torch.manual_seed(3)
    model = made(TransformerConfig(**{"vocabulary": len(tokenizer), "context": context, "width": 32, **switches}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
