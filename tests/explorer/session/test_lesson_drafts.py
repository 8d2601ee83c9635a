"""Lessons that are being made: what is complete, what becomes of it in a file, and what undo brings back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session import lesson_files
from attention_explorer.session.kept import KeptState, Screen
from attention_explorer.session.lesson_drafts import STANDING, Draft, DraftAsk, Drafting, DraftStep, captured
from attention_explorer.session.lesson_files import LessonError, shipped_lessons
from attention_explorer.session.lessons import MOST_STEPS
from attention_explorer.session.state import CorpusChoice, Document

STATE = KeptState(Document(text="Tom and Anna"), screen=Screen(("map",), ("map",), {"map": {}}))


def step(title: str, **parts: object) -> DraftStep:
    return DraftStep(title=title, state=STATE, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", shipped_lessons(), ids=lambda path: path.stem)
def test_a_lesson_that_is_not_changed_stays_what_it_was(path) -> None:
    opened = lesson_files.load(path)
    assert Draft.of(opened).opened() == opened


def test_states_follow_their_steps() -> None:
    other = replace(STATE, document=Document(text="Anna"))
    draft = Draft(steps=(step("A"), replace(step("B"), state=other), DraftStep(title="C"))).moved(0, 2)
    opened = draft.opened()
    assert [(s.title, s.state) for s in opened.lesson.step] == [("B", 1), ("C", None), ("A", 2)]
    assert [(state.name, state.document.text) for state in opened.states] == [("B", "Anna"), ("A", "Tom and Anna")]


def test_figures_are_those_that_are_named() -> None:
    ask = DraftAsk(question="Is it {weight}?", options=(("A", "peak = 'Tom'"), ("B", "heads > 3")), reveal="{entropy}")
    opened = Draft(steps=(step("A", say="{next_probability}", ask=ask),)).opened()
    figures = opened.lesson.step[0].figures
    assert {name: figure.kind for name, figure in figures.items()} == {
        name: STANDING[name] for name in ("next_probability", "weight", "peak", "heads", "entropy")
    }


@pytest.mark.parametrize(
    ("draft", "at", "said"),
    [
        (Draft(), 0, "it has no step yet"),
        (Draft(steps=(step("A"), step(""))), 2, "step 2: it has no title"),
        (Draft(steps=(DraftStep(title=""),)), 1, "step 1: it has no title"),
        (Draft(steps=(step("A", say="{mood}"),)), 1, "step 1: there is no figure “mood”"),
        (Draft(steps=(step("A", ask=DraftAsk()),)), 1, "answer A of its question says nothing"),
        (Draft(steps=(step("A", ask=DraftAsk(options=(("x", "y = 1"), ("z", ""))),),)), 1, "answer B of its question"),
        (Draft(steps=(step("A", ask=DraftAsk(options=(("x", "1"), ("z", "2"))),),)), 1, "is no statement"),
        (Draft(steps=(step("A", ask=DraftAsk(way="word", figure="next")),)), 1, "its question asks nothing yet"),
        (Draft(steps=(DraftStep(title="A", point="cell"),)), 1, "shows nothing"),
        (Draft(steps=(step("A", point="panel"),)), 1, "the panel of a scene"),
        (Draft(title="", steps=(step("A"),)), 0, "the lesson has no title"),
        (Draft(steps=(step("A", text_size=40.0),)), 1, "text size"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_with_its_step(draft: Draft, at: int, said: str) -> None:
    with pytest.raises(LessonError) as caught:
        draft.opened()
    assert said in str(caught.value)
    assert caught.value.step == at


def test_there_are_so_many_steps_and_no_more() -> None:
    draft = Draft(steps=tuple(step(f"S{i}") for i in range(MOST_STEPS)))
    with pytest.raises(ValueError, match="Delete one first"):
        draft.added(0, step("One more"))
    assert len(draft.opened().lesson.step) == MOST_STEPS


def test_what_only_ones_own_session_has_is_no_part_of_a_step() -> None:
    document = Document(corpus=CorpusChoice("/home/somebody/a.txt"), probe="/home/somebody/b.txt")
    state = replace(STATE, document=document, name="Mine", extra=(("later", b"1"),))
    assert captured(state).document == Document()
    assert (captured(state).name, captured(state).extra) == ("", ())
    with pytest.raises(ValueError, match="no file of texts"):
        captured(replace(state, screen=replace(STATE.screen, front=("corpus",))))
    with pytest.raises(ValueError, match="no checkpoint that a lesson may name"):
        captured(replace(STATE, document=Document(checkpoint="/home/somebody/model")))


def test_a_step_has_the_picture_or_the_text_that_its_model_reads() -> None:
    both = Document(checkpoint="vit-quickdraw", text="Tom and Anna went", picture="sample:fish-1", chat=False)
    seen = captured(replace(STATE, document=both), "vision").document
    assert (seen.text, seen.picture) == ("", "sample:fish-1")
    read = captured(replace(STATE, document=replace(both, checkpoint="story-gpt")), "causal").document
    assert (read.text, read.picture) == ("Tom and Anna went", "")


def test_undo_takes_back_what_belongs_together() -> None:
    drafting = Drafting(Draft())
    for title in ("T", "Th", "The"):
        drafting.change(replace(drafting.draft, title=title), "title")
    drafting.change(drafting.draft.added(0, step("A")))
    drafting.undo()
    assert (drafting.draft.title, drafting.draft.steps) == ("The", ())
    drafting.undo()
    assert drafting.draft == Draft()
    drafting.undo()  # there is nothing more
    assert drafting.draft == Draft()
    drafting.redo()
    drafting.redo()
    assert drafting.draft.steps == (step("A"),)
    drafting.undo()
    drafting.change(replace(drafting.draft, title="Other"))
    drafting.redo()  # what was undone is forgotten
    assert drafting.draft.title == "Other"
