"""Every step of every lesson on the shipped weights, and that a lesson which says what is not so fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from attention_explorer import app
from attention_explorer.cli.lessons import beside_lessons, checked, gone_through
from attention_explorer.session.lesson_files import shipped_lessons
from attention_explorer.session.lessons import OpenLesson
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import opened_window

BESIDE = list(beside_lessons())

WITHOUT_LIBRARIES = """
import sys
from importlib.abc import MetaPathFinder

class Bare(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("PySide6.QtGui", "PySide6.QtWidgets"):
            raise ImportError("libGL.so.1: cannot open shared object file: No such file or directory")

sys.meta_path.insert(0, Bare())
from attention_explorer import app
sys.exit(app.main(["--check-lessons"]))
"""

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


def test_without_the_libraries_of_a_window_it_says_that_it_needs_one() -> None:
    ended = subprocess.run([sys.executable, "-c", WITHOUT_LIBRARIES], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "puts each step in a window that nobody sees, which needs Qt's libraries. The " in ended.stderr
    assert "libGL.so.1" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.fixture(scope="module")
def window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window(arrangement="flow") as window:
        yield window


@pytest.mark.short("05-masks")
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


START = ", ".join(f"[{row}, 0, true]" for row in range(14))
OTHERS = ", ".join(
    f'{{ kind = "skip", part = "head", stack = "encoder", layer = {layer}, unit = {head} }}'
    for layer in range(6)
    for head in range(8)
    if (layer, head) != (2, 0)
)
WINDOW = f"""
[[step]]
title = "A window"
say = "Here each token sees itself and the five before it; “Tom” is out of reach."
BECAUSE
[step.show]
text = "Tom and Anna went to the park. Anna gave the ball to"
layer = 5
head = 5
query = "to"
query_place = 2
panel = "next"
interventions = [{{ kind = "mask", mask = "window", window = 6 }}]
[step.figures]
says = {{ kind = "next" }}
changed = {{ kind = "next", interventions = [{{ kind = "mask", mask = "painted", cells = [{START}] }}] }}
"""
GRAMMAR = """
[[step]]
title = "Grammar"
say = "Here the head that attends to the token before is all that it takes."
BECAUSE
[step.show]
checkpoint = "story-bert"
text = "The cats [MASK] sleeping on the bed."
stack = "encoder"
layer = 2
query = "[MASK]"
panel = "next"
[step.figures]
says = { kind = "next" }
changed = { kind = "next", interventions = [CHANGED] }
"""
WITHOUT = '{ kind = "skip", part = "head", stack = "encoder", layer = 2, unit = 0 }'


@pytest.mark.parametrize(
    ("step", "says", "found"),
    [
        (WINDOW, "out of reach", "changed is 'Tom', says is 'Anna'"),  # with the start token it is Tom, out of reach
        (GRAMMAR.replace("CHANGED", OTHERS), "all that it takes", "changed is ',', says is 'are'"),
        (GRAMMAR.replace("CHANGED", WITHOUT), "all that it takes", "changed is 'are', says is 'are'"),
    ],
)
def test_a_cause_that_an_intervention_belies_fails(
    window: MainWindow, tmp_path: Path, step: str, says: str, found: str
) -> None:
    beginning = 'title = "L"\nabout = "A."\nminutes = 1\n'
    holds = "changed = says" if "is 'are', says" not in found else "changed != says"
    because = f'because = [{{ says = "{says}", holds = ["{holds}"] }}]'
    (tmp_path / "silent.toml").write_text(beginning + step.replace("BECAUSE", ""))
    ((line, wrong),) = checked(window, tmp_path / "silent.toml")
    assert wrong
    assert "it says why, and no because shows it: “Here" in line
    (tmp_path / "shown.toml").write_text(beginning + step.replace("BECAUSE", because))
    ((line, wrong),) = checked(window, tmp_path / "shown.toml")
    assert wrong
    assert f"it says “{says}”, but “{holds}” is not so: {found}" in line


@pytest.mark.full
@pytest.mark.parametrize(("name", "opened"), BESIDE, ids=lambda value: value if isinstance(value, str) else "")
def test_what_examples_and_the_tour_say_of_causes_is_so(window: MainWindow, name: str, opened: OpenLesson) -> None:
    lines = list(gone_through(window, name, opened))
    assert [line for line, wrong in lines if wrong] == []
    assert lines


@pytest.mark.full
def test_the_command_says_what_is_wrong_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.toml").write_text("title = 3")
    assert app.main(["--check-lessons", str(tmp_path / "a.toml")]) == 1
    assert "a.toml is no lesson that can be opened: line 1" in capsys.readouterr().err
