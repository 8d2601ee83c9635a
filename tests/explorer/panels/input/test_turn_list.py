"""The list of turns: typed in, added to, taken away from, by mouse and by keyboard; it grows, then scrolls."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from attention_explorer.panels.input.chat import TurnList
from attention_models.protocol.chat import Turn

pytestmark = pytest.mark.x

TURNS = (Turn("system", "Be brief."), Turn("user", "Who is Tom?"), Turn("assistant", "A boy."))


@pytest.fixture
def turns(qtbot) -> TurnList:
    """A list that shows what it says was changed, as the window makes it do."""
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    inside = TurnList()
    inside.changed.connect(inside.set_turns)
    inside.window_kept = window  # type: ignore[attr-defined]
    column.addWidget(inside)
    column.addStretch(1)
    window.resize(600, 400)
    window.show()
    inside.set_turns(TURNS)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)  # on X it takes a moment
    return inside


def test_it_shows_the_turns_and_says_nothing(turns: TurnList, qtbot) -> None:
    with qtbot.assertNotEmitted(turns.said), qtbot.assertNotEmitted(turns.changed):
        turns.set_turns(TURNS[1:])
        turns.set_turns(TURNS)
    assert turns.turns() == TURNS
    assert [row.text.accessibleName() for row in turns.rows] == ["Turn 1, system", "Turn 2, user", "Turn 3, assistant"]


def test_typing_tells_the_turn_and_its_text(turns: TurnList, qtbot) -> None:
    with qtbot.waitSignal(turns.said) as heard:
        QTest.keyClicks(turns.rows[1].text, "!")
    assert heard.args == [1, "Who is Tom?!"]


def test_enter_submits(turns: TurnList, qtbot) -> None:
    with qtbot.waitSignal(turns.submitted):
        QTest.keyClick(turns.rows[2].text, Qt.Key.Key_Return)


def test_a_role_is_chosen_by_the_keyboard(turns: TurnList, qtbot) -> None:
    turns.rows[2].role.setFocus()
    with qtbot.waitSignal(turns.changed) as heard:
        QTest.keyClick(turns.rows[2].role, Qt.Key.Key_Up)
    assert heard.args == [(*TURNS[:2], Turn("user", "A boy."))]


def test_a_new_turn_is_of_whoever_is_next(turns: TurnList) -> None:
    turns.add_turn()
    assert turns.turns() == (*TURNS, Turn("user", ""))
    turns.add_turn()
    assert turns.turns()[-1] == Turn("assistant", "")
    turns.set_turns(TURNS[:1])
    turns.add_turn()
    assert turns.turns() == (TURNS[0], Turn("user", ""))


def test_a_turn_is_taken_away_and_the_last_stays(turns: TurnList) -> None:
    QTest.mouseClick(turns.rows[1].remove, Qt.MouseButton.LeftButton)
    assert turns.turns() == (TURNS[0], TURNS[2])
    QTest.keyClick(turns.rows[0].remove, Qt.Key.Key_Space)
    assert turns.turns() == (TURNS[2],)
    assert not turns.rows[0].remove.isEnabled()


def test_tab_goes_through_all_of_it(turns: TurnList, qtbot) -> None:
    turns.rows[0].role.setFocus()
    qtbot.waitUntil(turns.rows[0].role.hasFocus)
    order = [widget for row in turns.rows for widget in (row.role, row.text, row.remove)]
    for widget in order[1:]:
        focused = QApplication.focusWidget()
        assert focused is not None
        QTest.keyClick(focused, Qt.Key.Key_Tab)
        assert widget.hasFocus()


def test_it_grows_with_its_turns_then_scrolls_to_the_new_one(turns: TurnList, qtbot) -> None:
    turns.set_turns(TURNS[:1])
    one = turns.height()
    turns.set_turns(TURNS)
    three = turns.height()
    assert one < three
    for _ in range(4):
        turns.add_turn()
    assert turns.height() == three
    last = turns.rows[-1]
    qtbot.waitUntil(lambda: turns.verticalScrollBar().value() == turns.verticalScrollBar().maximum() > 0)
    top = last.mapTo(turns.viewport(), QPoint(0, 0)).y()
    assert 0 <= top <= turns.viewport().height() - last.text.height()
    assert last.text.hasFocus()
