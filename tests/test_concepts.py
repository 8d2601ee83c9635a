"""The table of concepts: every lesson, step and panel that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attention_explorer.panels.registry import TITLES
from attention_explorer.paths import resource
from attention_explorer.session.lesson_files import load, shipped_lessons

TABLE = Path(__file__).parent.parent / "docs" / "concepts.md"
ROWS = [
    tuple(cell.strip() for cell in line.strip("|\n ").split(" | "))
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| concept")
]


def test_every_concept_of_the_teaching_texts_has_a_row() -> None:
    assert len(ROWS) == 54
    assert len({concept for concept, _ in ROWS}) == 54


@pytest.mark.parametrize(("concept", "shown"), ROWS, ids=lambda text: text[:30])
def test_what_shows_a_concept_is_there(concept: str, shown: str) -> None:
    if shown == "to come":
        return
    lessons = shipped_lessons()
    for place in shown.split("; "):
        lesson = re.fullmatch(r"lesson (\d+), “(.+)”", place)
        panel = re.fullmatch(r"panel (.+)", place)
        if lesson is not None:
            path = lessons[int(lesson[1]) - 1]
            assert path.name.startswith(f"{int(lesson[1]):02}-")
            assert lesson[2] in {step.title for step in load(path).lesson.step}
        else:
            assert panel is not None, place
            assert panel[1] in TITLES.values()


def test_all_but_the_efficient_variants_can_be_shown_today() -> None:
    assert [concept for concept, shown in ROWS if shown == "to come"] == ["Linformer, Performer"]


def test_twelve_lessons_of_five_to_fifteen_minutes_each_ask() -> None:
    lessons = [load(path).lesson for path in shipped_lessons()]
    assert len(lessons) == 12
    for lesson in lessons:
        assert 5 <= lesson.minutes <= 15
        asking = [step for step in lesson.step if step.ask is not None or step.check]
        assert len(asking) * 2 > len(lesson.step), lesson.title
        assert sum(step.ask is not None for step in lesson.step) >= 3, lesson.title
        assert all(step.notes for step in lesson.step), lesson.title


def test_every_experiment_that_a_lesson_names_is_there() -> None:
    titles = re.findall(r'^title = "(.+)"$', resource("experiments.toml").read_text(encoding="utf-8"), re.MULTILINE)
    named = [
        name
        for path in shipped_lessons()
        for step in load(path).lesson.step
        for name in re.findall(r"Experiments > “([^”]+)”", step.notes)
    ]
    assert len(named) > 5
    assert set(named) <= set(titles)
