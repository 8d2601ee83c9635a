"""The attention function against the formula written out in float64, and against transformers' own eager functions."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attention_models.attention import attention, pooling
from attention_models.attention import output as mixing
from attention_models.attention.inputs import Part
from tests.models.inputs import CASES, HEADS, LOWEST, Explicit, added, make, random_inputs, random_mask


@pytest.mark.parametrize("case", CASES)
def test_equals_the_formula(case: str) -> None:
    x = make(case)
    explicit = Explicit(x)
    weights = attention.weights(x)[0].numpy()
    np.testing.assert_allclose(attention.scores(x)[0].numpy(), explicit.scores, atol=1e-5)
    np.testing.assert_allclose(weights, explicit.weights, atol=1e-6)
    np.testing.assert_allclose(mixing.output(x)[0].numpy(), explicit.output, atol=1e-5)
    assert (weights[~explicit.open] == 0).all()
    shut = attention.masked_cells(x)
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


@pytest.mark.parametrize("as_of_a_long_text", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_parts_equal_the_whole(case: str, as_of_a_long_text: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = make(case)
    blocked = attention.masked_cells(x)
    shut = torch.zeros(1, 1, 1, 1, dtype=torch.bool) if blocked is None else blocked
    wholes = [attention.scores(x), attention.weights(x), attention.scores(x).masked_fill(shut, -torch.inf)]
    functions = (attention.scores, attention.weights, lambda *given: attention.masked_scores(*given)[0])
    if as_of_a_long_text:
        monkeypatch.setattr(attention, "EXACT_KEYS", 0)
    for heads in (None, [0], [3], [1, 2], [3, 0], [0, 2, 3]):
        for rows in (None, slice(4, 9), slice(0, 1), [12, 0, 5], [6]):
            for function, whole in zip(functions, wholes, strict=True):
                expected = whole if heads is None else whole[:, heads]
                expected = expected if rows is None else expected[:, :, rows]
                part = function(x, Part(heads, rows))
                assert part.shape == expected.shape
                torch.testing.assert_close(part, expected, atol=1e-6, rtol=1e-6)
                if function is not attention.weights:  # whose rows are whole
                    some = function(x, Part(heads, rows, slice(3, 11)))
                    torch.testing.assert_close(some, expected[..., 3:11], atol=1e-6, rtol=1e-6)


def test_of_a_long_text_the_product_is_written_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "EXACT_KEYS", 0)
    x = make("grouped, causal")
    whole = attention.scores(x)
    for room in (torch.full_like(whole, torch.nan), torch.full((1, HEADS, 20, 13), torch.nan)[:, :, :13]):
        found = attention.scores(x, out=room)
        assert found.data_ptr() == room.data_ptr()
        torch.testing.assert_close(room, whole, atol=1e-5, rtol=0)


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
    weights, output = attention.weights(x), mixing.output(x)
    assert (weights[:, :, 3] == 0).all()
    assert (output[:, :, 3] == 0).all()
    assert weights.isfinite().all()
    assert output.isfinite().all()
    assert float((weights[:, :, 4].sum(-1) - 1).abs().max()) < 1e-6
    assert pooling.pooled(x, 8).sums.report().error < 1e-5


def test_half_precision_weights_are_float32() -> None:
    x = make("causal")
    half = replace(x, query=x.query.half(), key=x.key.half(), value=x.value.half())
    assert attention.weights(half).dtype == torch.float32
    assert mixing.output(half).dtype == torch.float16
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
    shut = attention.masked_cells(x)
    mask = None if shut is None else torch.zeros(shut.shape).masked_fill(shut, LOWEST)
    output, weights = eager_of(family)(module(), x.query, x.key, x.value, mask, scaling=x.scale)
    assert torch.equal(attention.weights(x), weights)
    assert torch.equal(mixing.output(x), output.transpose(1, 2))


@pytest.mark.parametrize("length", [3, 200, 512])
def test_bit_identical_to_eager_grouped(length: int) -> None:
    x = make("grouped, causal", length, length)
    shut = attention.masked_cells(x)
    assert shut is not None
    mask = torch.zeros(shut.shape).masked_fill(shut, LOWEST)
    output, weights = eager_of("llama")(module(num_key_value_groups=2), x.query, x.key, x.value, mask, scaling=x.scale)
    assert torch.equal(attention.weights(x), weights)
    assert torch.equal(mixing.output(x), output.transpose(1, 2))


def test_bit_identical_to_eager_with_soft_cap() -> None:
    x = make("soft cap, bool mask", 40, 40)
    assert x.mask is not None
    output, weights = eager_of("gemma2")(
        module(num_key_value_groups=1), x.query, x.key, x.value, added(x.mask), scaling=x.scale, softcap=1.5
    )
    assert torch.equal(attention.weights(x), weights)
    assert torch.equal(mixing.output(x), output.transpose(1, 2))


@pytest.mark.parametrize("case", CASES)
def test_long_inputs_agree_with_their_weights(case: str) -> None:
    length = attention.EXACT_KEYS + 37
    x = make(case, length, length)
    value = x.value.repeat_interleave(x.group, dim=1)
    explicit = attention.weights(x).double() @ value.double()
    torch.testing.assert_close(mixing.output(x).double(), explicit, atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [40, attention.EXACT_KEYS + 37])
@pytest.mark.parametrize("case", ["causal", "float mask", "grouped, causal", "bias, bool mask"])
def test_where_the_fused_kernel_is_not_trusted_the_weights_that_are_shown_are_mixed(
    case: str, length: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise AssertionError("the fused kernel was called")

    x = make(case, length, length)
    x = replace(x, query=x.query.to(dtype), key=x.key.to(dtype), value=x.value.to(dtype))
    value = x.value.repeat_interleave(x.group, dim=1)
    explicit = attention.weights(x).double() @ value.double()
    monkeypatch.setattr(attention, "UNTRUSTED", {"cpu"})
    monkeypatch.setattr(mixing, "_fused", broken)
    found = mixing.output(x)
    assert found.dtype == dtype
    close = 1e-5 if dtype == torch.float32 else 2**-8 * 3 * float(value.abs().max())  # a rounded weight, and the sum
    torch.testing.assert_close(found.double(), explicit, atol=close, rtol=0)


@pytest.mark.parametrize("case", ["causal", "everything"])
def test_heads_in_parts_equal_heads_at_once(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = make(case, 30, 30)
    whole = mixing.output(x)
    monkeypatch.setattr(mixing, "_CACHE_BLOCK", 3 * 30 * 30)  # three heads, then one
    torch.testing.assert_close(mixing.output(x), whole, atol=1e-6, rtol=0)
