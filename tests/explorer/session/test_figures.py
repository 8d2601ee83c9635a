"""Sentences on causes: which they are, and that each that comes along has what shows it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import attention_explorer as ax
from attention_explorer.cli.lessons import beside_lessons
from attention_explorer.session.figures import Because, Figure, check_reasons, names_a_cause, unshown
from attention_explorer.session.lesson_files import LessonError, decode_toml, load, shipped_lessons
from attention_explorer.session.lessons import OpenLesson

SHIPPED = [*((path.stem, load(path)) for path in shipped_lessons()), *beside_lessons()]
PLAIN = Figure(kind="next")


@pytest.mark.parametrize(
    "sentence",
    [
        "Here each token sees itself and the five before it; “Tom” is out of reach.",
        "The head that attends to the token before is all that it takes.",
        "Here that is “cats”, so the verb is “are”.",
        "“Tom” falls from 68 % to 37 %, by one cell in one of 64 heads.",
        "It is “Tom” again, through stacked layers.",
        "The answer changes because the tokens before it did.",
        "BERT filled in “ate”, for it saw “food”.",
    ],
)
def test_a_sentence_that_says_why_is_found(sentence: str) -> None:
    assert names_a_cause(sentence)
    assert unshown(["It is so.", f"Look. {sentence} And now?"], ()) == (sentence,)
    assert unshown([sentence], [Because(says=sentence[5:-1], holds=("a = 1",))]) == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "A recurrent translator reads word by word.",
        "Divided by √512 the same scores give 0.2.",
        "What the heads read is multiplied by one matrix, **W_O**.",
        "The states follow one another, one by one.",
        "Lessons are 10 minutes long.",
    ],
)
def test_how_something_is_computed_is_no_cause(sentence: str) -> None:
    assert not names_a_cause(sentence)


@pytest.mark.parametrize(("name", "opened"), SHIPPED, ids=lambda value: value if isinstance(value, str) else "")
def test_every_sentence_on_a_cause_that_comes_along_has_what_shows_it(name: str, opened: OpenLesson) -> None:
    assert name
    for step in opened.lesson.step:
        assert unshown(step.texts, step.because) == ()


def test_what_panels_say_names_no_cause_that_nothing_shows() -> None:
    said = re.compile(r"\b(?:because|thanks to|due to|that is why|out of reach|all (?:that )?it (?:takes|needs))\b")
    found = []
    for path in (Path(ax.__file__).parent / "panels").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings among them
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                found += [(path.name, node.value)] if said.search(node.value) else []
    assert found == []


@pytest.mark.parametrize(
    ("figures", "holds", "changed", "said"),
    [
        ({"a": PLAIN}, "a = 'Tom'", False, "nothing shows"),
        ({"a": Figure(kind="next", unchanged=True)}, "a = 'Tom'", False, "nothing shows"),
        ({"a": PLAIN}, "b = 'Tom'", True, "there is no figure “b”"),
    ],
)
def test_a_reason_needs_a_run_that_differs(figures: dict[str, Figure], holds: str, changed: bool, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_reasons((Because(says="It is so", holds=(holds,)),), ("It is so.",), figures, changed=changed)


def test_a_reason_may_be_another_run() -> None:
    reason = (Because(says="It is\nso", holds=("a = 'Tom'",)),)
    for figure, changed in (
        (Figure(kind="next", text="Sam"), False),
        (Figure(kind="next", unchanged=True), True),
        (Figure(kind="moved"), False),
    ):
        check_reasons(reason, ("Look. It is so.",), {"a": figure}, changed=changed)
    with pytest.raises(ValueError, match="does not say that"):
        check_reasons(reason, ("Look.",), {"a": Figure(kind="moved")}, changed=False)


def test_interventions_of_a_figure_are_checked_with_the_file() -> None:
    lesson = """
title = "L"
about = "A."
minutes = 1
[[step]]
title = "S"
say = "x"
[step.figures]
a = { kind = "KIND", interventions = [{ kind = "skip", part = "PART", stack = "decoder", layer = 5, unit = 5 }] }
"""
    (step,) = decode_toml(lesson.replace("KIND", "next").replace("PART", "head").encode()).step
    assert step.figures["a"].intervenes
    for kind, part, said in (("layers", "head", "without further interventions"), ("next", "tail", "no part “tail”")):
        with pytest.raises(LessonError, match=said):
            decode_toml(lesson.replace("KIND", kind).replace("PART", part).encode())


def test_notes_have_figures_and_keep_other_braces() -> None:
    lesson = 'title = "L"\nabout = "A."\nminutes = 1\n[[step]]\ntitle = "S"\nsay = "x"\nnotes = "{a} {b}"\n'
    (step,) = decode_toml((lesson + '[step.figures]\na = { kind = "next" }\n').encode()).step
    assert step.noted({}) == "… {b}"
    assert step.noted({"a": "Tom"}) == "Tom {b}"
