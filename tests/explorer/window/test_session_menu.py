"""File > Save the session and Open a session, in the window."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session import attn, files
from attention_explorer.session.intents import ClearInterventions, PutIntervention, SelectCell, SetText, SetView
from attention_explorer.session.state import Document
from attention_explorer.widgets import dialogs as save_dialog
from attention_explorer.window.window import MainWindow
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.values import SiteRef
from tests.explorer.answering import answering, pressing
from tests.explorer.real_window import EXAMPLE, panel_of, settle, wait_until

pytestmark = pytest.mark.x

SCALE = Scale(0.5, site=SiteRef("decoder", 5), head=5)


@pytest.fixture
def path(window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that both dialogs give back. The window has none so far, and no states."""
    chosen = tmp_path / "session.attn"
    monkeypatch.setattr(save_dialog, "file_to_save", lambda *_: (str(chosen), ""))
    monkeypatch.setattr(save_dialog, "file_to_open", lambda *_: str(chosen))
    forget(window)
    return chosen


def forget(window: MainWindow) -> None:
    window.sessions.path = None
    window.sessions.states.open(type(window.sessions.states.kept)())


def save(window: MainWindow) -> None:
    window.menus["save_session"].trigger()
    wait_until(lambda: window.session.state.notice is not None)


def open_(window: MainWindow, path: Path) -> None:
    opened: list[str] = []
    window.sessions.used.connect(opened.append)
    window.menus["open_session"].trigger()
    wait_until(lambda: bool(opened))
    window.sessions.used.disconnect(opened.append)
    settle(window)


def test_a_session_comes_back_whole(window, path):
    window.session.dispatch(PutIntervention(SCALE))
    window.session.dispatch(PutIntervention(Mask("window", window=4)))
    window.session.dispatch(SelectCell(9, 3))
    settle(window)
    saved = window.session.state.document
    save(window)
    window.session.dispatch(ClearInterventions())
    window.session.dispatch(SelectCell(2, 1))
    settle(window)
    open_(window, path)
    assert window.session.state.document == saved
    assert window.session.state.ran.inputs.interventions == (SCALE, Mask("window", window=4))
    window.session.undo()
    assert window.session.state.document.interventions == ()
    settle(window)


def test_the_same_panel_is_in_front_with_the_same_page(window, path):
    lookup = next(panel for panel in window.panels if panel.name == "lookup")
    window.dock_host.raise_panel("lookup")
    lookup.go_to(2)
    wait_until(lambda: "lookup" in window.dock_host.front_panels())
    front = window.dock_host.front_panels()
    save(window)
    lookup.go_to(0)
    window.dock_host.raise_panel("masks")
    window.dock_host.docks["heads"].hide()
    wait_until(lambda: "lookup" not in window.dock_host.front_panels())
    open_(window, path)
    assert window.dock_host.front_panels() == front
    assert lookup.chosen() == {"page": 2}
    window.reset_layout()


def test_save_goes_to_the_open_file_and_the_title_says_which(window, path, monkeypatch):
    save(window)
    assert window.windowTitle() == "session.attn[*] - story-gpt - Attention Explorer"
    assert not window.isWindowModified()
    window.session.dispatch(SetText("Anna went home."))
    assert window.isWindowModified()
    monkeypatch.setattr(save_dialog, "file_to_save", lambda *_: pytest.fail("nobody has to be asked"))
    settle(window)
    save(window)
    assert not window.isWindowModified()
    assert attn.load(path).present.document.text == "Anna went home."


def test_a_name_without_its_ending_replaces_nothing_unasked(window, path, monkeypatch):
    (path.parent / "mine.attn").write_bytes(b"older")
    names = iter([(str(path.parent / "mine"), ""), ("", "")])
    monkeypatch.setattr(save_dialog, "file_to_save", lambda *_: next(names))
    with answering(pressing("Keep it")) as said:
        window.menus["save_session"].trigger()
    assert said == ["mine.attn is there already."]
    assert (path.parent / "mine.attn").read_bytes() == b"older"


def test_a_bad_file_is_a_sentence_and_changes_nothing(window, path):
    path.write_text('{"program": "attention-explorer", "version": 1, "checkpoint": "story-gpt", "text": 3}')
    before = window.session.state.document
    window.menus["open_session"].trigger()
    wait_until(lambda: window.session.state.notice is not None)
    assert window.session.state.document == before
    notice = window.session.state.notice
    assert notice.text.startswith("session.attn is no session that can be opened: expected `str`, got `int`")


def test_a_session_of_an_earlier_version_opens_and_is_saved_as_a_new_file(window, path):
    older = path.with_suffix(".json")
    older.write_bytes(files.encode(Document(text="Tom went home.")))
    window.sessions.open_path(older)
    wait_until(lambda: window.session.state.document.text == "Tom went home.")
    settle(window)
    assert window.sessions.path is None
    save(window)
    assert attn.load(path).present.document.text == "Tom went home."
    assert json.loads(older.read_bytes())["text"] == "Tom went home."


def test_one_whose_checkpoint_cannot_be_opened_changes_nothing(window, path):
    save(window)
    session = attn.load(path)
    broken = path.parent / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    other = Document(checkpoint=str(broken), text="Another text.")
    attn.save(type(session)(type(session.present)(other)), path)
    before = window.session.state.document
    window.sessions.open_path(path)
    wait_until(lambda: window.session.state.opening is not None)
    assert window.session.state.document.text == EXAMPLE
    wait_until(lambda: window.session.state.opening is None)
    assert window.session.state.document == before
    assert window.session.state.notice.text.startswith("broken has no model.safetensors")
    assert window.session.state.results.loaded.info.name == "story-gpt"
    settle(window)


def test_a_folder_that_is_not_there_is_a_sentence(window, path, monkeypatch):
    monkeypatch.setattr(save_dialog, "file_to_save", lambda *_: (str(path.parent / "no" / "a.attn"), ""))
    save(window)
    assert "could not be written" in window.session.state.notice.text


def test_the_part_of_the_map_that_shows_comes_back(window, path):
    window.dock_host.raise_panel("map")
    window.session.dispatch(SetText(EXAMPLE))
    settle(window)
    shown = panel_of(window, HeadMapPanel).map
    shown.zoom_by(3.0)
    shown.scroll_to_cell(12, 9)
    part = shown.view.place
    assert part[0] > 1
    save(window)
    shown.reset_view()
    window.session.dispatch(SetText("Another text, of other tokens."))
    settle(window)
    assert shown.view.zoom == 1
    open_(window, path)
    wait_until(lambda: shown.view.zoom > 1)
    assert shown.view.place == pytest.approx(part, rel=1e-4)


def test_a_dialog_that_is_left_does_nothing(window, path, monkeypatch):
    monkeypatch.setattr(save_dialog, "file_to_save", lambda *_: ("", ""))
    monkeypatch.setattr(save_dialog, "file_to_open", lambda *_: "")
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


@pytest.mark.full
def test_going_to_a_state_brings_its_screen_back(window, path):
    from attention_explorer.panels.positions.panel import PositionsPanel

    positions = panel_of(window, PositionsPanel)
    window.dock_host.raise_panel("positions")
    positions.show_page(1)
    wait_until(lambda: "positions" in window.dock_host.front_panels())
    window.sessions.keep("The model's own")
    window.session.dispatch(SetText("Anna went home."))
    settle(window)
    window.dock_host.raise_panel("masks")
    window.sessions.keep("Another text")
    window.menus["previous_state"].trigger()
    wait_until(lambda: window.sessions.states.current == 0)
    settle(window)
    assert window.session.state.document.text == EXAMPLE
    assert "positions" in window.dock_host.front_panels()
    listed = [a.text() for a in window.menuBar().actions()[4].menu().actions() if a.isCheckable()]
    assert listed == ["The model's own", "Another text"]
    save(window)
    assert [state.name for state in attn.load(path).kept.states] == listed
    window.reset_layout()
    forget(window)
