"""What is said of one number of the matrices: its sum, read back and added up again, gives it."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.panels.flow.matrices_scene import NAMES, SIDES, Lit, Place, Scene, cell_text
from attention_models.protocol.matrices import MatricesView
from tests.explorer.panels.flow.matrices_views import names, scene_of, shown

ROUNDING = 6e-3
"""Of the sum of absolute terms: each factor is written with three digits."""


def read_back(text: str) -> tuple[float, float, float]:
    """The number before the sign of equality, what the sum behind it comes to, and the sum of its absolute terms."""
    number, _, parts = text.partition(" = ")
    said = re.sub(r" \((?:the sink|outside of the window|keys outside of the window)\)", "", parts)
    spelled = said.replace("−", "-").replace("×", "*").replace("∞", "inf")
    known = {"exp": math.exp, "tanh": math.tanh, "inf": math.inf}
    come_to = float(eval(spelled, {"__builtins__": {}}, known))
    size = (
        sum(abs(float(eval(term, {"__builtins__": {}}, known))) for term in spelled.split(" + "))
        if ("exp" not in spelled and "tanh" not in spelled)
        else abs(come_to)
    )
    return float(number.replace("−", "-").replace("∞", "inf")), come_to, size


@pytest.mark.parametrize("view", ["plain", "edited", "window"])
def test_the_sum_in_digits_comes_to_the_number(view: str) -> None:
    scene = scene_of(_window() if view == "window" else shown(edited=view == "edited"))
    rows, keys = scene.view.raw.shape
    for name in ("raw", "scaled", "weights", "output"):
        columns = scene.matrices[name].values.shape[1]
        for row, column in ((rows - 1, 0), (3, 1), (rows // 2, columns // 2), (rows - 1, min(columns, keys) - 1)):
            place = Place(name, row, column)
            number, come_to, size = read_back(scene.sum_of(place))
            assert number == pytest.approx(float(scene.matrices[name].values[row, column]), rel=5e-3, abs=1e-9)
            assert come_to == pytest.approx(number, abs=ROUNDING * max(size, 1e-6)), scene.sum_of(place)


def _window() -> MatricesView:
    return shown(30, 20, times=8)


def test_bias_cap_sink_and_shared_keys_are_said() -> None:
    plain = shown()
    bias = np.full(plain.raw.shape, -0.25, np.float32)
    scores = (2.0 * np.tanh((plain.raw * plain.scale - 0.25) / 2.0)).astype(np.float32)
    scene = scene_of(replace(plain, bias=bias, softcap=2.0, scores=scores, key_group=(4, 5), key_head=2, rotated=True))
    assert scene.scaling == "× 0.177 + bias cap 2"
    text = scene.sum_of(Place("scaled", 13, 1))
    assert text.endswith("2 × tanh((27.66 × 0.177 + (−0.250)) / 2)")
    number, come_to, _ = read_back(text)
    assert come_to == pytest.approx(number, abs=1e-3)
    assert "K and V are those of key head 2, which heads 4 to 5 share." in scene.note
    assert "turned by their positions" in scene.note
    sunk = replace(plain, sink=np.full(14, 0.5, np.float32), denominator=plain.denominator + 0.5)
    text = scene_of(sunk).sum_of(Place("weights", 13, 1))
    assert "0.500 (the sink)" in text


def test_a_masked_number_is_minus_infinity_and_its_weight_0() -> None:
    scene = scene_of(shown(edited=True))
    for row, column in ((0, 5), (3, 1)):  # the future, and a painted cell
        assert scene.number(Place("masked", row, column)) is None
        assert scene.sum_of(Place("masked", row, column)).startswith("−∞ = ")
        assert read_back(scene.sum_of(Place("weights", row, column)))[:2] == (0.0, 0.0)
        assert scene.number(Place("scaled", row, column)) is not None
    assert scene.sum_of(Place("masked", 5, 1)).endswith("visible, it stays")


def test_what_each_number_was_made_of() -> None:
    scene = scene_of(shown())
    assert scene.made_of(Place("raw", 3, 1)) == (Lit("q", 3, None), Lit("k", None, 1))
    assert scene.made_of(Place("scaled", 3, 1)) == (Lit("raw", 3, 1),)
    assert scene.made_of(Place("masked", 3, 1)) == (Lit("scaled", 3, 1),)
    assert scene.made_of(Place("weights", 3, 1)) == (Lit("masked", 3, None),)
    assert scene.made_of(Place("output", 3, 9)) == (Lit("weights", 3, None), Lit("v", None, 9))
    assert all(scene.made_of(Place(name, 0, 0)) == () for name in ("q", "k", "v"))


def test_each_place_names_its_tokens() -> None:
    scene = scene_of(shown())
    cells = {name: scene.cell(Place(name, 2, 3)) for name in NAMES}
    assert cells == {
        "q": (2, -1),
        "k": (-1, 3),
        "v": (-1, 2),
        "output": (2, -1),
        **dict.fromkeys(("raw", "scaled", "masked", "weights"), (2, 3)),
    }
    assert scene.title(Place("raw", 2, 3)) == "“q2” and “k3”: q · k"
    assert scene.title(Place("output", 2, 3)) == "output of the head at “q2”, dimension 3"
    assert scene.title(Place("k", 2, 3)) == "k of “k3”, dimension 2"
    for name in NAMES:
        rows, columns = SIDES[name]
        sizes = {"query": 14, "key": 14, "dim": 32}
        assert scene.matrices[name].values.shape == (sizes[rows], sizes[columns])


def test_of_a_window_it_is_said_where_it_lies() -> None:
    scene = scene_of(_window())
    count = scene.view.queries
    assert scene.queries == tuple(f"q{i}" for i in range(30, 94))
    assert f"queries 30 to 93 of {count} and keys 20 to 83 of {count}. The output counts every key." in scene.note
    assert "(keys outside of the window)" in scene.sum_of(Place("output", 63, 0))
    assert scene_of(shown()).note == ""
    queries, keys = names(shown())
    with pytest.raises(ValueError, match="13 and 14 names for 14 queries and 14 keys"):
        Scene.of(shown(), queries[1:], keys)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0.00"), (-0.001, "0.00"), (-1.234, "−1.23"), (12.345, "12.3"), (-123.4, "−123"), (None, "−∞")],
)
def test_a_number_in_a_cell(number: float | None, text: str) -> None:
    assert cell_text(number) == text
