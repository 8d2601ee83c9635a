"""Gradients through the attention function, against those of the formula in float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention import output as mixing
from attention_models.attention.inputs import AttentionInputs
from tests.models.inputs import DIM, HEADS, make, random_inputs, random_mask

PARTS = ("query", "key", "value", "bias", "sinks")


def explicit_output(x: AttentionInputs) -> Tensor:
    """The formula in float64, one whole matrix at a time, for its gradient."""
    key, value = (t.repeat_interleave(x.group, dim=1) for t in (x.key, x.value))
    s = x.query @ key.mT * x.scale
    if x.bias is not None:
        s = s + x.bias
    if x.softcap is not None:
        s = x.softcap * torch.tanh(s / x.softcap)
    e = s.exp()
    shut = attention.masked_cells(x)
    if shut is not None:
        e = e * ~shut
    total = e.sum(-1, keepdim=True)
    if x.sinks is not None:
        total = total + x.sinks.exp()[None, :, None, None]
    return (e / total) @ value


def following(x: AttentionInputs, wanted: tuple[str, ...], dtype: torch.dtype) -> AttentionInputs:
    """`x` with fresh leaves in `dtype`, those in `wanted` with a gradient."""
    changed = {}
    for name in PARTS:
        part = getattr(x, name)
        if part is not None:
            changed[name] = part.detach().to(dtype).clone().requires_grad_(name in wanted)
    return replace(x, **changed)


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("plain", PARTS[:3]),
        ("plain", ("value",)),
        ("causal", PARTS[:3]),
        ("causal", ("query",)),
        ("bool mask", PARTS[:3]),
        ("bias, causal", PARTS[:4]),
        ("bias, causal", ("bias",)),
        ("soft cap, bool mask", PARTS[:3]),
        ("sinks, bool mask", ("query", "sinks")),
        ("sinks, bool mask", ("sinks",)),
        ("everything", PARTS),
    ],
)
def test_gradient_equals_the_formulas(
    case: str, wanted: tuple[str, ...], in_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = make(case)
    if in_parts:
        monkeypatch.setattr(mixing, "_CACHE_BLOCK", 1)
    ours, theirs = following(x, wanted, torch.float32), following(x, wanted, torch.float64)
    toward = torch.randn(1, HEADS, x.queries, DIM, generator=torch.Generator().manual_seed(9))
    (mixing.output(ours) * toward).sum().backward()
    (explicit_output(theirs) * toward).sum().backward()
    for name in PARTS:
        part, other = getattr(ours, name), getattr(theirs, name)
        if name in wanted:
            assert float(part.grad.abs().max()) > 0
            torch.testing.assert_close(part.grad.double(), other.grad, atol=1e-4, rtol=1e-4)
        elif part is not None:
            assert part.grad is None


def test_gradient_past_a_row_that_may_look_at_nothing() -> None:
    mask = random_mask(6, 6)
    mask[:, :, 2] = False
    x = following(random_inputs(6, 6, mask=mask), PARTS, torch.float32)
    mixing.output(x).square().sum().backward()
    assert x.query.grad is not None
    assert x.query.grad.isfinite().all()
    assert (x.query.grad[:, :, 2] == 0).all()
    assert float(x.query.grad[:, :, 3].abs().max()) > 0


def test_no_gradient_no_graph() -> None:
    x = make("causal")
    assert not mixing.output(x).requires_grad
    tracked = following(x, PARTS, torch.float32)
    with torch.no_grad():
        assert not mixing.output(tracked).requires_grad
