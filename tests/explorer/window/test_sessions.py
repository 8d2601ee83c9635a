"""Sessions whose checkpoint is elsewhere or another by now, in the window: asked about by name and hash."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QMessageBox

from attention_explorer.session import attn
from attention_explorer.session.intents import OpenCheckpoint, SelectCell, SetPicture, SetText
from attention_explorer.session.kept import Kept
from attention_explorer.widgets import dialogs
from attention_explorer.window.sessions import CheckpointQuestion
from attention_explorer.window.window import MainWindow
from attention_models.files.catalogue import WEIGHTS
from tests.explorer.real_window import EXAMPLE, settle, wait_until

pytestmark = pytest.mark.x


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A checkpoint of a person's own: a copy of an included one."""
    return Path(shutil.copytree(WEIGHTS / "dates-bottleneck", tmp_path / "mine"))


@pytest.fixture
def saved(window: MainWindow, model: Path, tmp_path: Path) -> Iterator[Path]:
    """A session of that checkpoint; the window shows story-gpt again."""
    window.sessions.path = None
    window.session.dispatch(OpenCheckpoint(str(model)))
    settle(window)
    window.session.dispatch(SetText("3 May 2001"))
    settle(window)
    path = tmp_path / "session.attn"
    window.sessions._write(path)
    wait_until(path.exists)
    settle(window)
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    window.session.dispatch(SetText(EXAMPLE))
    settle(window)
    yield path
    window.sessions.path = None
    window.sessions.states.open(Kept())
    window.contents.session_bar.hide()


def question(window: MainWindow) -> CheckpointQuestion:
    found: list[CheckpointQuestion] = []

    def is_there() -> bool:
        found[:] = [box for box in window.findChildren(CheckpointQuestion) if box.isVisible()]
        return bool(found)

    wait_until(is_there)
    return found[0]


def press(box: QMessageBox, label: str) -> None:
    next(button for button in box.buttons() if button.text().replace("&", "") == label).click()


@pytest.mark.full
def test_one_that_is_where_it_was_opens_unasked(window, saved, model):
    window.sessions.open_path(saved)
    wait_until(lambda: window.session.state.document.checkpoint == str(model))
    settle(window)
    assert window.session.state.document.text == "3 May 2001"
    assert window.findChild(CheckpointQuestion) is None
    assert window.contents.session_bar.isHidden()


@pytest.mark.full
def test_one_that_was_moved_with_the_session_is_found(window, saved, model, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    shutil.move(model, tmp_path / "elsewhere" / "mine")
    shutil.move(saved, tmp_path / "elsewhere" / "session.attn")
    window.sessions.open_path(tmp_path / "elsewhere" / "session.attn")
    wait_until(lambda: window.session.state.document.checkpoint == str(tmp_path / "elsewhere" / "mine"))
    settle(window)
    assert window.session.state.document.text == "3 May 2001"


def test_one_that_is_elsewhere_is_asked_for_by_name_and_hash(window, saved, model, tmp_path, monkeypatch):
    files = attn.load(saved).present.files
    moved = tmp_path / "far" / "away"
    moved.parent.mkdir()
    shutil.move(model, moved)
    before = window.session.state.document
    window.sessions.open_path(saved)
    box = question(window)
    assert box.text() == (
        f"The session was made with mine (model.safetensors, SHA-256 {files['model.safetensors'][:12]}…), "
        f"which is not at {model}."
    )
    assert window.session.state.document == before
    monkeypatch.setattr(dialogs, "folder", lambda *_: str(moved))
    press(box, "Choose where it is…")
    wait_until(lambda: window.session.state.document.checkpoint == str(moved))
    settle(window)
    assert window.session.state.document.text == "3 May 2001"
    assert window.contents.session_bar.isHidden()


@pytest.mark.skipif(sys.platform == "win32", reason="there two slashes are a share")
def test_one_on_a_share_is_asked_about_before_it_is_touched(window, saved, model, tmp_path):
    session, share = attn.load(saved), f"/{model}"
    moved = replace(session.present, document=replace(session.present.document, checkpoint=share))
    attn.save(replace(session, present=moved), saved)
    before = window.session.state.document
    window.sessions.open_path(saved)
    box = question(window)
    assert box.text() == (
        f"The session names a place on another computer: the checkpoint {share}. Nothing there has been touched."
    )
    assert "can tell it your user name" in box.informativeText()
    assert window.session.state.document == before
    press(box, "Open it anyway")
    wait_until(lambda: window.session.state.document.checkpoint == share)
    settle(window)
    assert window.session.state.document.text == "3 May 2001"


@pytest.mark.full
def test_one_that_is_cancelled_changes_nothing(window, saved, model):
    shutil.rmtree(model)
    before = window.session.state.document
    window.sessions.open_path(saved)
    press(question(window), "Cancel")
    settle(window)
    assert window.session.state.document == before


def test_one_that_has_changed_is_not_passed_off_as_the_same(window, saved, model):
    config = model / "config.json"
    config.write_bytes(config.read_bytes() + b"\n")
    window.sessions.open_path(saved)
    box = question(window)
    assert "What is at " in box.text()
    assert "is another checkpoint: config.json has other contents." in box.text()
    press(box, "Open it anyway")
    wait_until(lambda: window.session.state.document.checkpoint == str(model))
    settle(window)
    assert window.contents.session_bar.isVisible()
    assert window.contents.session_bar.text.startswith(
        "This is not the checkpoint of the session: config.json has other contents."
    )
    window.session.dispatch(SelectCell(1, 0))
    settle(window)
    assert window.contents.session_bar.isVisible()  # as long as it is open
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    settle(window)
    assert window.contents.session_bar.isHidden()


@pytest.mark.full
def test_a_file_is_dropped_on_the_window(window, saved, model):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(saved))])
    event = QDropEvent(
        QPoint(9, 9), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    window.dropEvent(event)
    wait_until(lambda: window.session.state.document.checkpoint == str(model))
    settle(window)
    assert window.sessions.path == saved


@pytest.mark.full
def test_sessions_opened_lately_are_in_the_menu(window, saved, model):
    window.settings.recent_sessions = []
    window.sessions.open_path(saved)
    wait_until(lambda: window.session.state.document.checkpoint == str(model))
    settle(window)
    window.recent_menu.aboutToShow.emit()
    assert [(a.text(), a.toolTip()) for a in window.recent_menu.actions()] == [("session.attn", str(saved))]
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    settle(window)
    window.recent_menu.actions()[0].trigger()
    wait_until(lambda: window.session.state.document.checkpoint == str(model))
    settle(window)


def test_a_long_text_of_a_file_is_a_sentence_at_once(window, tmp_path):
    from attention_explorer.session import files
    from attention_explorer.session.state import Document

    path = tmp_path / "long.json"
    path.write_bytes(files.encode(Document(text="a" * 400_000)))
    before = window.session.state.document
    window.sessions.open_path(path)
    wait_until(lambda: window.session.state.notice is not None)
    assert "its text has 400,000 characters, and the window takes 200,000" in window.session.state.notice.text
    assert window.session.state.document == before


@pytest.mark.full
def test_a_picture_that_has_changed_is_said_until_there_is_another(window, tmp_path):
    window.sessions.path = None
    window.session.dispatch(OpenCheckpoint("vit-quickdraw"))
    settle(window)
    picture, path = tmp_path / "mine.png", tmp_path / "picture.attn"
    Image.fromarray(np.zeros((28, 28), dtype=np.uint8)).save(picture)
    window.session.dispatch(SetPicture(str(picture)))
    settle(window)
    window.sessions._write(path)
    wait_until(path.exists)
    settle(window)
    Image.fromarray(np.full((28, 28), 255, dtype=np.uint8)).save(picture)
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    settle(window)
    window.sessions.open_path(path)
    wait_until(lambda: window.contents.session_bar.isVisible())
    settle(window)
    assert "The picture mine.png has other contents" in window.contents.session_bar.text
    assert window.session.state.ran.inputs.picture == str(picture)
    window.session.dispatch(SetPicture("sample:fish-1"))
    settle(window)
    assert window.contents.session_bar.isHidden()
    window.sessions.path = None
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    window.session.dispatch(SetText(EXAMPLE))
    settle(window)
