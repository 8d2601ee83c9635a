"""Masks that are evaluated where they are looked at, against the same masks held whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention import masks as hf_masks
from attention_models.attention import output as mixing
from attention_models.attention.atlas import IncrementalAtlas
from attention_models.attention.incremental import BlockSize
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.masks import MaskFunction, Places, RowMask, held, places
from attention_models.attention.pooling import pooled
from attention_models.attention.tiles import HeadTiles
from attention_models.protocol import values
from attention_models.protocol.values import Tile
from tests.models.inputs import HEADS, random_inputs

CPU = torch.device("cpu")
LENGTH = 300  # four groups of rows and what is left of one

Where = Callable[[Tensor, Tensor], Tensor]

SHAPES: dict[str, Where] = {
    "window": lambda q, k: (k <= q) & (k > q - 40),
    "wide window": lambda q, k: (k <= q) & (k > q - 130),  # some keys are open to all rows of a group
    "narrow window": lambda q, k: (k <= q) & (k > q - 3),
    "both sides": lambda q, k: (k - q).abs() <= 25,
    "chunks": lambda q, k: (k <= q) & (k // 70 == q // 70),
    "causal": lambda q, k: k <= q,
    "all": lambda q, k: (q >= 0) & (k >= 0),
    "all but the last": lambda q, k: (q >= 0) & (k < 260),
    "nothing for some": lambda q, k: (k <= q) & (k > q - 9) & ((q < 64) | (q >= 200)),
    "here and there": lambda q, k: (q * 31 + k * 17) % 11 == 0,
}


def rule(where: Where, queries: int = LENGTH, keys: int = LENGTH) -> MaskFunction:
    def cells(rows: Places, across: slice) -> Tensor:
        q = places(rows, CPU)
        return where(q[:, None], torch.arange(across.start, across.stop)[None])[None, None]

    return MaskFunction(cells, queries, keys, CPU)


def whole(where: Where, queries: int = LENGTH, keys: int = LENGTH) -> Tensor:
    return where(torch.arange(queries)[:, None], torch.arange(keys)[None])[None, None]


@pytest.fixture(params=SHAPES)
def where(request: pytest.FixtureRequest) -> Where:
    return SHAPES[request.param]


@pytest.fixture(params=["of one rule", "of two"])
def mask(request: pytest.FixtureRequest, where: Where) -> tuple[RowMask, Tensor]:
    """A mask, and the same held whole."""
    if request.param == "of one rule":
        return RowMask([rule(where)]), whole(where)
    other = SHAPES["window"]
    of_head = (0, 1, 0, 1)
    both = (whole(where), whole(other))
    return RowMask([rule(where), rule(other)], of_head), torch.cat([both[i] for i in of_head], dim=1)


@pytest.mark.parametrize("rows", [None, slice(0, 1), slice(60, 200), slice(3, 90, 7), [299, 0, 5, -1], [7]])
def test_a_block_is_that_of_the_whole(mask: tuple[RowMask, Tensor], rows: Any) -> None:
    made, expected = mask
    assert made.shape == expected.shape
    for heads in (None, [0], [3, 1], [0, 1, 2]):
        for keys in (None, slice(0, LENGTH), slice(30, 117), slice(290, None)):
            part = expected if heads is None or expected.shape[1] == 1 else expected[:, heads]
            part = part[:, :, slice(None) if rows is None else rows][..., keys or slice(None)]
            found = made.block(heads, rows, keys)
            assert found.dtype == torch.bool
            assert type(found) is Tensor
            assert found.shape[1] in (1, part.shape[1])  # one for all where they are masked alike
            assert torch.equal(found.expand_as(part), part)


@pytest.mark.parametrize("block", [hf_masks._BLOCK, BlockSize(70 * LENGTH)])
def test_nothing_is_open_beyond_the_reach(where: Where, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf_masks, "_BLOCK", block)
    made, cells = rule(where), whole(where)[0, 0].numpy()
    for start, stop in ((0, 1), (0, 64), (60, 70), (63, 64), (100, 180), (256, 300), (299, 300), (0, LENGTH)):
        rows = slice(start, stop)
        # the rows that share a group answer together
        open_ = np.flatnonzero(cells[start // 64 * 64 : -(-stop // 64) * 64].any(axis=0))
        found = made.reach(rows)
        assert (found.start, found.stop) == ((int(open_[0]), int(open_[-1]) + 1) if len(open_) else (0, 0))
        run = made.open_run(rows)
        group = slice(start // 64 * 64, -(-stop // 64) * 64)
        assert cells[group, run].all()


def test_what_every_row_sees_is_known() -> None:
    assert rule(SHAPES["all"]).open_run(slice(0, LENGTH)) == slice(0, LENGTH)
    assert rule(SHAPES["all but the last"]).open_run(slice(10, 200)) == slice(0, 260)
    assert rule(SHAPES["causal"]).open_run(slice(130, 200)) == slice(0, 129)
    assert rule(SHAPES["causal"]).open_run(slice(0, LENGTH)) == slice(0, 1)
    assert rule(lambda q, k: (k <= q) & (k > q - 100)).open_run(slice(128, 192)) == slice(92, 129)
    blocks = rule(lambda q, k: k // 64 == q // 64)
    assert blocks.open_run(slice(0, 64)) == slice(0, 64)
    for nothing in (blocks.open_run(slice(0, 65)), rule(SHAPES["here and there"]).open_run(slice(0, 64))):
        assert nothing == slice(0, 0)
    two = RowMask([rule(SHAPES["all"]), rule(SHAPES["all but the last"])], (0, 1, 0, 1))
    assert two.open_run([0, 2], slice(0, 9)) == slice(0, LENGTH)
    assert two.open_run(None, slice(0, 9)) == slice(0, 260)


def test_work_counts_what_rows_reach(where: Where) -> None:
    made = rule(where)
    each = [made.reach(slice(row, row + 1)) for row in range(LENGTH)]
    for first, last in ((0, LENGTH), (0, 10), (50, 200), (299, 300), (7, 7)):
        assert made.work(first, last) == sum(run.stop - run.start for run in each[first:last])
    two = RowMask([made, rule(SHAPES["all"])], (0, 0, 1, 0))
    assert two.work(0, 100, HEADS) == 3 * made.work(0, 100) + 100 * LENGTH
    assert RowMask([made]).work(0, 100, HEADS) == 4 * made.work(0, 100)


# --------------------------------------------------------------------------- as a tensor


def test_what_torch_does_with_it_is_done_with_the_whole() -> None:
    made, expected = RowMask([rule(SHAPES["window"])]), whole(SHAPES["window"])
    assert (made.shape, made.dtype, made.dim(), made.device) == (expected.shape, torch.bool, 4, CPU)
    for found, right in (
        (made & expected, expected),
        (~made, ~expected),
        (made[:, :, 3:9, 4:], expected[:, :, 3:9, 4:]),
        (made.float(), expected.float()),
        (torch.where(made, 0.0, -1.0), torch.where(expected, 0.0, -1.0)),
        (torch.zeros(1, 2, LENGTH, LENGTH).masked_fill(made, 1.0), expected.float().expand(1, 2, -1, -1)),
    ):
        assert type(found) is Tensor
        assert torch.equal(found, right)


def test_another_device_gets_the_same_rule() -> None:
    made = RowMask([rule(SHAPES["window"])], batch=2)
    for same in (made.to("cpu"), made.detach(), made.to("cpu", torch.bool, copy=True)):
        assert isinstance(same, RowMask)
        assert (same.shape, same.functions) == (made.shape, made.functions)
    moved = made.to("meta")
    assert isinstance(moved, RowMask)
    assert moved.device.type == moved.block(rows=[4]).device.type == "meta"
    assert "RowMask" in repr(made)


def test_the_tensors_that_it_is_made_of_are_counted() -> None:
    padding, trained = torch.ones(1, 9), torch.ones(1, 1, 9, 9, dtype=torch.bool)
    inner = RowMask([MaskFunction(rule(SHAPES["all"])._cells, 9, 9, CPU, [padding])])
    outer = RowMask([MaskFunction(rule(SHAPES["all"])._cells, 9, 9, CPU, [inner, trained])])
    assert [id(t) for t in held(outer)] == [id(padding), id(trained)]
    assert list(held(None)) == []
    assert list(held(trained)) == [trained]


# --------------------------------------------------------------------------- in the attention function


def both(mask: tuple[RowMask, Tensor], keys: int = LENGTH, **extras: Any) -> tuple[AttentionInputs, AttentionInputs]:
    x = random_inputs(LENGTH, keys, **extras)
    return replace(x, mask=mask[0]), replace(x, mask=mask[1])


EXTRAS: dict[str, dict[str, Any]] = {
    "plain": {},
    "soft cap": {"softcap": 1.5},
    "sinks": {"sinks": torch.tensor([0.5, -1.0, 3.0, 0.0])},
    "grouped": {"key_heads": 2},
    "scaled": {"factors": torch.tensor([1.0, 0.5, 2.0, 0.0])},
    "bias": {"bias": torch.randn(1, HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(8))},
    "all": {"key_heads": 2, "softcap": 1.5, "sinks": torch.tensor([0.5, -1.0, 3.0, 0.0])},
}


@pytest.mark.short("*-all", "of two-chunks-0-*", "of one rule-window-512-*")
@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("exact", [0, attention.EXACT_KEYS])
def test_outputs_are_those_of_the_whole_mask(
    mask: tuple[RowMask, Tensor], extra: str, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By torch's fused kernel, and by weights; the whole mask's output also in float64."""
    x, held_whole = both(mask, **EXTRAS[extra])
    value = x.value.repeat_interleave(x.group, dim=1).double()
    expected = (attention.weights(held_whole).double() @ value).float()
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    monkeypatch.setattr(attention, "EXACT_KEYS", exact)
    monkeypatch.setattr(mixing, "_LEAST_ROWS", 16)
    monkeypatch.setattr(mixing, "_ROWS_BLOCK", BlockSize(HEADS * 40 * LENGTH))
    torch.testing.assert_close(mixing.output(x), expected, atol=5e-6, rtol=2e-6)  # scores of 40, rounded twice
    if not exact and extra in ("plain", "grouped", "scaled"):
        torch.testing.assert_close(mixing.output(x), mixing._fused_whole(held_whole), atol=2e-6, rtol=2e-6)


def test_every_row_of_a_batch_has_its_own_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "EXACT_KEYS", 0)
    there = torch.arange(LENGTH) < torch.tensor([LENGTH, 90])[:, None]  # (batch, keys)

    def cells(rows: Places, keys: slice) -> Tensor:
        q, k = places(rows, CPU)[:, None], torch.arange(keys.start, keys.stop)
        return (k <= q)[None, None] & there[:, None, None, keys]

    x = random_inputs(LENGTH, LENGTH)
    x = replace(x, query=torch.cat([x.query, x.query]), key=torch.cat([x.key] * 2), value=torch.cat([x.value] * 2))
    lazy = RowMask([MaskFunction(cells, LENGTH, LENGTH, CPU)], batch=2)
    torch.testing.assert_close(
        mixing.output(replace(x, mask=lazy)),
        mixing._fused_whole(replace(x, mask=lazy.block())),
        atol=2e-6,
        rtol=2e-6,
    )


def test_gradients_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    mask = (RowMask([rule(SHAPES["window"])]), whole(SHAPES["window"]))
    found = []
    for softcap in (None, 1.5):
        for x in both(mask, softcap=softcap):
            query = x.query.clone().requires_grad_()
            with monkeypatch.context() as fused:
                fused.setattr(attention, "EXACT_KEYS", 0)
                mixing.output(replace(x, query=query)).square().sum().backward()
            found.append(query.grad)
        torch.testing.assert_close(found[-2], found[-1], atol=1e-4, rtol=1e-5)


def test_views_are_those_of_the_whole_mask(mask: tuple[RowMask, Tensor]) -> None:
    x, held_whole = both(mask)
    shut, expected = attention.masked_cells(x), attention.masked_cells(held_whole)
    assert expected is not None
    assert torch.equal(torch.zeros_like(expected) if shut is None else shut, expected)
    for rows in (slice(0, 40), slice(120, 290), [0, 77, 299]):
        for heads in ([2], [1, 3]):
            torch.testing.assert_close(
                attention.weights(x, Part(heads, rows)),
                attention.weights(held_whole, Part(heads, rows)),
                atol=1e-6,
                rtol=0,
            )
    for how in ("max", "mean"):
        one, other = pooled(x, 19, how=how), pooled(held_whole, 19, how=how)
        torch.testing.assert_close(one.images, other.images, atol=1e-6, rtol=0)
        assert torch.equal(one.visible, other.visible)
        assert one.sums.report().error == pytest.approx(other.sums.report().error, abs=1e-6)
    for head in (0, 3):
        for tile in (Tile(1, 0, 0), Tile(0, 1, 0), Tile(0, 1, 1)):
            found, right = HeadTiles(x, head).tile(tile), HeadTiles(held_whole, head).tile(tile)
            np.testing.assert_allclose(found, right, atol=2e-6)  # NaN in the same places


def test_the_atlas_comes_to_its_end(mask: tuple[RowMask, Tensor]) -> None:
    parts = IncrementalAtlas([both(mask)[0]], 19)
    shares = [parts.done]
    while not parts.is_whole:
        parts.advance(1)
        shares.append(parts.done)
    assert shares == sorted(shares)
    assert shares[-1] == 1
