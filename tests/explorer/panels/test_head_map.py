"""The panel of one head, from made-up weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QStyle, QStyleOptionComboBox

from explorer.panels.head_map import HeadMapPanel, normalised
from explorer.session.hover import Pointed
from explorer.session.intents import SelectCell, SelectHead, SetView
from explorer.session.state import State
from explorer.widgets.number_text import value_text
from models.requests import HeadRequest
from models.results import HeadView
from models.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

WEIGHTS = np.array(
    [[1.0, 0.0, 0.0, 0.0], [0.75, 0.25, 0.0, 0.0], [0.5, 0.3, 0.2, 0.0], [0.1, 0.6, 0.2, 0.1]], dtype=np.float32
)


def view(run: int = 1, weights: np.ndarray = WEIGHTS) -> HeadView:
    masked = np.triu(np.ones(weights.shape, dtype=bool), 1)
    return replace(answers.head_view(run=run), weights=weights, masked=masked)


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> HeadMapPanel:
    return shown(qtbot, HeadMapPanel, session)


def said(panel: HeadMapPanel) -> list[str]:
    return [label.text() for label in panel.card.findChildren(QLabel)]


def test_it_wants_the_selected_head(panel, session):
    assert session.asked == [HeadRequest(run=1, site=SiteRef("decoder", 5), head=5)]
    session.dispatch(SelectHead(SiteRef("decoder", 2), 1))
    assert session.asked[-1] == HeadRequest(run=1, site=SiteRef("decoder", 2), head=1)


def test_without_weights_there_is_no_range_to_show(panel, session):
    assert not panel.bar.isVisible()
    session.arrive(view())
    assert panel.bar.isVisible()
    session.arrive(answers.loaded())
    assert not panel.bar.isVisible()
    assert panel.map.selection == (-1, -1)


def test_it_shows_weights_words_and_the_head_it_is_of(panel, session):
    session.arrive(view())
    assert panel.map.readout(3, 1) == "“went” looks at “and”: 0.600"
    assert panel.map.readout(0, 3) == "“Tom” cannot look at “went”: masked"
    assert said(panel)[:1] == ["Layer 5, head 5"]
    assert "where “went” looks" in said(panel)
    session.dispatch(SelectCell(1, 0))
    assert panel.map.selection == (1, 0)
    assert "where “and” looks" in said(panel)


@pytest.mark.parametrize(("how", "expected"), [("none", 0.6), ("row", 1.0), ("column", 1.0)])
def test_what_the_colours_show_is_what_the_readout_says(panel, session, how, expected):
    session.arrive(view())
    session.dispatch(SetView("normalisation", how))
    assert panel.map.readout(3, 1).endswith(value_text(expected))
    assert panel.scale.currentData() == how


def test_every_choice_of_scale_is_short_and_says_in_full_what_it_is(panel):
    tooltips = [panel.scale.itemData(i, Qt.ItemDataRole.ToolTipRole) for i in range(panel.scale.count())]
    assert [panel.scale.itemText(i) for i in range(4)] == ["Weights", "Rows / max", "Columns / max", "Change"]
    assert tooltips[1:] == ["Each row by its largest", "Each column by its largest", "Change by interventions"]


@pytest.mark.parametrize("points", [10.0, 15.0])
def test_the_chosen_scale_can_be_read_in_a_narrow_panel(panel, session, points):
    font = panel.font()
    font.setPointSizeF(points)
    panel.setFont(font)
    panel.resize(panel.minimumSizeHint())
    for how in ("none", "column"):
        session.dispatch(SetView("normalisation", how))
        panel.scale.parentWidget().layout().activate()
        option = QStyleOptionComboBox()
        panel.scale.initStyleOption(option)
        field = panel.scale.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, panel.scale
        )
        assert panel.scale.fontMetrics().horizontalAdvance(panel.scale.currentText()) <= field.width()


def test_the_scale_is_chosen_in_the_panel_and_can_be_undone(panel, session, qtbot):
    session.arrive(view())
    qtbot.keyClick(panel.scale, Qt.Key.Key_Down)
    assert session.state.document.view.normalisation == "row"
    session.undo()
    assert panel.scale.currentData() == "none"
    assert panel.map.readout(3, 1).endswith("0.600")


def test_the_last_picture_stays_until_the_next_run_has_its_own(panel, session):
    session.arrive(view())
    before = rendered(panel.map)
    session.arrive(answers.ran(run=2))
    assert rendered(panel.map) == before
    session.arrive(view(run=2, weights=np.eye(4, dtype=np.float32)))
    assert panel.map.readout(3, 1).endswith(": 0")


def test_a_click_selects_a_cell(panel, session, qtbot):
    session.arrive(view())
    qtbot.mouseClick(panel.map, Qt.MouseButton.LeftButton, pos=panel.map.cell_rect(2, 1).center().toPoint())
    assert (session.state.selection.query, session.state.selection.key) == (2, 1)


def test_the_pointer_is_shared_and_marked_on_the_colour_bar(panel, session):
    session.arrive(view())
    calm = rendered(panel.bar)
    move_pointer(panel.map, panel.map.cell_rect(3, 1).center().toPoint())
    assert panel.hover.pointed == Pointed(query=3, key=1)
    assert rendered(panel.bar) != calm
    panel.hover.point(Pointed(query=3))  # a token alone has no one weight
    assert rendered(panel.bar) == calm


def test_weights_of_another_number_of_tokens_are_numbered(panel, session):
    ran = answers.ran(run=2)
    session.arrive(replace(ran, sites=tuple(replace(site, keys=2) for site in ran.sites)))
    session.arrive(view(run=2, weights=np.full((4, 2), 0.5, np.float32)))
    assert panel.map.readout(3, 1) == "“went” looks at “1”: 0.500"


@pytest.mark.parametrize(
    ("stack", "row", "column"), [("encoder", "⟨end⟩", "cat"), ("decoder", "gato", "El"), ("cross", "gato", "cat")]
)
def test_each_stack_names_its_own_words(qtbot, stack, row, column):
    ran = answers.translation(written="El gato negro")
    session = SilentSession(answers.after(answers.TRANSLATING, answers.translator(), ran))
    panel = shown(qtbot, HeadMapPanel, session)
    session.dispatch(SelectHead(SiteRef(stack, 0), 1))
    site = session.state.site
    assert site is not None
    weights = np.full((site.queries, site.keys), 0.25, np.float32)
    session.arrive(replace(answers.head_view(site=site.ref, head=1), weights=weights))
    assert panel.map.readout(2, 1) == f"“{row}” looks at “{column}”: 0.250"


def test_scaling_leaves_rows_of_zeros_alone():
    weights = np.array([[0.2, 0.4], [0.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(normalised(weights, "row"), [[0.5, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(normalised(weights, "column"), [[1.0, 1.0], [0.0, 0.0]])
    assert normalised(weights, "none") is weights
