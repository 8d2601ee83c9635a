"""Formulas of boxes: the numbers that are written out make what the model gave."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attention_explorer.panels.flow.numbers import formula, worked
from attention_models import open_checkpoint
from attention_models.flow.block import answer
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.flow import (
    BlockRequest,
    BlockView,
    FeedForwardBox,
    HeadsBox,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.flow import made
from tests.models.flow.blocks import context_of

KEYS = ("Tom", "and", "Anna", "went")


def value_of(words: str) -> float:
    """What a line of arithmetic on screen comes to, by its own digits."""
    plain = words.replace("−", "-").replace("÷", "/").replace("×", "*").replace("²", "**2").replace(",", "")
    return float(eval(plain.replace("√", "math.sqrt"), {"math": math}))


def sides(words: str) -> tuple[float, float]:
    left, _, right = words.partition(": ")[2].partition(" = ")
    return value_of(left), value_of(right)


def at(kind: type, view: BlockView, place: int = 0) -> int:
    return [n for n, box in enumerate(view.boxes) if isinstance(box, kind)][place]


def test_each_kind_of_box_has_its_formula():
    view = made.block_view()
    assert [formula(box) for box in view.boxes] == [
        "y = (x − mean) ÷ √(variance + ε) × gain + bias",
        "q = x W_Q + b",
        "k = x W_K + b",
        "v = x W_V + b",
        "head = Σⱼ wⱼ vⱼ: its weights of the row, times the values",
        "y = concat(heads) W_O + b",
        "y = x₁ + x₂",
        "y = (x − mean) ÷ √(variance + ε) × gain + bias",
        "y = GELU(x W₁) W₂",
        "y = x₁ + x₂",
    ]
    network = view.boxes[at(FeedForwardBox, view)]
    assert isinstance(network, FeedForwardBox)
    with_biases = replace(network, parameters=2 * 8 * 32 + 32 + 8)
    assert formula(with_biases) == "y = GELU(x W₁ + b₁) W₂ + b₂"
    assert formula(replace(network, gated=True, activation="SiLU")) == "y = (SiLU(x W_g) × x W₁) W₂"
    assert "router" in formula(replace(network, expert_count=4))


def test_a_head_names_its_largest_weights():
    view = made.block_view()
    said = worked(view, at(HeadsBox, view), 1, KEYS)
    assert said == "head 1: 0.600 v(“Anna”) + 0.200 v(“and”) + 0.100 v(“Tom”) + …, a vector of norm 2.000"


def test_what_is_switched_off_has_no_arithmetic():
    view = made.block_view()
    place = at(OutputBox, view)
    off = (*view.boxes[:place], replace(view.boxes[place], off=True), *view.boxes[place + 1 :])  # type: ignore[call-arg]
    assert worked(replace(view, boxes=off), place, 0, KEYS).startswith("Switched off")


@pytest.mark.parametrize("name", ["story-gpt", "story-bert", "en-es"])
@pytest.mark.parametrize("off", [False, True], ids=["", "norm off"])
def test_norms_and_sums_come_to_what_the_model_gave(name: str, off: bool) -> None:
    model = open_checkpoint(name)
    stack = "encoder" if name == "story-bert" else "decoder"
    edits = (Ablation("norm1", SiteRef(stack, 1)),) if off else ()
    context = context_of(model, "Tom and Anna went", *edits)
    view = answer(BlockRequest(run=1, stack=stack, layer=1, position=2), context)
    numbers = [n for n, box in enumerate(view.boxes) if isinstance(box, (NormBox, SumBox))]
    assert {type(view.boxes[n]) for n in numbers} == {NormBox, SumBox}
    for number in numbers:
        box = view.boxes[number]
        for row in (0, 1, len(box.after) - 1):
            said = worked(view, number, row, ())
            left, right = sides(said)
            assert right == pytest.approx(float(box.after[row]), rel=1e-3, abs=1e-3), said
            assert left == pytest.approx(right, abs=5e-3 * max(1.0, abs(right))), said


@pytest.mark.parametrize("name", ["story-gpt", "story-bert", "en-es"])
def test_products_and_what_is_left_of_them_come_to_what_the_model_gave(name: str) -> None:
    """By the weights in the file, in float64: each product that is written out, the bias, the sum of all."""
    model = open_checkpoint(name)
    stack = "encoder" if name == "story-bert" else "decoder"
    view = answer(BlockRequest(run=1, stack=stack, layer=1, position=2), context_of(model, "Tom and Anna went"))
    kinds = (ProjectionBox, OutputBox)
    numbers = [n for n, box in enumerate(view.boxes) if isinstance(box, kinds) and box.before is not None]
    assert {type(view.boxes[n]) for n in numbers} == {ProjectionBox, OutputBox}
    checked = 0
    for number in numbers:
        box = view.boxes[number]
        assert isinstance(box, (ProjectionBox, OutputBox))
        assert box.before is not None
        module: Any = model.module.get_submodule(box.module)
        stored = module.weight.detach().double().numpy()
        matrix = stored if type(module).__name__ == "Conv1D" else stored.T
        bias = module.bias.detach().double().numpy() if box.bias else np.zeros(len(box.after))
        for row in (0, 1, len(box.after) - 1):
            products = box.before.astype(np.float64) * matrix[:, row]
            said = worked(view, number, row, ())
            left, _, right = said.partition(": ")[2].rpartition(" = ")
            terms = left.split(" + ")
            assert terms[3] == f"… ({len(products) - 3:,} more)", said
            assert len(terms) == (5 if box.bias else 4), said
            assert [value_of(term) for term in terms[:3]] == pytest.approx(products[:3], rel=5e-3, abs=5e-3), said
            if box.bias:
                assert value_of(terms[4]) == pytest.approx(bias[row], rel=1e-3, abs=1e-3), said
            assert value_of(right) == pytest.approx(products.sum() + bias[row], rel=1e-3, abs=1e-3), said
            checked += 1
    assert checked >= 6


def test_a_matrix_of_which_nothing_is_known_says_the_sum_alone() -> None:
    view = made.block_view()
    said = worked(view, at(OutputBox, view), 2, ())
    assert said == "dimension 2: Σᵢ xᵢ W[i, 2] + b[2] = 0.500, over 8 dimensions of x"
