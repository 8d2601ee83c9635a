"""Asking all heads about a cell of the map: keys, the menu, and a pattern that is painted."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import SelectCell
from attention_explorer.session.state import State
from attention_models.protocol.roles import HeadQuestion
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

SITE = SiteRef("decoder", 5)


@pytest.fixture
def session():
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session):
    panel = shown(qtbot, HeadMapPanel, session)
    session.arrive(answers.head_view())
    panel.activateWindow()
    panel.map.setFocus()
    session.dispatch(SelectCell(3, 1))
    return panel


@pytest.mark.parametrize(("key", "kind"), [(Qt.Key.Key_W, "cell"), (Qt.Key.Key_R, "row"), (Qt.Key.Key_C, "column")])
def test_a_key_asks_about_the_selected_cell(panel, session, qtbot, key, kind):
    wanted: list[str] = []
    panel.front_wanted.connect(wanted.append)
    qtbot.keyClick(panel.map, key)
    assert session.state.question == HeadQuestion(kind, SITE, 5, 3, 1)
    assert wanted == ["heads"]
    assert panel.map.hasFocus()


def test_the_menu_of_a_cell_names_its_tokens(panel, session, monkeypatch):
    monkeypatch.setattr(QMenu, "popup", lambda _menu, _at: None)  # the offscreen platform has no keyboard to grab
    where = panel.map.cell_rect(2, 1).center().toPoint()
    at = panel.map.mapTo(panel, where)
    QApplication.sendEvent(panel, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, panel.mapToGlobal(at)))
    (menu,) = panel.findChildren(QMenu)
    words = [token.word for token in session.state.ran.tokens]
    texts = [action.text() for action in menu.actions() if action.text()]
    assert texts[0] == f"Which heads attend from “{words[2]}” to “{words[1]}”?\tW"
    menu.actions()[2].trigger()
    assert session.state.question == HeadQuestion("column", SITE, 5, 2, 1)
    menu.deleteLater()


def test_painted_cells_are_asked_about_and_change_nothing_of_the_model(panel, session):
    panel._ask("painted")
    assert session.state.document.view.painting == "ask"
    panel.map.stroke_painted.emit(((3, 1), (3, 2)))
    panel.map.stroke_painted.emit(((2, 0),))
    assert session.state.question == HeadQuestion("painted", SITE, cells=((3, 1), (3, 2), (2, 0)))
    assert session.state.document.interventions == ()
