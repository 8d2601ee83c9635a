"""The input panel with a conversation: the switch, the turns, and tokens by role, from made-up runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.input.panel import InputPanel
from attention_explorer.session.intents import SetChat, SetTurns
from attention_explorer.session.state import Document, State
from attention_models.protocol.chat import MOST_TURNS, Chat, Turn
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import Token
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

TURNS = (Turn("user", "Tom and Anna"), Turn("assistant", "went"))


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(Document(text="Tom and Anna")), answers.loaded(example="", chat=True)))


@pytest.fixture
def panel(qtbot, session: SilentSession) -> InputPanel:
    return shown(qtbot, InputPanel, session)


def test_models_without_a_template_have_no_switch(qtbot) -> None:
    panel = shown(qtbot, InputPanel, SilentSession(answers.after(State(), answers.loaded(), answers.ran())))
    assert not panel.chat.side.isVisible()
    assert panel.text_title.isVisible()


def test_the_switch_brings_the_turns(panel: InputPanel, session: SilentSession) -> None:
    assert panel.text.isVisible()
    assert not panel.chat.turns.isVisible()
    QTest.mouseClick(panel.chat.switch.button(1), Qt.MouseButton.LeftButton)
    assert not panel.text.isVisible()
    assert panel.chat.turns.turns() == (Turn("user", "Tom and Anna"),)
    assert session.asked == [ForwardRequest(inputs=RunInputs(Chat((Turn("user", "Tom and Anna"),))))]
    QTest.mouseClick(panel.chat.switch.button(0), Qt.MouseButton.LeftButton)
    assert panel.text.isVisible()
    assert panel.text.text() == "Tom and Anna"


def test_a_turn_is_typed_added_and_run(panel: InputPanel, session: SilentSession) -> None:
    session.dispatch(SetChat(True))
    QTest.keyClicks(panel.chat.turns.rows[0].text, "!")
    assert session.state.document.prompt == Chat((Turn("user", "Tom and Anna!"),))
    QTest.mouseClick(panel.chat.add, Qt.MouseButton.LeftButton)
    assert Chat(session.state.document.turns) == Chat((Turn("user", "Tom and Anna!"), Turn("assistant", "")))
    session.asked.clear()
    QTest.keyClick(panel.chat.turns.rows[0].text, Qt.Key.Key_Return)
    assert session.asked == [ForwardRequest(inputs=RunInputs(Chat(session.state.document.turns)))]


def test_no_more_turns_than_are_taken(panel: InputPanel, session: SilentSession) -> None:
    session.dispatch(SetTurns(TURNS * (MOST_TURNS // 2)))
    assert not panel.chat.add.isEnabled()


def test_chips_tell_the_role(panel: InputPanel, session: SilentSession) -> None:
    session.dispatch(SetTurns(TURNS))
    ran = answers.ran(1, Chat(TURNS))
    roles = ("", "user", "user", "assistant")
    tokens = tuple(replace(token, role=role) for token, role in zip(ran.tokens, roles, strict=True))
    session.arrive(replace(ran, tokens=tokens))
    chips = [panel.strip._tokens[place] for place in range(4)]
    assert [chip.turn for chip in chips] == list(roles)
    assert chips[0].tooltip.endswith("; written by the template")
    assert chips[3].tooltip.endswith("; said by the assistant")
    assert panel.chat.legend.isVisible()
    assert panel.remark.text() == ""


def test_a_mark_in_a_turn_is_remarked_upon(panel: InputPanel, session: SilentSession) -> None:
    session.dispatch(SetTurns(TURNS))
    mark = Token(5, "<|im_end|>", "<|im_end|>", 0, 10, special=True, role="user", label="⟨im_end⟩")
    ran = answers.ran(1, Chat(TURNS))
    session.arrive(replace(ran, tokens=(mark, *ran.tokens[1:])))
    assert panel.remark.text() == "“<|im_end|>” in the user's turn is read as the template's own mark."
    session.dispatch(SetChat(False))
    assert panel.remark.text() == ""
