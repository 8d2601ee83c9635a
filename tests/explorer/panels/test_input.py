"""The input panel: its buttons, chips, arcs and words, from made-up runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from explorer.panels.input import InputPanel, word_span
from explorer.session.hover import NOTHING, Pointed
from explorer.session.intents import SelectCell, SelectQuery
from explorer.session.state import State
from models.requests import ForwardRequest, HeadRequest, Loaded, SiteRef, StepRequest, Token
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pictures import rendered


def loaded_as(family: str, mask: str | None = None) -> Loaded:
    loaded = answers.loaded()
    return replace(loaded, info=replace(loaded.info, family=family, mask_token=mask))


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> InputPanel:
    return shown(qtbot, InputPanel, session)


def test_before_a_model_is_open_nothing_can_be_run(qtbot):
    panel = shown(qtbot, InputPanel, SilentSession(State()))
    assert not panel.run_button.isEnabled()
    assert not panel.step_button.isEnabled()
    assert not panel.mask_button.isVisible()


def test_it_wants_the_weights_that_its_arcs_show(panel, session):
    assert session.asked == [HeadRequest(run=1, site=SiteRef("decoder", 5), head=5)]
    bare = rendered(panel.strip)
    view = replace(answers.head_view(), weights=np.full((4, 4), 0.25, np.float32))
    session.arrive(view)
    assert rendered(panel.strip) != bare
    assert panel.caption.text() == "arcs: layer 5, head 5, from “went”"
    assert not panel.is_waiting()


def test_arcs_follow_the_pointer_and_come_back(panel, session):
    session.arrive(replace(answers.head_view(), weights=np.full((4, 4), 0.25, np.float32)))
    still = rendered(panel.strip)
    panel.hover.point(Pointed(query=1, key=0))
    assert panel.caption.text().endswith("from “and”")
    assert rendered(panel.strip) != still
    panel.hover.point(Pointed(query=99, key=0))  # of a run that is gone
    assert panel.caption.text().endswith("from “went”")
    panel.hover.point(NOTHING)
    assert rendered(panel.strip) == still


def test_typing_runs_the_model_and_says_which_text_the_tokens_are_of(panel, session):
    session.arrive(answers.head_view())
    QTest.keyClicks(panel.text, "!")
    assert [request.text for request in session.asked if isinstance(request, ForwardRequest)] == ["Tom and Anna went!"]
    assert panel.caption.text().startswith("tokens of the last text that ran · ")
    assert not panel.step_button.isEnabled()
    panel.step()
    assert not any(isinstance(request, StepRequest) for request in session.asked)


def test_buttons_ask_the_engine(panel, session, qtbot):
    session.asked.clear()
    qtbot.mouseClick(panel.run_button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.step_button, Qt.MouseButton.LeftButton)
    assert session.asked == [ForwardRequest(text="Tom and Anna went"), StepRequest(run=1)]


@pytest.mark.parametrize(("family", "writes"), [("causal", True), ("masked", True), ("encoder", False)])
def test_only_models_that_write_can_step(qtbot, family, writes):
    session = SilentSession(answers.after(State(), loaded_as(family), answers.ran()))
    assert shown(qtbot, InputPanel, session).step_button.isEnabled() == writes


def test_masking_the_selected_word_or_what_is_marked(qtbot):
    session = SilentSession(answers.after(State(), loaded_as("masked", "[MASK]"), answers.ran()))
    panel = shown(qtbot, InputPanel, session)
    assert panel.mask_button.isVisible()
    session.dispatch(SelectQuery(2))
    qtbot.mouseClick(panel.mask_button, Qt.MouseButton.LeftButton)
    assert session.state.document.text == "Tom and [MASK] went"
    cursor = panel.text.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(3, cursor.MoveMode.KeepAnchor)
    panel.text.setTextCursor(cursor)
    panel.mask_word()
    assert session.state.document.text == "[MASK] and [MASK] went"


def test_masking_nothing_says_what_to_do(qtbot):
    session = SilentSession(answers.after(State(), loaded_as("masked", "[MASK]"), answers.ran(framed=True)))
    panel = shown(qtbot, InputPanel, session)
    session.dispatch(SelectQuery(0))  # the special token
    panel.mask_word()
    assert session.state.notice is not None
    assert session.state.notice.text.startswith("Select a word first")
    assert session.state.document.text == "Tom and Anna went"


def test_a_click_and_the_keys_of_the_strip_select(panel, session, qtbot):
    qtbot.mouseClick(panel.strip, Qt.MouseButton.LeftButton, pos=panel.strip.chip_rect(1).center().toPoint())
    assert session.state.selection.query == 1
    qtbot.keyClick(panel.strip, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert session.state.selection.key == 1
    session.dispatch(SelectCell(3, 2))
    still = rendered(panel.strip)
    session.dispatch(SelectCell(3, 1))
    assert rendered(panel.strip) != still


def test_the_text_of_the_session_is_shown_with_the_cursor_left_alone(panel, session):
    panel.text.moveCursor(panel.text.textCursor().MoveOperation.Start)
    session.dispatch(SelectQuery(0))
    assert panel.text.textCursor().position() == 0
    session.arrive(answers.stepped(text="Tom and Anna went to"))
    assert panel.text.text() == "Tom and Anna went to"


# --------------------------------------------------------------------------- words


def tokens_of(*texts: str) -> tuple[Token, ...]:
    tokens, start = [], 0
    for text in texts:
        tokens.append(Token(id=0, piece=text, text=text, start=start, end=start + len(text)))
        start += len(text)
    return tuple(tokens)


@pytest.mark.parametrize(
    ("texts", "position", "word"),
    [
        (("Tom", " and", " Anna"), 1, "and"),
        (("un", "believ", "able", " story"), 1, "unbelievable"),
        ((" un", "believ", "able"), 2, "unbelievable"),
        (("Anna", ".", " Tom"), 0, "Anna"),
        (("Anna", ".", " Tom"), 1, "."),
        (("don", "'", "t"), 0, "don"),
        (("年", "年"), 0, "年年"),
    ],
)
def test_the_word_a_token_belongs_to(texts, position, word):
    start, end = word_span(tokens_of(*texts), position)
    assert "".join(texts)[start:end] == word


def test_no_word_where_there_is_no_text():
    special = Token(id=0, piece="[CLS]", text="", start=0, end=0, special=True)
    assert word_span((special,), 0) == (0, 0)
    assert word_span((special,), 7) == (0, 0)
    assert word_span((), 0) == (0, 0)
