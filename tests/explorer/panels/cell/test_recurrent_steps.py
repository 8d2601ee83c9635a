"""The arithmetic of a recurrent score in words, and in the Cell panel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.cell.recurrent_steps import dimension_sentence, recurrent_steps, vector_rows
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import Arrived
from attention_models.protocol.cell import CellView, RecurrentScore
from tests.explorer.panels.cells import cell, session_at

STATE, KEY, V = (np.array(x, np.float32) for x in ([1.0, -2.0], [0.5, 1.0], [3.0, -4.0]))
TANH = np.tanh(STATE + KEY)


def score(kind: str = "bahdanau", **changes: Any) -> RecurrentScore:
    parts = RecurrentScore(kind, STATE, KEY, TANH, V, V * TANH, place=None, gaussian=None)
    if kind in ("dot", "general"):
        parts = replace(parts, tanh=None, v=None, products=STATE * KEY)
    return replace(parts, **changes)


def recurrent_cell(parts: RecurrentScore, **changes: Any) -> CellView:
    return cell(
        recurrent=parts,
        q=parts.state,
        k=parts.key,
        products=parts.products,
        raw=float(parts.products.sum()),
        write=None,
        write_norm=None,
        effect=None,
        effect_note="A recurrent model has no residual stream.",
        **changes,
    )


def formulas(view: CellView) -> dict[str, str]:
    assert view.recurrent is not None
    return {each.step.name: each.step.formula for each in recurrent_steps(view, view.recurrent)}


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        ("bahdanau", "v · tanh(W s + U h) = 5.762"),  # 3 tanh 1.5 + 4 tanh 1 = 2.7155 + 3.0464
        ("concat", "v · tanh(W [s; h]) = 5.762"),
        ("general", "s · W h = −1.500"),  # 0.5 - 2
        ("dot", "s · h = −1.500"),
    ],
)
def test_each_score_has_its_formula_with_its_number(kind, formula):
    assert formulas(recurrent_cell(score(kind)))["score"] == formula


def test_the_steps_end_at_the_context_and_know_no_stream():
    names = list(formulas(recurrent_cell(score())))
    assert names == ["score", "mask", "softmax", "weight", "× h", "context", "→ state"]
    assert list(formulas(recurrent_cell(score("general"))))[-1] == "→ output"


def test_a_predicted_place_adds_its_gaussian():
    parts = score("dot", place=2.5, gaussian=-0.5)
    steps = formulas(recurrent_cell(parts, score=-2.0))
    assert steps["nearness"] == "−1.500 − 0.500 = −2.000"
    assert steps["window"] == "allowed"
    assert formulas(recurrent_cell(parts, masked=True))["window"] == "masked: −∞ in its place"


def test_one_dimension_is_written_out():
    rows = vector_rows(score(), "0", "r")
    assert [row.name for row in rows] == ["W s  0", "U h  r", "tanh", "v × tanh"]
    numbers = [float(row.values[1]) for row in rows]
    assert dimension_sentence(score(), 1, numbers) == "tanh(−2.000 + 1.000) = −0.762; × (−4.000) = 3.046"
    plain = score("general")
    rows = vector_rows(plain, "0", "r")
    assert [row.name for row in rows] == ["s  0", "W h  r", "product"]
    assert dimension_sentence(plain, 1, [float(row.values[1]) for row in rows]) == "−2.000 × 1.000 = −2.000"


def test_the_panel_shows_bars_steps_and_the_reason(qtbot):
    session = session_at()
    panel = CellPanel(session, Hover())
    qtbot.addWidget(panel)
    panel.show()
    session.dispatch(Arrived(recurrent_cell(score())))
    assert panel.steps.steps[0].formula.startswith("v · tanh(W s + U h)")
    assert panel.vectors.order == [0, 1]
    assert panel.reason.isVisible()
    assert "no residual stream" in panel.reason.text()
    tall = panel.vectors.sizeHint().height()
    session.dispatch(Arrived(cell()))  # a transformer's again
    assert panel.steps.steps[0].formula.startswith("q · k")
    assert panel.vectors.sizeHint().height() < tall
