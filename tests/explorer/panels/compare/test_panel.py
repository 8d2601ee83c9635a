"""Compare while another text for B is being typed: what is said of the two states is not of that one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.compare.compare_sentences import SAME, TYPING
from attention_explorer.panels.compare.panel import ComparePanel
from attention_explorer.session.comparing import as_b
from attention_explorer.session.intents import CompareWith
from attention_explorer.session.state import State
from attention_models.protocol.two_runs import TwoRunsRequest
from tests.explorer.panels.compare.two_runs import of_one_run
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> ComparePanel:
    panel = shown(qtbot, ComparePanel, session)
    session.dispatch(CompareWith(as_b(session.state)))
    asked = next(request for request in reversed(session.asked) if isinstance(request, TwoRunsRequest))
    session.arrive(replace(of_one_run(), request=asked))
    return panel


def test_while_another_text_is_typed_the_two_are_not_called_the_same(panel, session, qtbot):
    remarks, field = panel.page.remarks, panel.chooser.text
    assert remarks.text() == SAME
    assert not panel.is_veiled
    field.setFocus()
    QTest.keyClicks(field, "Tom ")
    assert remarks.text() == TYPING
    qtbot.waitUntil(lambda: panel.is_veiled)
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert remarks.text() == SAME
    assert not panel.is_veiled


def test_enter_gives_the_typed_text_to_b(panel, session):
    field = panel.chooser.text
    field.setFocus()
    QTest.keyClicks(field, "Tom ")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert session.state.document.compared.document.text == field.text()
    assert field.text().startswith("Tom ")
    assert not panel.pages.currentIndex()  # B is run before anything is said of it
    assert panel.page.remarks.text() != TYPING
