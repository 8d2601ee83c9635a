"""A lesson that is made and not saved is kept, and the next window offers to go on with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton, QWidget

from attention_explorer.recovery.autosaves import LESSON, autosave_folder, left_behind
from attention_explorer.session import kept_drafts, lesson_files
from attention_explorer.session.lesson_drafts import Draft
from attention_explorer.window.lesson.making import Making
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import press, wait_until
from tests.explorer.window.test_autosave import opened


@pytest.fixture(autouse=True)
def application(qapp: QApplication) -> QApplication:
    return qapp


def files() -> list[Path]:
    return sorted(autosave_folder().glob(f"*{LESSON}"))


def drafts() -> list[Draft]:
    return [kept_drafts.load(path).draft for path in files()]


def titles() -> list[list[str]]:
    return [[step.title for step in draft.steps] for draft in drafts()]


def left(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def making(window: MainWindow) -> Making:
    return window.lessons.making


def make(window: MainWindow, *names: str) -> None:
    """A new lesson with a step of each name."""
    window.menus["new_lesson"].trigger()
    for name in names:
        window.menus["add_step"].trigger()
        field = making(window).column.step_title
        field.setFocus()
        field.selectAll()
        QTest.keyClicks(field, name)


def question(window: MainWindow) -> QMessageBox | None:
    return next((box for box in window.findChildren(QMessageBox) if box.isVisible()), None)


def let_go(window: MainWindow) -> None:
    left(making(window).column.close_button)
    box = question(window)
    if box is not None:
        left(next(button for button in box.findChildren(QPushButton) if button.text() == "Do not save"))
    assert not making(window).is_on


def as_an_ended_program_leaves_it(path: Path) -> Path:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host = path.name.rsplit("-", 3)[0]
    return path.rename(path.with_name(f"{host}-{ended.pid}-7-1{LESSON}"))


def a_kept_one(*names: str) -> tuple[Draft, Path]:
    """What a window that was ended has left."""
    with opened() as window:
        make(window, *names)
        wait_until(lambda: titles() == [list(names)])
        draft = making(window).draft
        path = as_an_ended_program_leaves_it(files()[0])
        let_go(window)
    assert files() == [path]
    return draft, path


def offers(window: MainWindow) -> Callable[[], bool]:
    return lambda: window.contents.lesson_bar.isVisible()


def test_what_is_written_is_in_a_file_a_moment_later() -> None:
    with opened() as window:
        make(window, "One")
        wait_until(lambda: titles() == [["One"]])
        press(making(window).column.step_title, Qt.Key.Key_End)
        QTest.keyClicks(making(window).column.step_title, " more")
        wait_until(lambda: titles() == [["One more"]])
        window.menus["add_step"].trigger()
        wait_until(lambda: titles() == [["One more", "Step 2"]])
        press(making(window).column.list, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        wait_until(lambda: titles() == [["One more"]])
        let_go(window)
        wait_until(lambda: not files())


@pytest.mark.full
def test_saving_takes_the_file_away_and_the_next_word_brings_it_back(tmp_path: Path) -> None:
    with opened() as window:
        make(window, "One")
        wait_until(lambda: bool(files()))
        assert making(window).write(tmp_path / "mine.lesson")
        wait_until(lambda: not files())
        QTest.keyClicks(making(window).column.step_title, "!")
        wait_until(lambda: bool(files()))
        assert kept_drafts.load(files()[0]).path == str(tmp_path / "mine.lesson")
        let_go(window)
    assert not files()
    assert [step.title for step in lesson_files.load(tmp_path / "mine.lesson").lesson.step] == ["One"]


def test_where_no_lesson_is_made_there_is_no_file() -> None:
    with opened() as window:
        window.menus["new_lesson"].trigger()
        left(making(window).column.close_button)
    assert not files()


@pytest.mark.full
def test_the_next_window_offers_it_and_goes_on_with_it() -> None:
    draft, path = a_kept_one("One", "Two")
    with opened() as window:
        wait_until(offers(window))
        assert window.contents.lesson_bar.text == (
            "A lesson that was not saved is kept: “My lesson”, 2 steps, just now."
        )
        assert not window.lessons.is_making, "nothing is held up"
        window.contents.lesson_bar.action_triggered.emit()
        wait_until(lambda: window.lessons.is_making)
        assert making(window).draft == draft
        assert making(window).step is not None
        assert not making(window).is_saved
        assert making(window).dock.isVisible()
        assert not path.exists(), "its file is this window's"
        assert left_behind(LESSON) == []
        QTest.keyClicks(making(window).column.step_title, "!")
        wait_until(lambda: titles() == [["One", "Two!"]])
        let_go(window)
    assert not files()


@pytest.mark.full
def test_it_is_in_the_menu_and_what_cannot_be_read_is_not_offered() -> None:
    _, path = a_kept_one("One")
    path.with_name(path.name.replace("-1.", "-2.")).write_bytes(b"PK broken")
    with opened() as window:
        wait_until(offers(window))
        window.recent_menu.aboutToShow.emit()
        (action,) = [each for each in window.recent_menu.actions() if each.text().startswith("Lesson that was not")]
        assert action.text().startswith("Lesson that was not saved: “My lesson”, 1 step")
        action.trigger()
        wait_until(lambda: window.lessons.is_making)
        let_go(window)


def test_a_program_that_is_killed_leaves_it(tmp_path: Path) -> None:
    """For real: another process writes a lesson, and is killed."""
    script = tmp_path / "make.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from attention_explorer.recovery import autosaves\n"
        "from attention_explorer.session import kept_drafts\n"
        "from attention_explorer.session.lesson_drafts import Draft, DraftStep\n"
        "path = autosaves.own_path(autosaves.LESSON)\n"
        "path.parent.mkdir(parents=True, exist_ok=True)\n"
        "kept_drafts.save(kept_drafts.KeptDraft(Draft(title='Killed', steps=(DraftStep(title='One'),))), path)\n"
        "print('written', flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    assert left_behind(LESSON) == [], "it is at work"
    process.kill()
    process.communicate()
    with opened() as window:
        wait_until(offers(window))
        assert "“Killed”, 1 step" in window.contents.lesson_bar.text
