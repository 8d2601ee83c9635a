"""How the model is to write is part of the document: chosen, undone, and what suits a model until it is chosen."""

from __future__ import annotations

import pytest

from attention_explorer.session.branches import Branches
from attention_explorer.session.intents import SetDecoding, SetStrategy, SetText
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, State
from attention_explorer.session.writing import Decoding, strategy_of
from attention_models.protocol.decoding import DecodeSettings
from tests.explorer.session import answers
from tests.explorer.session.answers import after


def test_a_strategy_keeps_every_number():
    state = after(State(), SetDecoding(Decoding(DecodeSettings(temperature=0.7, beams=2), 50, 3)), SetStrategy("beam"))
    expected = Decoding(DecodeSettings("beam", temperature=0.7, beams=2), 50, 3, chosen=True)
    assert state.document.decoding == expected
    assert after(state, SetStrategy("beam")) is state


def test_typing_a_number_is_one_step_of_undo_and_choosing_a_strategy_another():
    session = Session(State(Document(text="a b")), clock=lambda: 0.0)
    session.dispatch(SetStrategy("sample"))
    for steps in (2, 25, 250):
        session.dispatch(SetDecoding(Decoding(DecodeSettings("sample"), steps, chosen=True)))
    session.dispatch(SetText("a c"))
    session.undo()
    assert session.state.document.decoding.steps == 250
    session.undo()
    assert session.state.document.decoding == Decoding(DecodeSettings("sample"), chosen=True)
    session.undo()
    assert session.state.document.decoding == Decoding()
    session.redo()
    session.redo()
    assert session.state.document.decoding.steps == 250


@pytest.mark.parametrize(("chosen", "expected"), [(False, "beam"), (True, "greedy")])
def test_a_translator_searches_unless_a_person_chose_otherwise(chosen, expected):
    info = answers.translator().info
    decoding = Decoding(chosen=chosen)
    assert strategy_of(decoding, info, Branches()) == expected
    assert strategy_of(decoding, info, Branches().grow(3, "x", -1.0)) == "greedy"  # what was written comes first
    assert strategy_of(decoding, answers.loaded().info, Branches()) == "greedy"
    assert strategy_of(decoding, None, Branches()) == "greedy"


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [((0, 1), "0 steps are not offered: 1 to 1,000."), ((20, 9), "9 samples are not offered: 1 to 8.")],
)
def test_what_is_not_offered_is_said(numbers, sentence):
    with pytest.raises(ValueError, match=sentence):
        Decoding(DecodeSettings(), *numbers)
