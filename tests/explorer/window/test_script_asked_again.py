"""A script of what learns is asked for again where opening a checkpoint called it off; one of a run is not."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget

from attention_explorer.look.theme import LIGHT
from attention_explorer.session.intents import OpenCheckpoint
from attention_explorer.session.state import Document, State
from attention_explorer.window.script import ScriptWindow
from attention_models.protocol.prediction import PredictionRequest
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from attention_models.protocol.training_messages import Asked
from attention_models.protocol.training_scripts import TrainingOnScreen
from tests.explorer.session.answers import loaded
from tests.explorer.silent import SilentSession


@pytest.fixture
def session() -> SilentSession:
    session = SilentSession(State(Document(checkpoint="story-gpt")))
    session.arrive(loaded("story-gpt"))
    return session


@pytest.fixture
def owner(qtbot) -> QWidget:
    owner = QWidget()
    qtbot.addWidget(owner)
    return owner


@pytest.fixture
def script(owner: QWidget, session: SilentSession) -> ScriptWindow:
    return ScriptWindow(session, LIGHT, owner)


def asked(session: SilentSession) -> list[ScriptRequest]:
    return [request for request in session.asked if isinstance(request, ScriptRequest)]


def test_what_learns_is_asked_for_again_once_the_snapshot_is_open(session: SilentSession, script: ScriptWindow) -> None:
    request = TrainingOnScreen(asked=Asked("reverse"))
    script.ask(request)
    session.dispatch(OpenCheckpoint("story-bert"))
    assert script.note.text() == "Writing it …"
    assert len(asked(session)) == 1
    session.arrive(loaded("story-bert"))
    assert [one.of for one in asked(session)] == [request, request]
    session.arrive(ScriptView(request=asked(session)[1], title="A model", code="print(1)"))
    assert (script.title.text(), script.code) == ("A model", "print(1)")
    session.dispatch(OpenCheckpoint("story-gpt"))
    session.arrive(loaded("story-gpt"))
    assert len(asked(session)) == 2
    assert script.code == "print(1)"


def test_what_a_run_says_is_gone_with_its_model(session: SilentSession, script: ScriptWindow) -> None:
    script.ask(PredictionRequest(run=1, positions=(0,)))
    session.dispatch(OpenCheckpoint("story-bert"))
    assert "Another checkpoint is being opened" in script.note.text()
    session.arrive(loaded("story-bert"))
    assert len(asked(session)) == 1
