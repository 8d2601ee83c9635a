"""The textbook transformer's gradients equal numerical ones, in float64 and for every switch (torch's gradcheck)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from attention_models.textbook.pretrained import made
from attention_models.textbook.transformer import IGNORE, loss
from attention_models.textbook.transformer_config import CHOICES, TransformerConfig

TINY = {"vocabulary": 7, "width": 8, "heads": 2, "layers": 2, "inner": 6, "context": 6, "dropout": 0.0}

SWITCHES: list[dict[str, Any]] = [
    *({name: word} for name, words in CHOICES.items() for word in words),
    *(
        {name: value}
        for name in ("residual", "causal_mask", "tied", "bias", "scaled_embedding")
        for value in (True, False)
    ),
    {"key_heads": 1},
    {"label_smoothing": 0.0},
    {
        "shape": "decoder",
        "positions": "rope",
        "norm": "rms",
        "norm_place": "pre",
        "feed_forward": "swiglu",
        "key_heads": 1,
    },
    {"shape": "decoder", "causal_mask": False, "positions": "t5", "buckets": 4, "farthest": 8},
]


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: ",".join(f"{k}={v}" for k, v in s.items()))
def test_gradients_are_numerical_ones(switches: dict[str, Any]) -> None:
    torch.manual_seed(2)
    given = {"norm_place": "pre", **TINY, **switches}
    if given.get("score") == "additive":
        given["positions"] = "learned"
    if given.get("positions") == "t5":
        given |= {"buckets": 4, "farthest": 8}
    config = TransformerConfig(**given)
    model = made(config).double()
    model.set_attn_implementation("eager")
    ids = torch.tensor([[3, 4, 5, 2], [6, 3, 2, 0]])
    inputs = {"input_ids": ids, "attention_mask": (ids != 0).long()}
    if config.shape == "encoder-decoder":
        inputs["decoder_input_ids"] = torch.tensor([[1, 5, 4], [1, 3, 6]])
    labels = torch.tensor([[5, 4, 3], [3, 6, IGNORE]])
    if config.shape != "encoder-decoder":
        labels = torch.tensor([[4, 5, 2, IGNORE], [3, 2, IGNORE, IGNORE]])
    named = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}

    def value(*numbers: Tensor) -> Tensor:
        said = functional_call(model, dict(zip(named, numbers, strict=True)), (), inputs, tie_weights=True).logits
        return loss(said, labels, config.label_smoothing)

    assert torch.autograd.gradcheck(value, tuple(named.values()), eps=1e-6, atol=1e-7, rtol=1e-4, fast_mode=True)
