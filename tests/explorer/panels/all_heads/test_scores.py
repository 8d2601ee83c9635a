"""All heads coloured and ranked by what they do, on the text on screen and over many texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel

from attention_explorer.look.theme import LIGHT
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel, badges_of, choices, page_of
from attention_explorer.session import files
from attention_explorer.session.intents import AskHeads
from attention_explorer.session.state import State
from attention_models.protocol.roles import (
    ROLES,
    HeadQuestion,
    RolesRequest,
    RolesView,
    WhichHeadsRequest,
    WhichHeadsView,
)
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

SITES = tuple(SiteRef("decoder", layer) for layer in range(8))


@pytest.fixture
def session():
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session):
    panel = shown(qtbot, HeadAtlasPanel, session)
    session.arrive(answers.atlas_view())
    return panel


def scores() -> np.ndarray:
    table = np.full((8, 8), 0.1)
    table[5, 3], table[2, 1] = 0.9, 0.6
    return table


def answer(question: HeadQuestion, done: float = 1.0, **changes: Any) -> WhichHeadsView:
    view = WhichHeadsView(
        request=WhichHeadsRequest(run=1, question=question),
        scores=scores(),
        even=np.full(8, 0.2),
        queries=np.full(8, 13),
        why=("",) * 8,
        done=done,
    )
    return replace(view, **changes)


def roles(done: float = 1.0) -> RolesView:
    names = tuple(role.name for role in ROLES)
    table = np.full((len(names), 8, 8), 0.05)
    table[names.index("next")] = scores()
    table[names.index("first"), 7, 7] = 0.95
    table[names.index("ov-copying"), 0, 0] = -0.8
    return RolesView(
        request=RolesRequest(),
        sites=SITES,
        roles=names,
        scores=table,
        even=np.full((len(names), 8), 0.1),
        counts=np.full((len(names), 8), 40),
        why=(),
        texts=32,
        tokens=400,
        done=done,
    )


def choose(panel: HeadAtlasPanel, choice: str) -> None:
    panel.by.setCurrentIndex(panel.by.findData(choice))
    panel.by.activated.emit(panel.by.currentIndex())


def subtitle(panel: HeadAtlasPanel) -> str:
    return " | ".join(label.text() for label in panel.card.findChildren(QLabel))


def test_a_pattern_is_asked_and_heads_are_coloured_and_ranked(panel, session, qtbot):
    before = rendered(panel.atlas)
    choose(panel, "previous")
    question = HeadQuestion("previous")
    assert session.state.question == question
    assert session.asked[-1] == WhichHeadsRequest(run=1, question=question)
    assert not panel.ranking.isVisible()  # the thumbnails stay until the answer comes
    session.arrive(answer(question))
    assert rendered(panel.atlas) != before
    assert panel.ranking.list.item(0).text() == "layer 5, head 3   0.900"
    assert panel.ranking.list.item(1).text() == "layer 2, head 1   0.600"
    assert panel.ranking.list.count() == 64
    assert "attends to the token before · even attention: 0.200" in subtitle(panel)
    assert panel.bar.isVisible()
    assert panel.bar.ticks()[-1][0] == pytest.approx(0.9)
    assert "Olsson" in panel.ranking.page.text()
    choose(panel, "weights")
    assert session.state.question is None
    assert not panel.ranking.isVisible()
    qtbot.waitUntil(lambda: rendered(panel.atlas) == before)


def test_an_entry_of_the_list_selects_its_head_and_the_selection_is_marked_in_it(panel, session, qtbot):
    choose(panel, "previous")
    session.arrive(answer(HeadQuestion("previous")))
    where = panel.ranking.list.visualItemRect(panel.ranking.list.item(1)).center()
    qtbot.mouseClick(panel.ranking.list.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert (session.state.selection.site, session.state.selection.head) == (SITES[2], 1)
    qtbot.keyClick(panel.ranking.list, Qt.Key.Key_Up)
    assert (session.state.selection.site, session.state.selection.head) == (SITES[5], 3)
    assert panel.atlas.selection == (5, 3)


def test_heads_below_even_attention_can_be_left_out(panel, session):
    choose(panel, "previous")
    session.arrive(answer(HeadQuestion("previous")))
    panel.above.click()
    assert panel.ranking.list.count() == 2


def test_of_a_long_text_it_is_asked_until_all_is_there(panel, session):
    choose(panel, "induction")
    question = HeadQuestion("induction")
    session.arrive(answer(question, done=0.4))
    assert session.asked[-1] == WhichHeadsRequest(run=1, question=question, have=0.4)
    session.arrive(answer(question))
    assert not panel.is_waiting()


def test_a_cell_that_was_asked_at_the_map_is_named(panel, session):
    question = HeadQuestion("cell", SITES[5], 5, 3, 1)
    session.dispatch(AskHeads(question))
    session.arrive(answer(question))
    words = [token.word for token in session.state.ran.tokens]
    assert panel.by.currentText() == f"from “{words[3]}” to “{words[1]}”"
    session.dispatch(AskHeads(None))
    assert panel.by.currentText() == "Weights"
    assert panel.by.findData("asked") < 0


def test_why_no_head_can_be_asked_stands_in_the_place_of_the_list(panel, session):
    choose(panel, "next")
    sentence = "In an encoder there is nothing to copy."
    session.arrive(answer(HeadQuestion("next"), scores=np.full((8, 8), np.nan), why=(sentence,) * 8))
    assert panel.ranking.list.count() == 0
    assert panel.ranking.page.text() == sentence
    assert sentence in subtitle(panel)


def test_roles_are_found_once_and_heads_coloured_by_one(panel, session):
    choose(panel, "role:next")
    assert session.asked[-1] == RolesRequest()
    session.arrive(replace(roles(done=0.3), scores=np.full((0, 0, 0), np.nan), sites=(), roles=()))
    assert session.asked[-1] == RolesRequest(have=0.3)
    assert "finding roles: 30% · " in subtitle(panel)
    assert panel.stop.isVisible()
    session.arrive(roles())
    assert not panel.stop.isVisible()
    assert "over 32 texts" in subtitle(panel)
    asked = len(session.asked)
    choose(panel, "role:ov-copying")
    assert len(session.asked) == asked  # all of them are here
    assert panel.bar.ticks()[0][0] == -1.0
    assert panel.ranking.list.item(63).text() == "layer 0, head 0   -0.800"


def test_the_line_of_even_attention_leaves_the_text_free(panel, session):
    choose(panel, "previous")
    session.arrive(answer(HeadQuestion("previous")))
    ranking = panel.ranking.list
    line = QColor(LIGHT.text_dim).name()
    for even, is_broken in ((0.1, True), (0.6, False), (0.88, True)):
        session.arrive(answer(HeadQuestion("previous"), even=np.full(8, even)))
        ranking.scrollToItem(ranking.item(9))
        row = ranking.visualItemRect(ranking.item(9))
        box = QRectF(row).adjusted(1, 1, -1, -1)
        image = rendered(ranking.viewport())
        x = round(box.left() + even / 0.9 * box.width())
        inside = range(row.top() + 1, row.bottom())
        drawn = [any(image.pixelColor(x + dx, y).name() == line for dx in (0, 1)) for y in inside]
        assert drawn[len(drawn) // 2] is not is_broken
        assert all(drawn[1:-1]) is not is_broken


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)  # an offscreen list takes no keyboard
def test_the_open_list_cuts_no_entry(panel):
    panel.by.showPopup()
    view = panel.by.view()
    widest = max(view.fontMetrics().horizontalAdvance(text) for _, text in choices())
    assert view.viewport().width() >= widest + 8
    panel.by.hidePopup()


def test_finding_roles_can_be_stopped(panel, session):
    choose(panel, "role:next")
    panel.stop.click()
    assert session.asked[-1] == RolesRequest(stop=True)
    assert panel.by.currentText() == "Weights"
    assert not panel.stop.isVisible()
    assert not panel.is_waiting()


def test_badges_name_what_a_head_plainly_does(panel, session):
    panel.roles.click()
    session.arrive(roles())
    assert panel.atlas.head_name(5, 3) == "layer 5, head 3: next"
    assert panel.atlas.head_name(7, 7) == "layer 7, head 7: first"
    assert panel.atlas.head_name(1, 1) == "layer 1, head 1"
    panel.roles.click()
    assert panel.atlas.head_name(5, 3) == "layer 5, head 3"


def test_a_badge_says_what_it_is_and_opens_its_page(panel, session, qtbot):
    panel.roles.click()
    session.arrive(roles())
    where = panel.atlas.cell_rect(5, 3).center().toPoint()
    move_pointer(panel.atlas, where)
    said = panel.atlas.toolTip()
    assert said.startswith("layer 5, head 3\n“next”: attends to a copy of the word that comes next.\n")
    assert "How much attention goes to a place where the word stands that comes next" in said
    about = " ".join(panel.about(session.state).sentences)
    assert "“first” attends to the first token; “next” attends to a copy of the word that comes next" in about
    qtbot.mouseDClick(panel.atlas, Qt.MouseButton.LeftButton, pos=where)
    assert panel.by.currentText() == "a copy of the word that comes next"
    assert panel.ranking.page.text() == page_of("next")
    choose(panel, "weights")
    menu = panel.head_menu(SITES[7], 7)
    next(action for action in menu.actions() if action.text() == "What “first” means").trigger()
    assert panel.ranking.page.text() == page_of("first")
    assert not [action for action in panel.head_menu(SITES[1], 1).actions() if action.text().startswith("What “")]
    panel.roles.click()
    assert "badge" not in " ".join(panel.about(session.state).sentences)


def test_a_badge_needs_more_than_even_attention_gives():
    view = roles()
    assert (SITES[5], 3) in badges_of(view)
    assert (SITES[5], 3) not in badges_of(replace(view, even=np.full(view.even.shape, 0.7)))


def test_every_choice_has_a_page_with_its_limits():
    for choice, text in choices():
        name = choice.removeprefix("role:")
        if choice not in ("", "weights"):
            page = page_of(name)
            for part in ("Formula: ", "Source: ", "What it does not show: "):
                assert part in page
        assert text


def test_cells_of_another_text_are_not_asked_about(panel, session):
    session.dispatch(AskHeads(HeadQuestion("cell", SITES[5], 5, 3, 1)))
    session.arrive(replace(answers.ran(run=2), tokens=answers.ran().tokens[:-1]))
    assert session.state.question is None
    session.dispatch(AskHeads(HeadQuestion("previous")))
    session.arrive(answers.ran(run=3))
    assert session.state.question == HeadQuestion("previous")


@pytest.mark.parametrize("choice", ["previous", "role:induction", "role:ov-copying"])
def test_what_the_heads_are_coloured_by_comes_back_with_a_session_and_is_undone(panel, session, qtbot, choice):
    choose(panel, choice)
    panel.roles.click()
    document = files.decode(files.encode(session.state.document))
    other = SilentSession(replace(session.state, document=document))
    again = shown(qtbot, HeadAtlasPanel, other)
    other.arrive(answers.atlas_view())
    assert again.by.currentData() == choice
    assert again.roles.isChecked()
    session.arrive(answers.atlas_view())
    session.undo()
    assert not panel.roles.isChecked()
    assert panel.by.currentData() == choice
    session.undo()
    assert panel.by.currentData() == "weights"
    session.redo()
    assert panel.by.currentData() == choice
