"""A window in which a model converses, driven by mouse and keyboard, with a tiny real model behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.session.intents import OpenCheckpoint, RestoreDocument, SetTurns, Show
from attention_explorer.session.state import Document
from attention_explorer.window.window import MainWindow
from attention_models.protocol.chat import Chat, Turn
from attention_models.protocol.decoding import DecodeStepRequest
from attention_models.protocol.prompt import Prompt
from tests.explorer import documents
from tests.explorer.real_window import click, opened_window, panel_of, press, requests_of, settle, wait_until
from tests.models.talking import save_talking

pytestmark = pytest.mark.x

HI = Turn("user", "Tom went to the park.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_talking("gemma", tmp_path_factory.mktemp("gemma"))


@pytest.fixture(scope="module")
def shared(qapp, folder: Path) -> Iterator[MainWindow]:
    with opened_window(str(folder), HI.text) as window:
        yield window


@pytest.fixture
def window(shared: MainWindow, folder: Path) -> MainWindow:
    shared.session.dispatch(RestoreDocument(Document(checkpoint=str(folder), text=HI.text)))
    shared.session.dispatch(Show(None))
    settle(shared)
    click(shared.input.chat.switch.button(1), shared.input.chat.switch.button(1).rect().center())
    settle(shared)
    return shared


def read(window: MainWindow) -> Prompt:
    return window.session.state.document.prompt


def said(window: MainWindow) -> dict[str, str]:
    """What each role says, of what ran."""
    ran = window.session.state.ran
    assert ran is not None
    words: dict[str, str] = {}
    for token in ran.tokens:
        words[token.role] = words.get(token.role, "") + token.text
    return words


def told(window: MainWindow) -> str:
    notice = window.session.state.notice
    return "" if notice is None else notice.text


def test_the_text_runs_as_what_the_user_says(window: MainWindow) -> None:
    assert read(window) == Chat((HI,))
    template = "<bos><start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\n"
    assert said(window) == {"": template, "user": HI.text}
    assert window.input.chat.legend.isVisible()
    assert window.height() == 800
    assert window.input.height() <= 800 * 0.37


def test_step_writes_the_assistants_turn_and_undo_takes_it_back(window: MainWindow) -> None:
    press(window.input.chat.turns.rows[0].text, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    settle(window)
    prompt = read(window)
    assert isinstance(prompt, Chat)
    assert [turn.role for turn in prompt] == ["user", "assistant"]
    assert said(window)["assistant"] == prompt.turns[1].text != ""
    assert window.input.chat.turns.turns() == prompt.turns
    window.session.undo()
    settle(window)
    assert read(window) == Chat((HI,))
    window.session.redo()
    settle(window)
    assert read(window) == prompt


def test_what_the_template_refuses_is_said_and_the_last_run_stays(window: MainWindow) -> None:
    ran = window.session.state.ran
    window.session.dispatch(SetTurns((Turn("system", "Be brief."), HI)))
    settle(window)
    assert "System role not supported" in told(window)
    assert window.session.state.ran is ran
    window.session.dispatch(SetTurns((HI, HI)))
    settle(window)
    assert "roles must alternate" in told(window)
    window.session.dispatch(SetTurns((HI,)))
    settle(window)
    assert told(window) == ""


def test_an_empty_conversation_is_said(window: MainWindow) -> None:
    text = window.input.chat.turns.rows[0].text
    press(text, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    press(text, Qt.Key.Key_Delete)
    settle(window)
    assert told(window) == "The conversation is empty. Type something into one of its turns."
    QTest.keyClicks(text, "Tom")
    settle(window)
    assert said(window)["user"] == "Tom"


def test_decoding_writes_the_assistants_turn(window: MainWindow) -> None:
    window.dock_host.docks["decoding"].raise_()
    settle(window)
    panel = panel_of(window, DecodingPanel)
    with requests_of(window) as asked:
        click(panel.view.transport.step_button, panel.view.transport.step_button.rect().center())
        settle(window)
    assert any(isinstance(request, DecodeStepRequest) and request.inputs.prompt == Chat((HI,)) for request in asked)
    wait_until(lambda: window.session.state.pending_step is None and not window.bridge.busy)
    click(panel.view.use, panel.view.use.rect().center())
    settle(window)
    prompt = read(window)
    assert isinstance(prompt, Chat)
    assert prompt.turns[-1].role == "assistant"


@pytest.mark.full
def test_a_model_without_a_template_reads_the_words(window: MainWindow, folder: Path) -> None:
    window.session.dispatch(SetTurns((HI, Turn("assistant", "The dog"))))
    settle(window)
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    settle(window)
    assert read(window) == f"{HI.text}\n\nThe dog"
    assert window.input.text.isVisible()
    assert not window.input.chat.side.isVisible()
    window.session.undo()
    settle(window)
    assert read(window) == Chat((HI, Turn("assistant", "The dog")))
    assert window.input.chat.turns.isVisible()


def test_a_session_file_keeps_it(window: MainWindow, tmp_path: Path) -> None:
    window.session.dispatch(SetTurns((HI, Turn("assistant", "The dog"))))
    settle(window)
    before = window.session.state.document
    documents.save(before, tmp_path / "chat.json")
    window.session.dispatch(SetTurns((HI,)))
    settle(window)
    window.session.dispatch(RestoreDocument(documents.load(tmp_path / "chat.json")))
    settle(window)
    assert window.session.state.document.prompt == before.prompt
    assert said(window)["assistant"] == "The dog"
