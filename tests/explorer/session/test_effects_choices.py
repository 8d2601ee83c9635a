"""What is asked in Effects: undone, redone, and let go of with the model whose answers it names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.effects_choices import Answer, EffectsChoices
from attention_explorer.session.intents import Arrived, AskEffects, OpenCheckpoint, RestoreDocument
from attention_explorer.session.state import State
from attention_models.protocol.effects import Metric
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession

ASKED = EffectsChoices(target=Answer("␣Tom", 5), against=Answer("␣Ben"), other="Tom and Ben went", followed=Answer("a"))


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


def test_each_question_is_a_step_that_is_undone_and_redone(session):
    session.dispatch(AskEffects(replace(EffectsChoices(), target=ASKED.target)))
    session.dispatch(AskEffects(ASKED))
    session.undo()
    assert session.state.document.effects == EffectsChoices(target=ASKED.target)
    session.undo()
    assert session.state.document.effects == EffectsChoices()
    assert not session.can_undo
    session.redo()
    session.redo()
    assert session.state.document.effects == ASKED


def test_the_same_question_again_is_no_step(session):
    session.dispatch(AskEffects(EffectsChoices()))
    assert not session.can_undo


@pytest.mark.parametrize(("reference", "kept"), [("story-next", False), ("story-gpt", True)])
def test_answers_are_let_go_with_their_model(session, reference, kept):
    session.dispatch(AskEffects(ASKED))
    session.dispatch(OpenCheckpoint(reference))
    session.dispatch(Arrived(answers.loaded(reference)))
    assert session.state.document.effects == (ASKED if kept else ASKED.without_answers())
    assert session.state.document.effects.other == "Tom and Ben went"


def test_answers_of_a_document_that_comes_whole_stay(session):
    document = replace(session.state.document, checkpoint="story-next", effects=ASKED)
    session.dispatch(RestoreDocument(document))
    session.dispatch(Arrived(answers.loaded("story-next")))
    assert session.state.document.effects == ASKED


def test_an_aim_is_of_what_was_chosen_by_its_id_and_of_what_was_typed_as_words():
    assert ASKED.aim(3) == Metric(measure="difference", position=3, target=5, against=" Ben")
    assert EffectsChoices().aim(3) == Metric(position=3)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: EffectsChoices(epsilon=0.0), "an answer cannot move by 0"),
        (lambda: EffectsChoices(texts=("a" * 5000, "")), "a text of Effects has 5,000 characters, and 4,096 are taken"),
        (lambda: Answer("a", -1), "no answer has the number -1"),
    ],
)
def test_what_cannot_be_asked_is_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        wrong()
