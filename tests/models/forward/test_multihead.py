"""`nn.MultiheadAttention` in every documented way to call it, and `nn.Transformer` whole, against torch's own lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attention_models import adopt, run
from attention_models.protocol.interventions import Scale
from tests.models.own_modules import CHARACTERS, HEADS, VOCABULARY, WIDTH

TEXT = "Tom went"
COUNT = len(TEXT)
FUTURE = torch.ones(COUNT, COUNT, dtype=torch.bool).triu(1)
LAST = torch.zeros(1, COUNT, dtype=torch.bool)
LAST[0, -1] = True
BIAS = torch.linspace(-1, 1, COUNT * COUNT).view(COUNT, COUNT)


class Net(nn.Module):
    """One attention, made and called as `made` and `called` say; `weights` are what it returned last."""

    def __init__(self, made: dict[str, Any], called: dict[str, Any], is_batched: bool = True) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.made, self.called, self.is_batched = made, called, is_batched
        self.embedding, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.keys, self.values = (nn.Linear(WIDTH, made.get(name, WIDTH)) for name in ("kdim", "vdim"))
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, **made)
        if self.attention.in_proj_bias is not None:
            nn.init.normal_(self.attention.in_proj_bias)
        self.weights: Tensor | None = None

    def attend(self, ids: Tensor, **more: Any) -> tuple[Tensor, Tensor | None]:
        x = self.embedding(ids)  # (1, tokens, width)
        given = (x, self.keys(x), self.values(x))
        if not self.is_batched:
            given = tuple(t[0] for t in given)
        elif not self.made.get("batch_first"):
            given = tuple(t.transpose(0, 1) for t in given)
        called = {name: self.cut(t, ids.shape[1]) for name, t in self.called.items()}
        out, weights = self.attention(*given, **{**called, **more})
        if not self.is_batched:
            return out[None], weights
        return out if self.made.get("batch_first") else out.transpose(0, 1), weights

    def cut(self, given: Any, count: int) -> Any:
        """A mask for so many tokens: adopting runs the module on fewer."""
        if not isinstance(given, Tensor):
            return given
        if not self.is_batched and given is LAST:
            given = given[0]
        return given[..., -count:] if given.shape[-2:] != (COUNT, COUNT) else given[..., :count, :count]

    def forward(self, ids: Tensor) -> Tensor:
        out, self.weights = self.attend(ids)
        logits: Tensor = self.head(out)
        return logits


WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as it comes": ({}, {}),
    "batch first": ({"batch_first": True}, {}),
    "every head": ({"batch_first": True}, {"average_attn_weights": False}),
    "no weights": ({"batch_first": True}, {"need_weights": False}),
    "padding": ({"batch_first": True}, {"key_padding_mask": LAST}),
    "padding, no weights": ({"batch_first": True}, {"key_padding_mask": LAST, "need_weights": False}),
    "bool mask": ({"batch_first": True}, {"attn_mask": FUTURE}),
    "float mask": ({"batch_first": True}, {"attn_mask": BIAS}),
    "float mask, every head": ({}, {"attn_mask": BIAS, "average_attn_weights": False}),
    "a mask for each head": ({"batch_first": True}, {"attn_mask": FUTURE.expand(HEADS, -1, -1)}),
    "both masks": ({"batch_first": True}, {"attn_mask": FUTURE, "key_padding_mask": LAST}),
    "causal": ({"batch_first": True}, {"attn_mask": FUTURE, "is_causal": True}),
    "causal, no weights": ({"batch_first": True}, {"attn_mask": FUTURE, "is_causal": True, "need_weights": False}),
    "other widths": ({"batch_first": True, "kdim": 6, "vdim": 10}, {}),
    "no bias": ({"batch_first": True, "bias": False}, {}),
    "a learned key": ({"batch_first": True, "add_bias_kv": True}, {}),
    "a learned key and masks": (
        {"batch_first": True, "add_bias_kv": True},
        {"attn_mask": FUTURE, "key_padding_mask": LAST},
    ),
    "a key of zeros": ({"batch_first": True, "add_zero_attn": True}, {}),
}


@pytest.mark.parametrize("is_batched", [True, False], ids=["batched", "unbatched"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_call_it(way: str, is_batched: bool) -> None:
    module = Net(*WAYS[way], is_batched=is_batched).eval()
    model = adopt(module, CHARACTERS)
    ids = model.encode(TEXT).inputs["input_ids"]
    trace = run(model, TEXT)
    ours = module.weights
    with torch.no_grad():
        logits = module(ids)[0]
        theirs = module.weights
        _, every = module.attend(ids, need_weights=True, average_attn_weights=False)
    assert every is not None
    every = every.view(HEADS, COUNT, -1)
    np.testing.assert_allclose(trace.logits, logits.numpy(), atol=1e-6)
    assert [site.heads for site in trace.sites] == [HEADS]
    for head in range(HEADS):
        np.testing.assert_allclose(trace.weights(0, head), every[head].numpy(), atol=1e-6)
    assert (ours is None) == (theirs is None)
    if ours is not None and theirs is not None:
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


def test_weights_that_are_returned_are_those_that_were_changed() -> None:
    module = Net({"batch_first": True}, {"average_attn_weights": False}).eval()
    model = adopt(module, CHARACTERS)
    trace = run(model, TEXT, interventions=[Scale(0.0)])
    assert module.weights is not None
    np.testing.assert_allclose(module.weights.numpy(), 1 / COUNT, atol=1e-6)
    np.testing.assert_allclose(trace.weights(0, 0), 1 / COUNT, atol=1e-6)


class Whole(nn.Module):
    """`nn.Transformer`: an encoder that reads the text, and a decoder that reads it again and looks at the encoder."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embedding, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.batch_first = batch_first
        self.transformer = nn.Transformer(WIDTH, HEADS, 2, 2, 2 * WIDTH, batch_first=batch_first)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        x = x if self.batch_first else x.transpose(0, 1)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        out = self.transformer(x, x, tgt_mask=mask, tgt_is_causal=True)
        logits: Tensor = self.head(out if self.batch_first else out.transpose(0, 1))
        return logits


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_a_whole_transformer_and_the_fast_path(batch_first: bool, fast: bool) -> None:
    module = Whole(batch_first).eval()
    model = adopt(module, CHARACTERS)
    kept: list[Tensor] = []

    def weighed(of: nn.MultiheadAttention) -> Callable[..., tuple[Tensor, Tensor | None]]:
        own = of.forward

        def forward(*args: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
            out, weights = own(*args, **{**options, "need_weights": True, "average_attn_weights": False})
            assert weights is not None
            kept.append(weights[0])
            return out, None

        return forward

    was = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(fast)
        trace = run(model, TEXT)
        ids = model.encode(TEXT).inputs["input_ids"]
        with torch.no_grad():
            np.testing.assert_allclose(trace.logits, module(ids)[0].numpy(), atol=2e-6)
        assert torch.backends.mha.get_fastpath_enabled() is fast
        torch.backends.mha.set_fastpath_enabled(False)
        for child in module.modules():
            if isinstance(child, nn.MultiheadAttention):
                child.forward = weighed(child)  # type: ignore[method-assign]
        with torch.no_grad():
            module(ids)
    finally:
        torch.backends.mha.set_fastpath_enabled(was)
    assert len(trace.sites) == len(kept) == 6  # two of the encoder, and two of each kind of the decoder
    for place, theirs in enumerate(kept):
        for head in range(HEADS):
            np.testing.assert_allclose(trace.weights(place, head), theirs[head].numpy(), atol=2e-6)
