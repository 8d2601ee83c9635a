"""The lookup page, driven by mouse and keyboard; every figure against float64 arithmetic of its own."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QScrollArea

from attention_explorer.panels.lookup.arrows_page import DIRECTION, GENERAL, KEY_WEIGHT, QUERY_WEIGHT
from attention_explorer.panels.lookup.entries import ENTRIES, percent
from attention_explorer.panels.lookup.panel import MOST_KEYS, HeadPage, HeadRow, LookupPanel, read_row, sentence
from attention_explorer.session.intents import SelectCell, SelectHead
from attention_explorer.session.state import State
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pointer import move_pointer

FIVE = SiteRef("decoder", 5)
WEIGHTS = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.7, 0.1, 0], [0.305, 0.268, 0.4, 0.027]], np.float32)
MASKED = np.triu(np.ones((4, 4), bool), 1)


def head_view(weights: np.ndarray = WEIGHTS, masked: np.ndarray | None = MASKED) -> HeadView:
    request = HeadRequest(run=1, site=FIVE, head=5)
    return HeadView(request=request, weights=weights, masked=masked)


@pytest.fixture
def session(running: State) -> SilentSession:
    session = SilentSession(running)
    session.dispatch(SelectHead(FIVE, 5))
    session.dispatch(SelectCell(3, 1))
    return session


@pytest.fixture
def running() -> State:
    return answers.after(State(), answers.loaded(), answers.ran())


@pytest.fixture
def panel(qtbot, session) -> LookupPanel:
    panel = shown(qtbot, LookupPanel, session)
    panel.resize(430, 540)
    return panel


def expected_scores(q: np.ndarray, keys: np.ndarray) -> list[list[float]]:
    """Dot, general and additive, each (keys,), by loops."""
    dot = [math.fsum(a * b for a, b in zip(q, k, strict=True)) for k in keys]
    general = [math.fsum(q[i] * GENERAL[i][j] * k[j] for i in range(2) for j in range(2)) for k in keys]
    additive = [
        math.fsum(
            DIRECTION[h] * math.tanh(math.fsum(QUERY_WEIGHT[h][i] * q[i] + KEY_WEIGHT[h][i] * k[i] for i in range(2)))
            for h in range(2)
        )
        for k in keys
    ]
    return [dot, general, additive]


def expected_weights(scores: list[float], temperature: float) -> list[float]:
    powers = [math.exp(s / temperature) for s in scores]
    return [p / math.fsum(powers) for p in powers]


def drag(qtbot, panel: LookupPanel, arrow: int, to: QPointF) -> None:
    plane = panel.arrows.plane
    qtbot.mousePress(plane, Qt.MouseButton.LeftButton, pos=plane.tip(arrow).toPoint())
    move_pointer(plane, (plane.tip(arrow) + QPointF(3, 3)).toPoint(), Qt.MouseButton.LeftButton)
    move_pointer(plane, to.toPoint(), Qt.MouseButton.LeftButton)
    qtbot.mouseRelease(plane, Qt.MouseButton.LeftButton, pos=to.toPoint())


# --------------------------------------------------------------------------- a dictionary


def type_key(qtbot, panel: LookupPanel, key: str) -> None:
    panel.dictionary.key.selectAll()
    qtbot.keyClick(panel.dictionary.key, Qt.Key.Key_Delete)
    qtbot.keyClicks(panel.dictionary.key, key)


def test_an_exact_key_gives_its_value(qtbot, panel):
    type_key(qtbot, panel, "grape")
    assert (panel.dictionary.exact.text, panel.dictionary.exact.kind) == ("3.50", "ok")


@pytest.mark.parametrize("key", ["grapes", "Grape", "", "<b>x</b>"])
def test_an_inexact_key_is_a_key_error_and_still_has_a_soft_answer(qtbot, panel, key):
    type_key(qtbot, panel, key)
    assert (panel.dictionary.exact.text, panel.dictionary.exact.kind) == (f"KeyError: '{key}'", "error")
    assert re.fullmatch(r"\d\.\d\d", panel.dictionary.soft.text)


def test_the_soft_answer_is_the_mix_of_the_values(qtbot, panel):
    type_key(qtbot, panel, "ape")
    table = [row.cells[0] for row in panel.dictionary.table._rows]
    # by hand: "ape" is a p e ap pe; cosines of the counts of letters and pairs
    apple = (1 + 2 + 1 + 1) / math.sqrt(5 * (1 + 4 + 1 + 1 + 4))  # a, p twice, e, ap
    grape = 5 / math.sqrt(5 * 9)  # all of them
    banana = 3 / math.sqrt(5 * (1 + 9 + 4 + 1 + 4 + 4))  # a three times
    lime = 1 / math.sqrt(5 * 7)  # e
    similarities = [apple, banana, grape, lime]
    assert [cell.score for cell in table] == [f"{s:.2f}" for s in similarities]
    weights = expected_weights(similarities, panel.dictionary.temperature.temperature)
    np.testing.assert_allclose([cell.weight for cell in table], weights, atol=1e-12)
    answer = math.fsum(w * e.price for w, e in zip(weights, ENTRIES, strict=True))
    assert panel.dictionary.soft.text == f"{answer:.2f}"
    assert f"= {answer:.2f}." in panel.dictionary.explanation.text()


def test_a_suggestion_is_looked_up_by_a_click(qtbot, panel):
    button = next(b for b in panel.dictionary.tries if b.text() == "kiwi")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert panel.dictionary.key.text() == "kiwi"
    assert "No key is much like “kiwi”" in panel.dictionary.explanation.text()


def test_at_temperature_0_the_soft_lookup_is_the_dictionary(qtbot, panel):
    slider = panel.dictionary.temperature.slider
    qtbot.keyClick(slider, Qt.Key.Key_Home)
    for entry in ENTRIES:
        type_key(qtbot, panel, entry.key)
        assert panel.dictionary.soft.text == panel.dictionary.exact.text == f"{entry.price:.2f}"
    qtbot.keyClick(slider, Qt.Key.Key_End)
    assert panel.dictionary.soft.text == f"{sum(e.price for e in ENTRIES) / 4:.2f}"


# --------------------------------------------------------------------------- arrows


@pytest.fixture
def on_arrows(qtbot, panel: LookupPanel) -> LookupPanel:
    qtbot.mouseClick(panel.steps, Qt.MouseButton.LeftButton, pos=panel.steps.step_rect(1).center().toPoint())
    assert panel.pages.currentIndex() == 1
    return panel


def assert_figures(panel: LookupPanel) -> None:
    """Scores, weights and the answer equal loops in float64 over the arrows' places."""
    page = panel.arrows
    temperature = page.temperature.temperature
    scores = expected_scores(page.query, page.keys)
    for column, column_scores in enumerate(scores):
        weights = expected_weights(column_scores, temperature)
        for row, cell in enumerate(r.cells[column] for r in page.table._rows):
            assert cell.weight == pytest.approx(weights[row], abs=1e-12)
            assert cell.weight_text == percent(weights[row])
            assert float(cell.score.replace("−", "-")) == pytest.approx(column_scores[row], abs=0.00501)
    weights = expected_weights(scores[page.table.column], temperature)
    answer = math.fsum(w * e.price for w, e in zip(weights, ENTRIES, strict=True))
    assert float(page.mix.text) == pytest.approx(answer, abs=0.00501)
    for channel, start in enumerate((1, 3, 5)):
        mixed = math.fsum(w * int(e.colour[start : start + 2], 16) for w, e in zip(weights, ENTRIES, strict=True))
        assert int(page.mix.colour[start : start + 2], 16) == pytest.approx(mixed, abs=0.501), channel


def test_figures_as_the_page_opens(on_arrows):
    assert_figures(on_arrows)


def test_a_drag_moves_a_key_and_everything_follows(qtbot, on_arrows):
    page, before = on_arrows.arrows, on_arrows.arrows.keys
    drag(qtbot, on_arrows, 3, QPointF(page.plane.rect().center()) + QPointF(40, -20))
    assert not np.array_equal(page.keys[3], before[3])
    np.testing.assert_array_equal(page.keys[:3], before[:3])
    assert page.heading.text() == "The score of “lime”, three ways"
    assert page.table.row == 3
    assert_figures(on_arrows)


def test_a_drag_moves_the_query_and_stays_inside(qtbot, on_arrows):
    page = on_arrows.arrows
    drag(qtbot, on_arrows, len(ENTRIES), QPointF(-500, 5000))
    np.testing.assert_array_equal(page.query, [-2, -2])
    assert_figures(on_arrows)
    move_pointer(page.plane, QPoint(10, 10))  # let go: no longer dragged
    np.testing.assert_array_equal(page.query, [-2, -2])


def test_keys_move_the_chosen_arrow(qtbot, on_arrows):
    page = on_arrows.arrows
    start = page.keys
    qtbot.keyClick(page.plane, Qt.Key.Key_Right)
    qtbot.keyClick(page.plane, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    np.testing.assert_allclose(page.keys[0], start[0] + [0.1, 0.5], atol=1e-9)
    qtbot.keyClick(page.plane, Qt.Key.Key_Space)
    qtbot.keyClick(page.plane, Qt.Key.Key_Down)
    np.testing.assert_allclose(page.keys[1], start[1] - [0, 0.1], atol=1e-9)
    for _ in range(2):
        qtbot.keyClick(page.plane, Qt.Key.Key_Space, Qt.KeyboardModifier.ShiftModifier)
    query = page.query
    qtbot.keyClick(page.plane, Qt.Key.Key_Left)
    np.testing.assert_allclose(page.query, query - [0.1, 0], atol=1e-9)
    assert_figures(on_arrows)


def test_a_column_is_the_score_function_in_use(qtbot, on_arrows):
    page = on_arrows.arrows
    for column in (2, 1, 0):
        qtbot.mouseClick(page.table, Qt.MouseButton.LeftButton, pos=page.table.cell_rect(-1, column).center().toPoint())
        assert page.table.column == column
        assert_figures(on_arrows)
    qtbot.keyClick(page.table, Qt.Key.Key_Right)
    assert page.function.name == "General"
    assert_figures(on_arrows)


def test_temperature_from_hard_to_soft(qtbot, on_arrows):
    page = on_arrows.arrows
    qtbot.keyClick(page.temperature.slider, Qt.Key.Key_Home)
    assert page.mix.text == "1.20"
    assert "it takes all" in page.weight.text()
    qtbot.keyClick(page.temperature.slider, Qt.Key.Key_Right)
    assert page.temperature.temperature == pytest.approx(0.052)  # the first place, 1/20 · 400^(1/200), as written
    assert_figures(on_arrows)
    qtbot.keyClick(page.temperature.slider, Qt.Key.Key_End)
    assert page.mix.text == "1.50"
    assert "1/4" in page.weight.text()
    qtbot.mouseClick(page.reset, Qt.MouseButton.LeftButton)
    assert page.temperature.temperature == 1
    assert_figures(on_arrows)


def test_formulas_hold_the_numbers_of_the_chosen_key(qtbot, on_arrows):
    page = on_arrows.arrows
    qtbot.mouseClick(page.table, Qt.MouseButton.LeftButton, pos=page.table.cell_rect(2, 0).center().toPoint())
    q = page.query
    scores = [column[2] for column in expected_scores(q, page.keys)]
    for label, score in zip(page.formulas, scores, strict=True):
        assert label.text().endswith(f"= {score:.2f}".replace("-", "−")), label.text()
    assert page.formulas[0].text() == "q · k = 1.30 × 1.20 + 0.40 × (−0.95) = 1.18"
    all_scores = expected_scores(q, page.keys)[0]
    weight = expected_weights(all_scores, 1.0)[2]
    powers = [math.exp(s - max(all_scores)) for s in all_scores]
    assert f"= {powers[2]:.3f} / {math.fsum(powers):.3f} = {weight:.3f}" in page.weight.text()
    assert f"{weight:.3f} × 3.50 = {weight * 3.5:.2f}" in page.weight.text()


# --------------------------------------------------------------------------- a real head


def test_the_sentence_and_the_row_are_the_models(qtbot, panel, session):
    assert [type(r) for r in session.asked] == [HeadRequest]
    session.arrive(head_view())
    qtbot.mouseClick(panel.steps, Qt.MouseButton.LeftButton, pos=panel.steps.step_rect(2).center().toPoint())
    page = panel.head
    assert page.sentence.text() == (
        "Layer 5, head 5 looks up “went”: 26.8 % of its answer comes from “and”; most, 40.0 %, from “Anna”."
    )
    assert [row.name for row in page.table._rows] == ["Tom", "and", "Anna", "went"]
    np.testing.assert_array_equal([row.cells[0].weight for row in page.table._rows], WEIGHTS[3].astype(float))
    assert page.table.row == 1
    assert page.real[3].text() == "40.0 % “Anna”"


def test_a_click_on_a_key_selects_it_everywhere(qtbot, panel, session):
    session.arrive(head_view())
    panel.go_to(2)
    table = panel.head.table
    qtbot.mouseClick(table, Qt.MouseButton.LeftButton, pos=table.cell_rect(2).center().toPoint())
    assert session.state.selection.key == 2
    assert panel.head.sentence.text().endswith("comes from “Anna”, more than from any other.")
    qtbot.keyClick(table, Qt.Key.Key_Up)
    assert session.state.selection.key == 1


def test_the_arrows_stand_beside_the_head(qtbot, panel, session):
    session.arrive(head_view())
    drag(qtbot, panel, len(ENTRIES), panel.arrows.plane.tip(2))
    x, y = panel.arrows.query
    assert (x, y) == pytest.approx(ENTRIES[2].place, abs=0.02)  # half a pixel
    assert panel.head.toy[0].text() == f"an arrow, ({x:.2f}, {y:.2f})".replace("-", "−")
    assert panel.head.toy[3].text().endswith("“grape”")


def test_masked_keys_are_not_looked_up(session, panel):
    session.dispatch(SelectCell(1, 3))
    session.arrive(head_view())
    assert [row.name for row in panel.head.table._rows] == ["Tom", "and"]
    assert "The mask hides “went” from it" in panel.head.sentence.text()
    assert panel.head.more.text() == "2 tokens are masked: no lookup sees them."
    assert panel.head.table.row == -1


def test_a_row_that_may_look_at_nothing(session, panel):
    masked = np.ones((4, 4), bool)
    session.arrive(head_view(np.zeros((4, 4), np.float32), masked))
    assert "all weights are 0" in panel.head.sentence.text()
    assert panel.head.table._rows == ()
    assert panel.head.real[3].text() == "none"


def test_a_long_row_lists_the_heaviest_in_the_order_of_the_text(running):
    count = 3 * MOST_KEYS
    weights = np.random.default_rng(0).dirichlet(np.ones(count)).astype(np.float32)
    view = head_view(np.tile(weights, (count, 1)), None)
    ran = answers.ran(text=" ".join(f"w{i}" for i in range(count)))
    row = read_row(view, ran, ran.sites[5], 0)
    assert list(row.shown) == sorted(np.argsort(-weights, kind="stable")[:MOST_KEYS].tolist())
    assert row.best == int(weights.argmax())


def test_words_are_those_of_the_stack():
    ran = answers.translation()
    encoder, decoder, cross = (
        next(s for s in ran.sites if s.stack == name) for name in ("encoder", "decoder", "cross")
    )
    for site, query, key in ((encoder, "cat", "The"), (decoder, "El", "⟨start⟩"), (cross, "El → gato", "The")):
        weights = np.full((site.queries, site.keys), 1 / site.keys, np.float32)
        row = read_row(head_view(weights, None), ran, site, 1)
        assert (row.query, row.keys[0], len(row.keys)) == (query, key, site.keys)


def test_a_weight_too_small_to_write_is_not_nothing():
    row = HeadRow("to", ("a", "b"), (0.9996, 0.0004), (0, 1), (0, 1), 32)
    assert sentence(row, 1, "Layer 5, head 5").startswith("Layer 5, head 5 looks up “to”: < 0.1 % of its answer")


def test_steps_follow_buttons_and_keys(qtbot, panel):
    qtbot.mouseClick(panel.dictionary.following, Qt.MouseButton.LeftButton)
    assert panel.pages.currentIndex() == panel.steps.current == 1
    qtbot.mouseClick(panel.arrows.following, Qt.MouseButton.LeftButton)
    assert panel.pages.currentIndex() == 2
    qtbot.keyClick(panel.steps, Qt.Key.Key_Left)
    assert panel.pages.currentIndex() == 1


@pytest.mark.parametrize("points", [10, 15])
def test_no_page_is_wider_than_its_place(qtbot, qapp, session, points):
    font = qapp.font()
    larger = qapp.font()
    larger.setPointSizeF(points)
    qapp.setFont(larger)
    try:
        panel = shown(qtbot, LookupPanel, session)
        panel.resize(430, 540)
        session.arrive(head_view())
        for step in range(3):
            panel.go_to(step)
            area = panel.pages.currentWidget()
            assert isinstance(area, QScrollArea)
            page = area.widget()
            assert page is not None
            assert page.minimumSizeHint().width() <= area.viewport().width()
    finally:
        qapp.setFont(font)


@pytest.mark.parametrize("weight", [0.0246, 0.0251, 0.0005, 0.9996, 0.5])
def test_the_sentence_says_what_the_table_says(qtbot, weight):
    page = HeadPage()
    qtbot.addWidget(page)
    row = HeadRow("to", ("a", "b"), (1 - weight, weight), (0, 1), (0, 1), 32)
    page.show_row(row, 1, "Layer 5, head 5")
    told = page.table._rows[1].cells[0].weight_text
    assert f": {told} of its answer comes from “b”" in page.sentence.text()
    assert float(told.removesuffix(" %")) == pytest.approx(100 * weight, abs=0.0501)
