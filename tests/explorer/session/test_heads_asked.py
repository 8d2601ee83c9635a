"""What all heads are asked, coloured by and marked with is a choice like others: undone, redone and saved."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from attention_explorer.session import files
from attention_explorer.session.intents import Arrived, AskHeads, ColourByRole, SetAboveEven, SetBadges, SetText
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, HeadsAsked, State
from attention_models.protocol.roles import HeadQuestion
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers

SITE = SiteRef("decoder", 5)
CELL = HeadQuestion("cell", SITE, 5, 3, 1)
PAINTED = HeadQuestion("painted", SITE, cells=((3, 1), (2, 0)))
ASKED = [
    HeadsAsked(),
    HeadsAsked(CELL, above_even=True),
    HeadsAsked(HeadQuestion("row", SITE, 5, 3)),
    HeadsAsked(HeadQuestion("column", SITE, 5, 0, 2), badges=True),
    HeadsAsked(PAINTED),
    HeadsAsked(HeadQuestion("induction")),
    HeadsAsked(role="nsubj-to-head", badges=True),
]


@pytest.fixture
def session() -> Session:
    return Session(answers.after(State(), answers.loaded(), answers.ran()))


def test_each_choice_is_one_step_of_undo(session: Session) -> None:
    seen = [session.state.document.heads]
    for intent in (
        AskHeads(CELL),
        SetAboveEven(True),
        AskHeads(HeadQuestion("previous")),
        SetBadges(True),
        ColourByRole("breadth"),
        AskHeads(None),
    ):
        session.dispatch(intent)
        seen.append(session.state.document.heads)
    assert seen[5] == HeadsAsked(role="breadth", badges=True, above_even=True)  # in the place of the question
    assert seen[6] == HeadsAsked(badges=True, above_even=True)
    for heads in reversed(seen[:-1]):
        session.undo()
        assert session.state.document.heads == heads
    for heads in seen[1:]:
        session.redo()
        assert session.state.document.heads == heads


def test_asking_the_same_again_is_no_step(session: Session) -> None:
    session.dispatch(AskHeads(CELL))
    before = session.steps
    session.dispatch(AskHeads(CELL))
    assert session.steps == before


def test_a_role_that_there_is_not_is_refused(session: Session) -> None:
    with pytest.raises(ValueError, match="There is no role “barks”"):
        session.dispatch(ColourByRole("barks"))


def test_cells_of_a_text_are_asked_about_again_when_it_is_undone_to(session: Session) -> None:
    session.dispatch(AskHeads(CELL))
    first = session.state.ran
    assert first is not None
    session.dispatch(SetText("Other words"))
    other = replace(first, tokens=first.tokens[:-1], request=replace(first.request, inputs=session.state.inputs))
    session.dispatch(Arrived(other))
    assert session.state.question is None
    session.undo()
    session.dispatch(Arrived(first))
    assert session.state.question == CELL


@pytest.mark.parametrize("heads", ASKED)
def test_a_session_file_holds_it(heads: HeadsAsked) -> None:
    document = Document(text="Tom", heads=heads)
    content = files.encode(document)
    assert files.decode(content).heads == heads
    assert ("heads" in json.loads(content)) == (heads != HeadsAsked())


@pytest.mark.parametrize(
    ("heads", "sentence"),
    [
        ({"role": "barks"}, "there is no role “barks”"),
        ({"question": {"kind": "barks"}}, "There is no question “barks”"),
        ({"question": {"kind": "cell"}}, "names the site"),
        ({"question": {"kind": "painted", "site": {"stack": "decoder", "layer": 0}, "cells": [[-1, 0]]}}, ">= 0"),
        ({"barks": True}, "unknown field"),
    ],
)
def test_a_file_that_asks_what_cannot_be_is_refused(heads: dict[str, object], sentence: str) -> None:
    content = {**json.loads(files.encode(Document(text="Tom"))), "heads": heads}
    with pytest.raises(ValueError, match=sentence):
        files.decode(json.dumps(content).encode())


def test_cells_that_the_run_of_a_file_has_not_are_forgotten(session: Session) -> None:
    far = HeadsAsked(HeadQuestion("cell", SITE, 5, 400, 1))
    state = replace(session.state, document=replace(session.state.document, heads=far), restored=True)
    first = state.ran
    assert first is not None
    assert Session(answers.after(state, first)).state.question is None
