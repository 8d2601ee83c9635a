"""What the model wrote goes into the input: as the tokens that it chose, or with a word about it."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.intents import SetText, UseWritten
from attention_explorer.session.state import State
from tests.explorer.session.answers import TRANSLATING, after, loaded, ran, stepping, translation, translator

OPEN = after(State(), loaded(), ran())
WHOLE = "Tom and Anna went to"


def test_a_step_that_would_be_read_otherwise_writes_nothing_and_offers_to() -> None:
    asked, answer = stepping(WHOLE)
    misread = replace(answer, misread="is read as “toto”, not as “to”", ending="misread")
    told = after(OPEN, asked, misread)
    assert told.document == OPEN.document
    assert told.pending_step is None
    notice = told.notice
    assert notice is not None
    assert "“␣to” (68.4 %)" in notice.text
    assert "the text is read as “toto”, not as “to”" in notice.text
    assert notice.action_label == "Write it anyway"
    assert isinstance(notice.action, UseWritten)
    done = after(told, notice.action)
    assert done.document.text == WHOLE
    assert done.notice is None


def test_written_text_that_is_read_as_it_was_written() -> None:
    used = after(OPEN, UseWritten(WHOLE, (1, 1, 1, 1, 1)))
    assert used.document.text == WHOLE
    read = after(used, ran(2, WHOLE))
    assert read.notice is None
    assert read.expected == ()


def test_written_text_that_is_read_otherwise_says_from_where() -> None:
    read = after(OPEN, UseWritten(WHOLE, (1, 1, 1, 9, 9, 1)), ran(2, WHOLE))
    assert read.notice is not None
    assert "from “went” on (position 3): 5 instead of 6" in read.notice.text
    assert after(read, SetText("Tom")).notice is None


def test_another_text_meanwhile_was_not_written_by_the_model() -> None:
    read = after(OPEN, UseWritten(WHOLE, (9,)), SetText("Tom went"), ran(2, "Tom went"))
    assert read.notice is None


def test_a_translation_is_held_on_to_with_its_tokens() -> None:
    wrote = after(TRANSLATING, translator(), translation())
    held = after(wrote, UseWritten("El gato", (0, 1, 1)))
    assert held.document.target == "El gato"
    assert held.document.text == wrote.document.text
    assert after(held, translation(2, target="El gato")).notice is None
    told = after(held, translation(2, target="El gato", written="El ga to")).notice
    assert told is not None
    assert "4 instead of 3" in told.text
