"""The Cell panel, driven with mouse and keys, over cells made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QScrollArea, QWidget

from attention_explorer.look.theme import DARK
from attention_explorer.panels.cell.cell_steps import row_remark
from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.cell.step_list import StepList
from attention_explorer.session.hover import Hover, Pointed
from attention_explorer.session.intents import Arrived, SelectCell
from attention_explorer.session.session import Session
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.cell import AdditiveScore, CellRequest, CellView
from attention_models.protocol.interventions import Scale
from attention_models.protocol.request import Request
from tests.explorer.panels.cells import CANDIDATES, SITE, cell, dead, session_at
from tests.explorer.session import answers
from tests.explorer.session.answers import loaded, ran
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer


class Shown:
    """A panel on the screen, its session, and what it asked the engine."""

    def __init__(self, session: Session) -> None:
        self.session, self.hover = session, Hover()
        self.asked: list[Request] = []
        session.requested.connect(self.asked.append)
        self.panel = CellPanel(session, self.hover)
        self.panel.resize(430, 540)
        self.panel.show()

    def answer(self, view: CellView) -> None:
        self.session.dispatch(Arrived(view))

    def formulas(self) -> dict[str, str]:
        return {step.name: step.formula for step in self.panel.steps.steps}

    def notes(self) -> dict[str, str]:
        return {step.name: step.note for step in self.panel.steps.steps}

    def subtitle(self) -> str:
        return self.panel.card._subtitle.text()


@pytest.fixture
def shown(qtbot) -> Shown:
    it = Shown(session_at())
    qtbot.addWidget(it.panel)
    return it


def test_it_asks_for_the_selected_cell_once(shown):
    request = CellRequest(run=1, site=SITE, head=5, query=3, key=1)
    assert shown.asked == [request]
    shown.answer(cell())
    assert shown.asked == [request]
    shown.session.dispatch(SelectCell(3, 0))
    assert shown.asked[1:] == [replace(request, key=0)]


def test_nothing_is_asked_while_it_is_hidden(shown):
    shown.panel.hide()
    shown.session.dispatch(SelectCell(3, 2))
    assert len(shown.asked) == 1
    shown.panel.show()
    assert len(shown.asked) == 2


def test_before_a_cell_is_here_a_sentence_says_what_will_be(shown):
    assert shown.panel.pages.currentIndex() == 0
    shown.answer(cell())
    assert shown.panel.pages.currentIndex() == 1
    shown.session.dispatch(Arrived(replace(loaded(), request=replace(loaded().request, ticket=2))))
    assert shown.panel.pages.currentIndex() == 0
    assert shown.subtitle() == ""


def test_every_step_has_its_numbers(shown):
    shown.answer(cell())
    assert shown.subtitle() == "“went” looks at “and”"
    assert shown.formulas() == {
        "score": "q · k = 8.000",
        "scaled": "8.000 / √4 = 4.000",
        "mask": "allowed",
        "softmax": "e^(4.000 − 4.000) = 1.000",
        "weight": "1.000 / 1.055 = 0.948",
        "× v": "w ‖v‖ = 0.948 × 5.000 = 4.000",
        "head output": "‖Σ w v‖ = 1.000",
        "× W_O": "‖write‖ = 2.000",
        "→ logit": "␣Tom +1.424",
    }
    assert shown.notes()["mask"] == "“and” comes before “went”"
    assert shown.notes()["weight"] == "share among 4 keys"
    assert shown.notes()["× W_O"] == "head 3.000 · stream 28.25"
    assert shown.notes()["→ logit"] == "head +1.640 · logit 15.36"


def test_steps_that_a_model_has_and_others_lack(shown):
    shown.answer(cell(rotated=True, bias=-0.25, score=3.75, key_head=1, key_group=(4, 5, 6)))
    assert shown.notes()["shared k, v"] == "shares key/value head 1 with heads 4, 6"
    assert shown.notes()["rotation"] == "by their positions (RoPE)"
    assert shown.formulas()["position"] == "4.000 − 0.250 = 3.750"
    shown.answer(
        cell(softcap=50.0, score=3.99, request=CellRequest(run=1, site=SITE, head=5, query=3, key=1, ticket=2))
    )
    assert shown.formulas()["soft cap"] == "50 tanh(4.000 / 50) = 3.990"
    assert "rotation" not in shown.formulas()


def test_a_changed_scale_is_said_and_marked(qtbot):
    run = answers.changed(ran(), interventions=(Scale(0.5),))
    it = Shown(session_at(run=run))
    qtbot.addWidget(it.panel)
    it.answer(cell(factor=0.5, scaled=2.0, score=2.0))
    assert it.formulas()["scaled"] == "8.000 / √4 × 0.5 = 2.000"
    assert it.notes()["scaled"] == "× 0.5 is an intervention"
    assert "edited × 1" in it.panel.card._mark.text()


def test_a_scale_that_is_not_the_usual_one(shown):
    shown.answer(cell(scale=1.0, scaled=8.0))
    assert shown.formulas()["scaled"] == "8.000 × 1 = 8.000"
    assert shown.notes()["scaled"] == "this model does not scale"


def test_a_masked_cell_says_why(shown):
    masked = np.array([False, False, True, True])
    shown.answer(cell(masked=True, reason="causal: it comes later", row_masked=masked, numerator=0.0, weight=0.0))
    assert shown.formulas()["mask"] == "masked: −∞ in its place"
    assert shown.notes()["mask"] == "causal: it comes later"
    assert shown.formulas()["softmax"] == "e^(−∞) = 0"
    assert shown.notes()["weight"] == "share among 2 keys"
    assert shown.panel.row_heading.text() == "The whole row: “went” over 4 keys, 2 masked"


def test_a_row_without_keys_divides_nothing_by_nothing(shown):
    shown.answer(dead())
    assert shown.formulas()["softmax"] == "no key to share between"
    assert shown.formulas()["weight"] == "0"
    assert "may look at nothing: its weights and this head's output are 0" in shown.panel.row_heading.text()
    shown.panel.steps.select(list(shown.formulas()).index("weight"))
    assert "weights are set to 0" in shown.panel.meaning.text()
    texts = " ".join(f"{step.formula} {step.note}" for step in shown.panel.steps.steps)
    assert not any(word in texts for word in ("nan", "None", "not computed", "0 / 0"))
    rendered(shown.panel)


def test_without_a_direct_effect_the_reason_stands_in_its_place(shown):
    shown.answer(cell(effect=None, head_effect=None, effect_note="Each block rescales.", candidates=(), logit=None))
    assert shown.formulas()["→ logit"] == "no direct effect"
    assert shown.panel.reason.isVisible()
    assert shown.panel.reason.text() == "Each block rescales."
    assert not shown.panel.target_line.isVisible()


def test_without_an_output_matrix(shown):
    shown.answer(cell(write=None, write_norm=None, head_write_norm=None, effect=None, head_effect=None))
    assert shown.formulas()["× W_O"] == "not found"


def test_a_sink_takes_its_share(shown):
    view = cell(sink=0.5)
    shown.answer(replace(view, denominator=2.0))
    assert shown.notes()["weight"] == "share among 4 keys; the sink takes 25.0%"
    assert "25.0% to the sink" in row_remark(replace(view, denominator=2.0), "Tom", 4)


def test_what_is_hardly_likely_is_not_called_impossible(shown):
    shown.answer(cell(candidates=(replace(CANDIDATES[0], probability=0.00024),)))
    assert shown.panel.target.itemText(0) == "␣Tom   0.024 %"


def test_a_target_can_be_chosen(shown, qtbot):
    shown.answer(cell())
    box = shown.panel.target
    assert [box.itemText(i) for i in range(box.count())] == ["␣Tom   67.9 %", "␣Ben   9.8 %"]
    box.setFocus()
    qtbot.keyClick(box, Qt.Key.Key_Down)
    wanted = CellRequest(run=1, site=SITE, head=5, query=3, key=1, target=8)
    assert shown.asked[-1] == wanted
    shown.answer(cell(target=8, effect=-0.25))
    assert shown.formulas()["→ logit"] == "␣Ben −0.250"
    assert box.currentText() == "␣Ben   9.8 %"
    shown.session.dispatch(SelectCell(3, 2))  # the choice stays from cell to cell
    assert shown.asked[-1] == replace(wanted, key=2)


def test_a_target_that_is_not_among_the_likeliest_is_listed_too(shown):
    shown.answer(cell(target=None))
    shown.answer(replace(cell(), target=99, target_label="␣park"))
    assert shown.panel.target.currentText() == "␣park"


def test_a_step_is_explained_when_chosen(shown, qtbot):
    shown.answer(cell())
    steps = shown.panel.steps
    assert not shown.panel.meaning.isVisible()  # the steps have its room
    qtbot.mouseClick(steps, Qt.MouseButton.LeftButton, pos=steps.step_rect(1).center().toPoint())
    assert "3.2.1" in shown.panel.meaning.text()
    assert shown.panel.meaning.isVisible()
    qtbot.keyClick(steps, Qt.Key.Key_Down)
    assert "3.2.3" in shown.panel.meaning.text()
    shown.answer(cell(key=0))  # stays chosen from cell to cell
    assert "3.2.3" in shown.panel.meaning.text()


def test_the_chosen_step_stays_in_view_when_its_explanation_comes(shown, qtbot):
    shown.panel.resize(430, 320)
    shown.answer(cell())
    qtbot.wait(1)
    steps, viewport = shown.panel.steps, shown.panel.findChild(QScrollArea).viewport()
    tall = viewport.height()
    last = max(i for i in range(len(steps.steps)) if bottom_in(viewport, steps, i) <= tall)
    qtbot.mouseClick(steps, Qt.MouseButton.LeftButton, pos=steps.step_rect(last).center().toPoint())
    assert viewport.height() < tall
    assert bottom_in(viewport, steps, last) <= viewport.height()


def bottom_in(viewport: QWidget, steps: StepList, index: int) -> int:
    return steps.mapTo(viewport, steps.step_rect(index).bottomLeft().toPoint()).y()


def test_a_key_of_the_row_can_be_chosen(shown, qtbot):
    shown.answer(cell())
    row = shown.panel.row
    qtbot.mouseClick(row, Qt.MouseButton.LeftButton, pos=row.key_rect(2).center().toPoint())
    assert (shown.session.state.selection.query, shown.session.state.selection.key) == (3, 2)
    shown.answer(cell(key=2))
    qtbot.keyClick(row, Qt.Key.Key_Up)
    assert shown.session.state.selection.key == 1


def test_hover_goes_both_ways(shown):
    shown.answer(cell())
    row = shown.panel.row
    move_pointer(row, row.key_rect(2).center().toPoint())
    assert shown.hover.pointed == Pointed(query=3, key=2)
    plain = rendered(row)
    shown.hover.point(Pointed(query=3, key=0))
    assert rendered(row) != plain
    shown.hover.point(Pointed(query=0, key=2))  # a cell of another row
    move_pointer(row, QPoint(-5, -5))
    assert shown.hover.pointed == Pointed(query=0, key=2)


def test_largest_products_first(shown, qtbot):
    shown.answer(cell())
    assert shown.panel.vectors.order == [0, 1, 2, 3]
    qtbot.mouseClick(shown.panel.by_size, Qt.MouseButton.LeftButton, pos=QPoint(12, shown.panel.by_size.height() // 2))
    assert shown.panel.vectors.order == [1, 2, 0, 3]


def test_a_long_row_is_cut_and_can_be_listed_whole(qtbot):
    it = Shown(session_at(99, 1, run=ran(text=" ".join(f"w{i}" for i in range(100)))))
    qtbot.addWidget(it.panel)
    it.answer(cell(query=99, keys=100))
    assert it.panel.row_heading.text() == "The whole row: “w99” over 100 keys. The 32 largest weights:"
    assert len(it.panel.row.shown) == 32
    qtbot.mouseClick(it.panel.all_keys, Qt.MouseButton.LeftButton, pos=QPoint(12, it.panel.all_keys.height() // 2))
    assert len(it.panel.row.shown) == 100
    assert it.panel.row_heading.text() == "The whole row: “w99” over 100 keys"


def test_keys_of_another_text_are_numbers(qtbot):
    crossed = ran()
    sites = tuple(replace(site, stack="cross", keys=6) for site in crossed.sites)
    session = session_at(run=replace(crossed, sites=crossed.sites + sites))
    it = Shown(session)
    qtbot.addWidget(it.panel)
    view = cell(keys=6)
    it.answer(replace(view, request=replace(view.request, site=sites[5].ref)))
    assert it.subtitle() == "“went → ⟨next⟩” looks at “1”"
    assert it.notes()["mask"] == "every source token is open"


def test_a_cell_of_an_older_run_is_not_shown(shown):
    shown.answer(cell())
    shown.session.dispatch(Arrived(replace(ran(run=2, text="Ben and Max ran"))))
    assert shown.subtitle() == "“went” looks at “and”"  # stays until the new one is here
    shown.answer(replace(cell(), request=replace(cell().request, run=2)))
    assert shown.subtitle() == "“ran” looks at “and”"


def test_moving_lays_nothing_out_anew(shown, qtbot):
    shown.answer(cell())
    qtbot.wait(1)
    before = [widget.geometry() for widget in (shown.panel.steps, shown.panel.row, shown.panel.meaning)]
    shown.answer(cell(key=2, raw=-1234.5, scaled=-617.2, score=-617.2))
    qtbot.wait(1)
    assert [widget.geometry() for widget in (shown.panel.steps, shown.panel.row, shown.panel.meaning)] == before


@pytest.mark.parametrize("points", [10.0, 15.0])
@pytest.mark.parametrize("width", [430, 700])
def test_nothing_is_wider_than_the_panel(shown, qtbot, width, points):
    font = shown.panel.font()
    font.setPointSizeF(points)
    shown.panel.setFont(font)
    shown.panel.resize(width, 540)
    shown.answer(cell(rotated=True))
    qtbot.wait(1)
    scroll = shown.panel.findChild(QScrollArea)
    assert scroll.widget().width() <= scroll.viewport().width()
    assert shown.panel.steps.height() == shown.panel.steps.heightForWidth(shown.panel.steps.width())


def test_theme_reaches_every_part(shown):
    shown.answer(cell())
    parts = (shown.panel.vectors, shown.panel.steps, shown.panel.row)
    light = [rendered(part) for part in parts]
    shown.panel.set_theme(DARK)
    assert all(rendered(part) != image for part, image in zip(parts, light, strict=True))


def test_value_and_sum_are_bars_too(shown):
    view = cell()
    shown.answer(view)
    rows = shown.panel.values._rows
    assert [row.name for row in rows] == ["v  and", "w × v", "Σ w × v"]
    for row, numbers in zip(rows, (view.value, view.mixed, view.head_output), strict=True):
        np.testing.assert_array_equal(row.values, numbers)
    shown.panel.by_size.click()
    assert shown.panel.values.order == np.argsort(-np.abs(view.head_output), kind="stable").tolist()


def test_escape_goes_back_to_the_model(shown, qtbot):
    fronts: list[str] = []
    shown.panel.front_wanted.connect(fronts.append)
    shown.answer(cell())
    qtbot.keyClick(shown.panel, Qt.Key.Key_Escape)
    assert fronts == ["flow"]


def test_an_additive_score_is_written_out_as_such(shown):
    q, k = np.array([0.5, -1.0, 2.0], np.float32), np.array([0.25, 0.5, -1.0], np.float32)
    v, tanh = np.array([2.0, 1.0, -1.0], np.float32), np.tanh(q + k)
    total = float((v * tanh).sum())
    changes = {"q": q, "k": k, "products": v * tanh, "raw": total, "scaled": total, "scale": 1.0, "score": total}
    shown.answer(replace(cell(), **changes, bias=None, additive=AdditiveScore(tanh, v)))
    formulas = shown.formulas()
    assert formulas["score"] == f"v · tanh(q + k) = {value_text(total)}"
    assert "scaled" not in formulas
    assert "position" not in formulas
    assert [row.name for row in shown.panel.vectors._rows][2:] == ["tanh", "v × tanh"]
    assert f"v · tanh(q + k) is {value_text(total)}" in " ".join(shown.panel.about(shown.session.state).sentences)
