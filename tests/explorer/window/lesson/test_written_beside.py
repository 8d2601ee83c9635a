"""A lesson that somebody writes with a text editor while it is open in the window."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.session import lesson_files
from attention_explorer.session.lessons import OpenLesson
from attention_explorer.session.state import Notice
from attention_explorer.window.lesson.guide import LessonGuide
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import EXAMPLE, back_to_start, opened_window, settle, wait_until

STEP = f"""
[[step]]
title = "TITLE"
say = "SAID"
[step.show]
text = "{EXAMPLE}"
[step.figures]
peak = {{ kind = "peak" }}
[step.ask]
question = "ASKED"
word = "peak"
"""
LESSON = 'title = "Trial"\nabout = "For a test."\nminutes = 1\n' + "".join(
    STEP.replace("TITLE", title).replace("SAID", f"First {title}") for title in ("One", "Two")
)


@pytest.fixture(scope="module")
def opened(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window(arrangement="heads") as window:
        _ = window.lessons.making
        yield window


@pytest.fixture(params=["trial.toml", "trial.lesson"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Text in both: an editor opens a file by what it is, and not by its name."""
    path = tmp_path / str(request.param)
    path.write_text(LESSON)
    return path


@pytest.fixture
def window(opened: MainWindow, path: Path) -> Iterator[MainWindow]:
    back_to_start(opened)
    opened.lessons.begin(path)
    wait_until(lambda: opened.lessons.guide is not None)
    arrive(opened)
    yield opened
    opened.lessons.end()
    settle(opened)


def guide_of(window: MainWindow) -> LessonGuide:
    assert window.lessons.guide is not None
    return window.lessons.guide


def arrive(window: MainWindow) -> None:
    wait_until(lambda: guide_of(window).is_settled and window.is_settled())


def said(window: MainWindow) -> str:
    return guide_of(window).column.text.toPlainText()


def says(window: MainWindow, text: str) -> bool:
    return said(window) == text


def notice(window: MainWindow) -> Notice | None:
    return window.session.state.notice


def put_in_its_place(path: Path, text: str) -> None:
    """As many editors save: another file is written, and takes the name."""
    beside = path.with_name("written beside")
    beside.write_text(text)
    os.replace(beside, path)


@pytest.mark.short("trial.toml")
def test_it_goes_on_at_the_same_step_with_its_answers(window: MainWindow, path: Path) -> None:
    guide = guide_of(window)
    guide.column.question.word.setText("Tom")
    QTest.mouseClick(guide.column.question.reveal, Qt.MouseButton.LeftButton)
    guide.go_on()
    arrive(window)
    writes: tuple[Callable[[Path, str], object], ...] = (Path.write_text, put_in_its_place)
    for number, write in enumerate((*writes, *writes)):
        write(path, LESSON.replace("First Two", f"Now {number}"))
        wait_until(partial(says, window, f"Now {number}"))
        arrive(window)
    assert guide_of(window).at == 1
    assert set(guide_of(window).answers) == {0}
    path.write_text(LESSON.replace("ASKED", "Asked otherwise"))  # to which nobody has answered
    wait_until(lambda: not guide_of(window).answers)


def test_a_fault_is_said_with_its_line_and_the_last_good_one_stays(window: MainWindow, path: Path) -> None:
    guide = guide_of(window)
    wrong = LESSON.replace('question = "ASKED"', "question = 3", 1)
    line = wrong[: wrong.index("question = 3")].count("\n") + 1
    put_in_its_place(path, wrong)
    wait_until(lambda: notice(window) is not None)
    said_of = notice(window)
    assert said_of is not None
    assert said_of.kind == "error"
    assert f"{path.name} is no lesson that can be opened: line {line}: step 1, ask.question" in said_of.text
    assert window.lessons.guide is guide
    assert said(window) == "First One"
    path.write_text(LESSON.replace("First One", "Mended"))
    wait_until(lambda: said(window) == "Mended")
    arrive(window)
    assert notice(window) is None


def test_a_file_that_is_gone_for_a_moment_is_read_when_it_is_back(window: MainWindow, path: Path) -> None:
    path.unlink()
    QTest.qWait(400)
    assert said(window) == "First One"
    assert notice(window) is None
    path.write_text(LESSON.replace("First One", "Back"))
    wait_until(lambda: said(window) == "Back")


def test_what_is_written_beside_the_editor_is_read_unless_something_would_be_lost(
    opened: MainWindow, tmp_path: Path
) -> None:
    back_to_start(opened)
    making, path = opened.lessons.making, tmp_path / "mine.lesson"
    making.begin()
    making.add()
    mine = making.draft.opened()

    def write(title: str) -> None:
        lesson_files.save(OpenLesson(replace(mine.lesson, title=title), mine.states), path)

    assert making.write(path)
    write("Other")
    wait_until(lambda: making.column.title.text() == "Other")
    QTest.keyClicks(making.column.title, "s")
    write("Third")
    wait_until(lambda: (said_of := notice(opened)) is not None and "by another program" in said_of.text)
    assert making.column.title.text() == "Others"
    QTest.mouseClick(making.column.save, Qt.MouseButton.LeftButton)
    assert lesson_files.load(path).lesson.title == "Others"
    making.close()
    assert not making.is_on


def test_a_faulty_file_is_not_taken_into_the_editor(opened: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(LESSON.replace("minutes = 1", "minutes = 'x'"))
    opened.lessons.making.open_path(tmp_path / "bad.toml")
    words = "bad.toml is no lesson that can be opened: line 3: minutes"
    wait_until(lambda: (said_of := notice(opened)) is not None and words in said_of.text)
    assert not opened.lessons.is_making
