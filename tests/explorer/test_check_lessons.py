"""Every step of every lesson on the shipped weights, and that a lesson which says what is not so fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from explorer import app
from explorer.headless_lessons import checked
from explorer.session.shipped_lessons import shipped_lessons
from explorer.window.window import MainWindow
from tests.explorer.real_window import opened_window

LESSON = """
title = "L"
about = "About."
minutes = 1
[[step]]
title = "A"
say = "x"
CHECK
[step.show]
text = "Tom and Anna"
layer = 5
query = "QUERY"
panel = "PANEL"
[step.figures]
says = { kind = "next" }
[step.ask]
question = "Which?"
options = [{ say = "a", when = "says = 'was'" }, { say = "b", when = "WHEN" }]
"""


@pytest.fixture(scope="module")
def window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window(arrangement="flow") as window:
        yield window


@pytest.mark.parametrize("path", shipped_lessons(), ids=lambda path: path.stem)
def test_every_step_of_a_lesson_is_shown_and_what_it_says_is_so(window: MainWindow, path: Path) -> None:
    lines = list(checked(window, path))
    assert [line for line, wrong in lines if wrong] == []
    assert lines


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"CHECK": "check = [\"says = 'xyzzy'\"]"}, "is not so: says is"),
        ({"QUERY": "dog"}, "a token that it names is not in its text"),
        ({"PANEL": "moon"}, "line 13: step 1: there is no panel “moon”"),
        ({"WHEN": "says != 'xyzzy'"}, "of its options are right"),
    ],
)
def test_what_is_not_so_fails(window: MainWindow, tmp_path: Path, changes: dict[str, str], said: str) -> None:
    content = LESSON
    for name, value in {"CHECK": "", "QUERY": "Tom", "PANEL": "map", "WHEN": "says != 'was'", **changes}.items():
        content = content.replace(name, value)
    if "WHEN" in changes:
        content = content.replace("says = 'was'", "says != 'abc'")
    (tmp_path / "a.toml").write_text(content)
    (line,) = [line for line, wrong in checked(window, tmp_path / "a.toml") if wrong]
    assert said in line


def test_the_command_says_what_is_wrong_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.toml").write_text("title = 3")
    assert app.main(["--check-lessons", str(tmp_path / "a.toml")]) == 1
    assert "a.toml is no lesson that can be opened: line 1" in capsys.readouterr().err
