"""What rounding may move: the bounds hold for every way to round, are reached by the worst one, and are not wider."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.rounding import Bounds, bounds, share_of_inputs
from tests.models.inputs import CASES, DIM, HEADS, LOWEST, make

FORMATS = [torch.bfloat16, torch.float16]
UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


def in_format(x: AttentionInputs, dtype: torch.dtype) -> AttentionInputs:
    """The same inputs in a format of few digits, as a model of it passes them on."""

    def narrow(t: Tensor | None) -> Tensor | None:
        if t is None or t.dtype == torch.bool:
            return t
        shut = t <= LOWEST / 2
        return t.to(dtype).masked_fill(shut, torch.finfo(dtype).min)

    parts: dict[str, Any] = {n: narrow(getattr(x, n)) for n in ("query", "key", "value", "bias", "mask", "sinks")}
    return replace(x, **parts)


def of_head(x: AttentionInputs, head: int) -> Bounds:
    return bounds(x, head, None, attention.weights(x, Part([head]))[0, 0])


def rounded(t: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """float64 rounded to the format, by torch's conversion."""
    return torch.from_numpy(t).to(dtype).double().numpy()


def step_by_step(x: AttentionInputs, head: int, dtype: torch.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Weights and outputs in float64 NumPy, rounded to the format after every operation."""
    q, k, v = (t[0].double().numpy() for t in (x.query, x.key, x.value))
    shared = head // x.group
    s = rounded(q[head] @ k[shared].T, dtype)
    s = rounded(s * x.scale, dtype)
    if x.bias is not None:
        s = rounded(s + x.bias.expand(1, HEADS, x.queries, x.keys)[0, head].double().numpy(), dtype)
    if x.softcap is not None:
        s = rounded(rounded(np.tanh(rounded(s / x.softcap, dtype)), dtype) * x.softcap, dtype)
    shut = np.zeros(s.shape, bool)
    if x.causal:
        shut |= np.triu(np.ones(s.shape, bool), 1)
    if x.mask is not None:
        mask = x.mask.expand(1, HEADS, x.queries, x.keys)[0, head]
        if mask.dtype == torch.bool:
            shut |= ~mask.numpy()
        else:
            added = mask.double().numpy()
            blocked = added <= torch.finfo(dtype).min / 2
            s = rounded(s + np.where(blocked, 0.0, added), dtype)
            shut |= blocked
    s = np.where(shut, -np.inf, s)
    if x.sinks is not None:
        s = np.concatenate([s, np.full((len(s), 1), float(x.sinks[head]))], axis=1)
        s = rounded(s - s.max(axis=1, keepdims=True), dtype)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = rounded(e / e.sum(axis=1, keepdims=True), dtype)[:, : x.keys]
    return w, rounded(w @ v[shared], dtype)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("larger", [1, 6])
@pytest.mark.parametrize("case", CASES)
def test_every_step_rounded_stays_within(case: str, larger: int, dtype: torch.dtype) -> None:
    x = make(case)
    x = in_format(replace(x, scale=x.scale * larger), dtype)
    used = 0.0
    for head in range(HEADS):
        room = of_head(x, head)
        weights, outputs = (torch.from_numpy(t).float() for t in step_by_step(x, head, dtype))
        value = x.value[0, head // x.group]
        used = max(used, room.share_of_weights(weights))
        assert used <= 1
        assert room.share_of_outputs(outputs, room.weights @ value.float(), value) <= 1
    assert used > 0.2  # rounding does make use of the room


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_worst_rounding_reaches_the_bound(dtype: torch.dtype) -> None:
    x = in_format(make("plain"), dtype)
    unit = UNIT[dtype]
    room = of_head(x, 0)
    q, k = (t[0, 0].double().numpy() for t in (x.query, x.key))
    s = q @ k.T * DIM**-0.5
    off = 2 * unit * np.abs(s)
    for i, j in [(0, 0), (3, 7), (12, 12)]:
        for sign, bound, last in ((1, room.high, 1 + unit), (-1, room.low, 1 - unit)):
            moved = s[i] - sign * off[i]
            moved[j] = s[i, j] + sign * off[i, j]
            e = np.exp(moved - moved.max())
            assert float(bound[i, j]) == pytest.approx(e[j] / e.sum() * last, rel=2e-5, abs=1e-7)


def test_to_first_order_it_is_twice_what_a_score_is_off_by() -> None:
    """w +- 2 w (1 - w) D, and u w for the weight itself, where all scores are off by the same D."""
    ones = torch.ones(1, 1, 4, 1, dtype=torch.float16)
    x = AttentionInputs(query=ones, key=ones, value=ones, scale=0.25)
    room = of_head(x, 0)
    unit = UNIT[torch.float16]
    expected = 2 * 0.25 * 0.75 * (2 * unit * 0.25) + unit * 0.25
    np.testing.assert_allclose((room.high - room.weights).numpy(), expected, rtol=2e-3)
    np.testing.assert_allclose((room.weights - room.low).numpy(), expected, rtol=2e-3)


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_masked_cell_has_no_room(dtype: torch.dtype) -> None:
    x = in_format(make("causal"), dtype)
    room = of_head(x, 1)
    weights = room.weights.clone()
    assert room.share_of_weights(weights) == 0
    weights[2, 5] = 1e-6
    assert room.share_of_weights(weights) > 1


def test_a_row_that_may_look_at_nothing_has_no_room() -> None:
    x = make("bool mask")
    assert x.mask is not None
    mask = x.mask.clone()
    mask[:, :, 4] = False
    room = of_head(in_format(replace(x, mask=mask), torch.bfloat16), 0)
    assert (room.weights[4] == 0).all()
    assert room.share_of_weights(room.weights) == 0
    assert room.share_of_weights(torch.full_like(room.weights, 1e-6)) > 1e3


def test_no_number_is_beyond_all_rounding() -> None:
    x = in_format(make("plain"), torch.float16)
    room = of_head(x, 0)
    assert room.share_of_weights(torch.full_like(room.weights, torch.nan)) == math.inf
    nothing = torch.full((13, DIM), torch.nan)
    assert room.share_of_outputs(nothing, nothing, x.value[0, 0]) == math.inf
    assert share_of_inputs(x.query, torch.full_like(x.query, torch.nan)) == math.inf


def test_inputs_are_the_same_but_for_their_last_places() -> None:
    query = torch.tensor([0.5, 1.0, -2.0], dtype=torch.bfloat16)
    assert share_of_inputs(query, query) == 0
    assert share_of_inputs(query, query * (1 + 2**-7)) == pytest.approx(0.5, rel=0.02)  # one unit in the last place
    assert share_of_inputs(query, query.roll(1)) > 50
    assert share_of_inputs(torch.zeros(3), torch.zeros(3)) == 0
