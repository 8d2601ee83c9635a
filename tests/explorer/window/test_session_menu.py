"""File > Save session and Open session, in the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from explorer.session import files
from explorer.session.intents import ClearInterventions, PutIntervention, SelectCell, SetView
from models.protocol.interventions import Mask, Scale
from models.protocol.values import SiteRef
from tests.explorer.real_window import settle

pytestmark = pytest.mark.x

SCALE = Scale(0.5, site=SiteRef("decoder", 5), head=5)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that both dialogs give back."""
    chosen = tmp_path / "session.json"
    for name in ("getSaveFileName", "getOpenFileName"):
        monkeypatch.setattr(QFileDialog, name, lambda *_: (str(chosen), ""))
    return chosen


def test_a_session_comes_back_whole(window, path):
    window.session.dispatch(PutIntervention(SCALE))
    window.session.dispatch(PutIntervention(Mask("window", window=4)))
    window.session.dispatch(SelectCell(9, 3))
    settle(window)
    saved = window.session.state.document
    window.menus["save_session"].trigger()
    window.session.dispatch(ClearInterventions())
    window.session.dispatch(SelectCell(2, 1))
    settle(window)
    window.menus["open_session"].trigger()
    settle(window)
    assert window.session.state.document == saved
    assert window.session.state.ran.inputs.interventions == (SCALE, Mask("window", window=4))
    window.session.undo()
    assert window.session.state.document.interventions == ()
    settle(window)


def test_a_bad_file_is_a_sentence_and_changes_nothing(window, path):
    path.write_text('{"program": "attention-explorer", "version": 1, "checkpoint": "story-gpt", "text": 3}')
    before = window.session.state.document
    window.menus["open_session"].trigger()
    assert window.session.state.document == before
    notice = window.session.state.notice
    assert notice is not None
    assert notice.text.startswith("session.json is no session that can be opened: expected `str`, got `int`")


def test_a_folder_that_is_not_there_is_a_sentence(window, path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path.parent / "no" / "a.json"), ""))
    window.menus["save_session"].trigger()
    assert "could not be written" in window.session.state.notice.text


def test_a_dialog_that_is_left_does_nothing(window, monkeypatch):
    for name in ("getSaveFileName", "getOpenFileName"):
        monkeypatch.setattr(QFileDialog, name, lambda *_: ("", ""))
    before = window.session.state
    window.menus["save_session"].trigger()
    window.menus["open_session"].trigger()
    assert window.session.state is before


def test_the_keys(window):
    assert window.menus["save_session"].shortcut().toString() == "Ctrl+S"
    assert window.menus["open_session"].shortcut().toString() == "Ctrl+Shift+O"


def test_a_brush_in_the_hand_is_not_remembered(window):
    window.session.dispatch(SetView("painting", "block"))
    window._remember()
    assert window.settings.view.painting == "off"
    assert files.decode(files.encode(window.session.state.document)).view.painting == "off"
