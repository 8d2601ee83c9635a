"""The attention function against the formula written out in float64, and against transformers' own eager functions."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from models import attention
from models.attention import AttentionInputs

HEADS, DIM = 4, 8
LOWEST = torch.finfo(torch.float32).min


def random_inputs(queries: int, keys: int, key_heads: int = HEADS, **extras: Any) -> AttentionInputs:
    torch.manual_seed(queries * 1000 + keys)
    return AttentionInputs(
        query=2 * torch.randn(1, HEADS, queries, DIM),
        key=2 * torch.randn(1, key_heads, keys, DIM),
        value=torch.randn(1, key_heads, keys, DIM),
        scale=DIM**-0.5,
        **extras,
    )


def random_mask(queries: int, keys: int) -> Tensor:
    """(1, 1, queries, keys) bool; every query may look at the first key."""
    mask = torch.rand(1, 1, queries, keys, generator=torch.Generator().manual_seed(7)) > 0.4
    mask[..., 0] = True
    return mask


def added(mask: Tensor) -> Tensor:
    """The same mask as numbers to add: 0 or the lowest float."""
    return torch.zeros(mask.shape).masked_fill(~mask, LOWEST)


def make(case: str, queries: int = 13, keys: int = 13) -> AttentionInputs:
    mask = random_mask(queries, keys)
    bias = torch.randn(1, HEADS, queries, keys, generator=torch.Generator().manual_seed(8))
    sinks = torch.tensor([0.5, -1.0, 3.0, 0.0])
    extras: dict[str, dict[str, Any]] = {
        "plain": {},
        "causal": {"causal": True},
        "bool mask": {"mask": mask},
        "float mask": {"mask": added(mask)},
        "mask that also biases": {"mask": added(mask) + bias.masked_fill(~mask, 0.0)},
        "mask of keys": {"mask": mask[:, :, :1]},
        "bias": {"bias": bias},
        "bias of keys": {"bias": bias[:, :, :1]},
        "bias, causal": {"bias": bias, "causal": True},
        "bias, bool mask": {"bias": bias, "mask": mask},
        "bias, float mask": {"bias": bias, "mask": added(mask)},
        "soft cap": {"softcap": 1.5},
        "soft cap, causal": {"softcap": 1.5, "causal": True},
        "soft cap, bool mask": {"softcap": 1.5, "mask": mask},
        "sinks": {"sinks": sinks},
        "sinks, bool mask": {"sinks": sinks, "mask": mask},
        "grouped": {"key_heads": 2},
        "grouped, causal": {"key_heads": 2, "causal": True},
        "one key head": {"key_heads": 1, "mask": mask},
        "everything": {"key_heads": 2, "bias": bias, "softcap": 1.5, "mask": mask, "sinks": sinks},
    }
    return random_inputs(queries, keys, **extras[case])


CASES = [
    "plain",
    "causal",
    "bool mask",
    "float mask",
    "mask that also biases",
    "mask of keys",
    "bias",
    "bias of keys",
    "bias, causal",
    "bias, bool mask",
    "bias, float mask",
    "soft cap",
    "soft cap, causal",
    "soft cap, bool mask",
    "sinks",
    "sinks, bool mask",
    "grouped",
    "grouped, causal",
    "one key head",
    "everything",
]


class Explicit:
    """The formula, one query and one key at a time, in float64 and without torch."""

    def __init__(self, x: AttentionInputs) -> None:
        def whole(t: Tensor | None) -> np.ndarray | None:
            if t is None:
                return None
            return t.detach().expand(1, HEADS, x.queries, x.keys)[0].numpy()

        q, k, v = (t.detach()[0].double().numpy() for t in (x.query, x.key, x.value))
        bias, mask = whole(x.bias), whole(x.mask)
        shape = (HEADS, x.queries, x.keys)
        self.scores = np.zeros(shape)  # with what a mask adds to cells that may be looked at
        self.open = np.ones(shape, dtype=bool)
        self.weights = np.zeros(shape)
        self.output = np.zeros((HEADS, x.queries, v.shape[-1]))
        for h in range(HEADS):
            shared = h * x.key.shape[1] // HEADS
            for i in range(x.queries):
                for j in range(x.keys):
                    s = x.scale * float(q[h, i] @ k[shared, j])
                    if bias is not None:
                        s += float(bias[h, i, j])
                    if x.softcap is not None:
                        s = x.softcap * math.tanh(s / x.softcap)
                    may = j <= i if x.causal else True
                    if mask is not None:
                        may = bool(mask[h, i, j]) if mask.dtype == bool else mask[h, i, j] > LOWEST / 2
                        if may and mask.dtype != bool:
                            s += float(mask[h, i, j])
                    self.scores[h, i, j], self.open[h, i, j] = s, may
                e = np.where(self.open[h, i], np.exp(self.scores[h, i]), 0.0)
                total = e.sum() + (math.exp(float(x.sinks[h])) if x.sinks is not None else 0.0)
                if total > 0:
                    self.weights[h, i] = e / total
                self.output[h, i] = self.weights[h, i] @ v[shared]


@pytest.mark.parametrize("case", CASES)
def test_equals_the_formula(case: str) -> None:
    x = make(case)
    explicit = Explicit(x)
    weights = attention.weights(x)[0].numpy()
    np.testing.assert_allclose(attention.scores(x)[0].numpy(), explicit.scores, atol=1e-5)
    np.testing.assert_allclose(weights, explicit.weights, atol=1e-6)
    np.testing.assert_allclose(attention.output(x)[0].numpy(), explicit.output, atol=1e-5)
    assert (weights[~explicit.open] == 0).all()
    shut = attention.blocked(x)
    found = np.zeros_like(explicit.open) if shut is None else shut[0].expand(explicit.open.shape).numpy()
    assert (found == ~explicit.open).all()


@pytest.mark.parametrize("case", CASES)
def test_rows_sum_to_one(case: str) -> None:
    x = make(case, 64, 64)
    sums = attention.weights(x).double().sum(-1)
    if x.sinks is None:
        assert float((sums - 1).abs().max()) < 1e-6
    else:
        assert 0.9 < float(sums.mean()) < 0.9999  # the sinks take their share
        assert float(sums.max()) < 1 + 1e-6
        with_sink = attention.weights(replace(x, sinks=torch.full((HEADS,), -200.0)))  # one that takes nothing
        torch.testing.assert_close(with_sink, attention.weights(replace(x, sinks=None)), atol=1e-7, rtol=0)


@pytest.mark.parametrize("case", CASES)
def test_parts_equal_the_whole(case: str) -> None:
    x = make(case)
    for heads in ([0], [3], [1, 2], [3, 0], [0, 2, 3]):
        for rows in (None, slice(4, 9), [12, 0, 5], [6]):
            taken = slice(None) if rows is None else rows
            for function in (attention.scores, attention.weights):
                part, whole = function(x, heads, rows), function(x)[:, heads][:, :, taken]
                assert part.shape == whole.shape
                torch.testing.assert_close(part, whole, atol=1e-6, rtol=1e-6)


def test_query_beyond_the_keys_sees_them_all() -> None:
    x = random_inputs(5, 3, causal=True)
    seen = (attention.weights(x)[0] > 0).sum(-1)  # (heads, queries)
    assert seen[0].tolist() == [1, 2, 3, 3, 3]


@pytest.mark.parametrize("keys", [13, attention.EXACT_KEYS + 30])
@pytest.mark.parametrize("as_numbers", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_row_that_may_look_at_nothing(keys: int, as_numbers: bool, biased: bool) -> None:
    mask = random_mask(keys, keys)
    mask[:, :, 3] = False
    bias = torch.randn(1, HEADS, keys, keys) if biased else None
    x = random_inputs(keys, keys, mask=added(mask) if as_numbers else mask, bias=bias)
    weights, output = attention.weights(x), attention.output(x)
    assert (weights[:, :, 3] == 0).all()
    assert (output[:, :, 3] == 0).all()
    assert weights.isfinite().all()
    assert output.isfinite().all()
    assert float((weights[:, :, 4].sum(-1) - 1).abs().max()) < 1e-6
    assert attention.pooled(x, 8).row_error < 1e-5


def test_half_precision_weights_are_float32() -> None:
    x = make("causal")
    half = replace(x, query=x.query.half(), key=x.key.half(), value=x.value.half())
    assert attention.weights(half).dtype == torch.float32
    assert attention.output(half).dtype == torch.float16
    np.testing.assert_allclose(attention.weights(half)[0].numpy(), Explicit(x).weights, atol=5e-3)


# --------------------------------------------------------------------------- beside transformers and torch's kernel


def eager_of(family: str) -> Any:
    return importlib.import_module(f"transformers.models.{family}.modeling_{family}").eager_attention_forward


def module(**attributes: Any) -> nn.Module:
    made = nn.Module().eval()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("length", [1, 2, 7, 64, 100, 257, 512])
@pytest.mark.parametrize("case", ["plain", "causal", "bool mask"])
@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_bit_identical_to_eager(length: int, case: str, family: str) -> None:
    x = make(case, length, length)
    shut = attention.blocked(x)
    mask = None if shut is None else torch.zeros(shut.shape).masked_fill(shut, LOWEST)
    output, weights = eager_of(family)(module(), x.query, x.key, x.value, mask, scaling=x.scale)
    assert torch.equal(attention.weights(x), weights)
    assert torch.equal(attention.output(x), output.transpose(1, 2))


@pytest.mark.parametrize("length", [3, 200, 512])
def test_bit_identical_to_eager_grouped(length: int) -> None:
    x = make("grouped, causal", length, length)
    shut = attention.blocked(x)
    assert shut is not None
    mask = torch.zeros(shut.shape).masked_fill(shut, LOWEST)
    output, weights = eager_of("llama")(
        module(num_key_value_groups=2), x.query, x.key, x.value, mask, scaling=x.scale
    )
    assert torch.equal(attention.weights(x), weights)
    assert torch.equal(attention.output(x), output.transpose(1, 2))


def test_bit_identical_to_eager_with_soft_cap() -> None:
    x = make("soft cap, bool mask", 40, 40)
    assert x.mask is not None
    output, weights = eager_of("gemma2")(
        module(num_key_value_groups=1), x.query, x.key, x.value, added(x.mask), scaling=x.scale, softcap=1.5
    )
    assert torch.equal(attention.weights(x), weights)
    assert torch.equal(attention.output(x), output.transpose(1, 2))


@pytest.mark.parametrize("case", CASES)
def test_long_inputs_agree_with_their_weights(case: str) -> None:
    length = attention.EXACT_KEYS + 37
    x = make(case, length, length)
    value = x.value.repeat_interleave(x.group, dim=1)
    explicit = attention.weights(x).double() @ value.double()
    torch.testing.assert_close(attention.output(x).double(), explicit, atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", ["causal", "everything"])
def test_heads_in_parts_equal_heads_at_once(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = make(case, 30, 30)
    whole = attention.output(x)
    monkeypatch.setattr(attention, "_CACHE_BLOCK", 3 * 30 * 30)  # three heads, then one
    torch.testing.assert_close(attention.output(x), whole, atol=1e-6, rtol=0)


# --------------------------------------------------------------------------- pooled


def pooled_by_numpy(weights: np.ndarray, cell: int, how: str) -> np.ndarray:
    """(heads, queries, keys) in squares of `cell`."""
    function = np.max if how == "max" else np.mean
    heads, queries, keys = weights.shape
    rows, columns = -(-queries // cell), -(-keys // cell)
    image = np.zeros((heads, rows, columns))
    for r in range(rows):
        for c in range(columns):
            square = weights[:, r * cell : (r + 1) * cell, c * cell : (c + 1) * cell]
            image[:, r, c] = function(square, axis=(1, 2))
    return image


@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize(("queries", "keys", "cell"), [(1, 1, 1), (7, 7, 1), (100, 100, 4), (33, 33, 2), (1, 100, 4), (100, 7, 4)])
def test_pooled_equals_numpy(how: Any, queries: int, keys: int, cell: int) -> None:
    x = random_inputs(queries, keys)
    weights = attention.weights(x)[0].double().numpy()
    found = attention.pooled(x, 32, None, how)
    assert found.cell == cell
    assert max(found.images.shape[1:]) <= 32
    np.testing.assert_allclose(found.images.numpy(), pooled_by_numpy(weights, cell, how), atol=1e-6)
    mean = pooled_by_numpy(weights.mean(axis=0, keepdims=True), cell, how)[0]
    np.testing.assert_allclose(found.mean.numpy(), mean, atol=1e-6)
    assert found.row_error < 1e-6


def test_pooled_of_one_head() -> None:
    x = make("causal", 50, 50)
    one, all_heads = attention.pooled(x, 16, [2]), attention.pooled(x, 16)
    torch.testing.assert_close(one.images[0], all_heads.images[2], atol=1e-7, rtol=0)


@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize("block", [1, 700, 5000])
@pytest.mark.parametrize("case", ["causal", "everything"])
def test_blocks_of_rows_equal_the_whole(how: Any, block: int, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = make(case, 100, 100)
    whole = attention.pooled(x, 32, None, how)
    monkeypatch.setattr(attention, "_BLOCK", block)
    taken = []
    real = attention.weights

    def watched(x: AttentionInputs, heads: Any = None, rows: Any = None, out: Any = None) -> Tensor:
        taken.append(rows)
        return real(x, heads, rows, out)

    monkeypatch.setattr(attention, "weights", watched)
    parts = attention.pooled(x, 32, None, how)
    assert len(taken) > 1
    torch.testing.assert_close(parts.images, whole.images, atol=1e-6, rtol=0)
    torch.testing.assert_close(parts.mean, whole.mean, atol=1e-6, rtol=0)
    assert parts.row_error == pytest.approx(whole.row_error, abs=1e-6)


def test_row_error_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    x, real = make("causal"), attention.weights
    monkeypatch.setattr(attention, "weights", lambda *args: real(*args) * 1.001)
    assert attention.pooled(x, 32).row_error == pytest.approx(1e-3, rel=1e-2)


def test_weights_that_are_not_numbers_are_no_small_error() -> None:
    x = make("plain")
    x.query[0, 1, 5] = torch.nan
    assert attention.pooled(x, 32).row_error == math.inf


# --------------------------------------------------------------------------- gradients

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
    shut = attention.blocked(x)
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
        monkeypatch.setattr(attention, "_CACHE_BLOCK", 1)
    ours, theirs = following(x, wanted, torch.float32), following(x, wanted, torch.float64)
    toward = torch.randn(1, HEADS, x.queries, DIM, generator=torch.Generator().manual_seed(9))
    (attention.output(ours) * toward).sum().backward()
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
    attention.output(x).square().sum().backward()
    assert x.query.grad is not None
    assert x.query.grad.isfinite().all()
    assert (x.query.grad[:, :, 2] == 0).all()
    assert float(x.query.grad[:, :, 3].abs().max()) > 0


def test_no_gradient_no_graph() -> None:
    x = make("causal")
    assert not attention.output(x).requires_grad
    tracked = following(x, PARTS, torch.float32)
    with torch.no_grad():
        assert not attention.output(tracked).requires_grad
