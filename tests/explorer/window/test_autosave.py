"""What is done in a window is kept beside the settings, and the next one offers to go on with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QMenu

from attention_explorer.recovery import autosaves
from attention_explorer.recovery.autosaves import autosave_folder, left_behind
from attention_explorer.session import attn
from attention_explorer.session.intents import SelectCell, SetText
from attention_explorer.session.kept import Kept, KeptState, SessionFile
from attention_explorer.session.state import Document, State
from attention_explorer.settings import Settings, load
from attention_explorer.window.recovery import Autosave
from attention_explorer.window.window import MainWindow
from attention_models.protocol.request import Failure, Request, Result
from tests.explorer.real_window import destroy, look_put_back, wait_until


class NoModel:
    """An engine that opens nothing: what is typed needs none."""

    def run(self, request: Request, _should_stop: object, _report: object) -> Result:
        return Failure(request=request, sentence="There is no model here.")


@contextmanager
def opened(text: str = "Tom") -> Iterator[MainWindow]:
    with look_put_back():
        window = MainWindow(State(Document(text=text)), Settings(theme="light"), engine_factory=NoModel)
        window.show()
        window.start()
        try:
            wait_until(lambda: window.session.state.notice is not None)
            yield window
        finally:
            window.close()
            destroy(window)


@pytest.fixture(autouse=True)
def application(qapp: QApplication) -> QApplication:
    return qapp


def files() -> list[Path]:
    return sorted(autosave_folder().glob("*.attn"))


def texts() -> list[str]:
    return [attn.load(path).present.document.text for path in files()]


def left_by_an_ended_program(text: str, window: int = 1) -> Path:
    """A file as a killed program leaves it."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    path = autosaves.own_path()
    host = path.name.rsplit("-", 3)[0]
    left = path.with_name(f"{host}-{ended.pid}-7-{window}.attn")
    left.parent.mkdir(parents=True, exist_ok=True)
    attn.save(SessionFile(KeptState(Document(text=text)), Kept(notes="Kept.")), left)
    return left


def keeper(window: MainWindow) -> Autosave:
    assert window.autosave is not None
    return window.autosave


def shows(window: MainWindow) -> Callable[[], bool]:
    return lambda: window.contents.offer_bar.isVisible()


def test_the_newest_that_were_left_are_offered_and_none_is_deleted():
    for window in range(autosaves.MOST_LEFT + 2):
        path = left_by_an_ended_program(str(window), window)
        os.utime(path, (window, window))
    assert [left.written for left in left_behind()] == [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert len(files()) == 12


def test_what_is_typed_is_in_a_file_a_moment_later():
    with opened() as window:
        window.session.dispatch(SetText("Tom w"))
        wait_until(lambda: texts() == ["Tom w"])
        window.session.dispatch(SetText("Tom went"))
        wait_until(lambda: texts() == ["Tom went"])


def test_where_nothing_was_done_there_is_no_file():
    with opened() as window:
        window.session.dispatch(SetText("Tom"))
        window.dock_host.raise_panel("cell")
    assert not autosave_folder().exists()


def test_closing_with_unsaved_steps_keeps_them_at_once():
    with opened() as window:
        window.session.dispatch(SetText("Tom went home."))
    assert texts() == ["Tom went home."]


def test_saving_takes_the_file_away_and_the_next_step_brings_it_back(tmp_path):
    with opened() as window:
        window.session.dispatch(SetText("Tom went home."))
        wait_until(lambda: bool(files()))
        window.sessions._write(tmp_path / "mine.attn")
        wait_until(lambda: not files())
        assert attn.load(tmp_path / "mine.attn").present.document.text == "Tom went home."
        window.sessions.states.set_notes("A note.")
        wait_until(lambda: bool(files()))
        assert attn.load(files()[0]).kept.notes == "A note."


@pytest.mark.full
def test_two_windows_have_a_file_each_which_nobody_takes_for_left_behind():
    with opened() as one, opened() as other:
        one.session.dispatch(SetText("one"))
        other.session.dispatch(SetText("other"))
        wait_until(lambda: sorted(texts()) == ["one", "other"])
        assert left_behind() == []


def test_the_next_start_offers_to_go_on_and_waits_for_nobody():
    left = left_by_an_ended_program("Anna went home.")
    with opened() as window:
        wait_until(shows(window))
        assert window.contents.offer_bar.text == (
            "Work that was not saved is kept: “Anna went home.” in story-gpt, just now."
        )
        window.session.dispatch(SetText("Meanwhile"))  # nothing is held up
        window.contents.offer_bar.action_triggered.emit()
        wait_until(lambda: not left.exists())
        wait_until(lambda: "There is no model here." in window.notice_bar.text)
        assert window.session.state.document.text == "Meanwhile"
        assert "Anna went home." in texts()  # what could not be opened stays
    assert sorted(texts()) == ["Anna went home.", "Meanwhile"]


def test_what_was_gone_on_with_is_kept_on(monkeypatch):
    left = left_by_an_ended_program("Anna went home.")
    with opened() as window:
        wait_until(shows(window))
        monkeypatch.setattr(window.sessions, "open_content", lambda _session, opened: opened())
        keeper(window).go_on()
        wait_until(lambda: keeper(window).left == [])
        assert not left.exists()
        assert texts() == ["Anna went home."]
        assert window.contents.offer_bar.isHidden()
        assert left_behind() == []


def test_several_are_in_the_menu_and_what_cannot_be_read_is_not_offered():
    left_by_an_ended_program("One.", 1)
    left_by_an_ended_program("Two.", 2)
    left_by_an_ended_program("Three.", 3).write_bytes(b"PK broken")
    with opened() as window:
        wait_until(shows(window))
        assert window.contents.offer_bar.text.endswith("1 more is under File > Open recent.")
        window.recent_menu.aboutToShow.emit()
        listed = [action.text() for action in window.recent_menu.actions()]
        assert sorted(text.partition("”")[0] for text in listed) == ["Not saved: “One.", "Not saved: “Two."]


def test_of_two_windows_that_go_on_with_one_file_one_says_so():
    left_by_an_ended_program("Anna went home.")
    with opened() as window:
        wait_until(shows(window))
        (found,) = left_behind()
        path = autosaves.take(found)
        assert path is not None
        keeper(window).open_left(found)
        wait_until(lambda: window.contents.settings_bar.isVisible())
        assert "could not be read" in window.contents.settings_bar.text


def test_where_nothing_can_be_written_it_is_said_once_and_work_goes_on(settings_folder):
    (settings_folder / "autosave").write_text("no folder")
    with opened() as window:
        window.session.dispatch(SetText("Tom went"))
        wait_until(lambda: window.contents.settings_bar.isVisible())
        assert window.contents.settings_bar.text.startswith(
            "What you do is not kept for the case that the program is ended. It could not be written to "
        )
        window.contents.settings_bar.hide()
        window.session.dispatch(SetText("Tom went home"))
        window.session.dispatch(SelectCell(0, 0))
        keeper(window)._file.ending.wait(1.0)
        QApplication.processEvents()
        assert window.contents.settings_bar.isHidden()


def test_a_theme_is_written_when_it_is_chosen(settings_folder):
    with opened() as window:
        window.set_theme_name("dark")
        wait_until(lambda: (settings_folder / "settings.json").exists())
        assert '"theme": "dark"' in (settings_folder / "settings.json").read_text()


def test_which_panels_are_not_for_the_audience_comes_back(settings_folder):
    with opened() as window:
        window.audience.set_shown("lookup", False)
        window.audience.set_shown("cell", False)
        window.audience.set_shown("cell", True)
        path = settings_folder / "settings.json"
        wait_until(lambda: path.exists() and '"lookup"' in path.read_text())
    settings, said = load()
    assert not said
    with look_put_back():
        window = MainWindow(State(Document(text="Tom")), settings, engine_factory=NoModel)
        assert window.audience.left_out == {"lookup"}
        menu = next(menu for menu in window.findChildren(QMenu) if menu.title() == "What the audience &sees")
        assert [action.text() for action in menu.actions() if not action.isChecked()] == ["Lookup"]
        window.close()
        destroy(window)


def test_what_another_session_takes_the_place_of_stays(tmp_path):
    attn.save(SessionFile(KeptState(Document(text="Of a file."))), tmp_path / "a.attn")
    with opened() as window:
        window.session.dispatch(SetText("Not saved."))
        wait_until(lambda: texts() == ["Not saved."])
        window.sessions._take(tmp_path / "a.attn", attn.load(tmp_path / "a.attn"))  # nothing to keep: it was not asked
        wait_until(lambda: files() == [])
        window.session.dispatch(SetText("Not saved either."))
        wait_until(lambda: texts() == ["Not saved either."])
        window.sessions._leaves_work = True
        window.sessions._take(tmp_path / "a.attn", attn.load(tmp_path / "a.attn"))
    assert texts() == ["Not saved either."]
