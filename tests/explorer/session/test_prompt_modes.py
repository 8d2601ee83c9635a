"""Conversations in the document: switched on and off, typed, undone, and taken to models that have no template."""

from __future__ import annotations

import pytest

from attention_explorer.session.intents import Arrived, OpenCheckpoint, SayInTurn, SetChat, SetText, SetTurns
from attention_explorer.session.reduce import reduce
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, Notice, State
from attention_models.protocol.chat import MOST_TURNS, Chat, Turn
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from tests.explorer.session import answers

TURNS = (Turn("system", "Be brief."), Turn("user", "Who is Tom?"), Turn("assistant", "A boy."))
PLAIN = "Be brief.\n\nWho is Tom?\n\nA boy."


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def session() -> Session:
    """With a model open that converses, and its example read."""
    session = Session(State(Document(text="Tom")), clock=Clock())
    session.dispatch(Arrived(answers.loaded(chat=True)))
    return session


def read(session: Session) -> Prompt:
    return session.state.document.prompt


def turns(session: Session) -> tuple[Turn, ...]:
    return session.state.document.turns


def notice(session: Session) -> Notice | None:
    return session.state.notice


def told(session: Session) -> str:
    found = notice(session)
    return "" if found is None else found.text


def asked(session: Session) -> list[object]:
    requests: list[object] = []
    session.requested.connect(requests.append)
    return requests


def test_the_text_becomes_what_the_user_says_and_runs(session: Session) -> None:
    requests = asked(session)
    session.dispatch(SetChat(True))

    assert read(session) == Chat((Turn("user", "Tom"),))
    assert requests == [ForwardRequest(inputs=RunInputs(Chat((Turn("user", "Tom"),))))]
    session.dispatch(Arrived(answers.ran(1, Chat((Turn("user", "Tom"),)))))
    assert session.state.up_to_date


def test_back_and_forth_loses_nothing(session: Session) -> None:
    session.dispatch(SetTurns(TURNS))
    session.dispatch(SetChat(False))
    assert read(session) == PLAIN
    session.dispatch(SetChat(True))
    assert read(session) == Chat(TURNS)
    session.dispatch(SetChat(False))
    session.dispatch(SetText("Another text"))
    session.dispatch(SetChat(True))
    assert read(session) == Chat((Turn("user", "Another text"),))


def test_typing_in_a_turn_is_one_step(session: Session) -> None:
    session.dispatch(SetTurns(TURNS))
    session.dispatch(SetTurns(TURNS[:2]))
    for text in ("W", "Wh", "Why"):
        session.dispatch(SayInTurn(1, text))
    assert turns(session) == (TURNS[0], Turn("user", "Why"))
    session.undo()
    assert turns(session) == TURNS[:2]
    session.undo()
    assert turns(session) == TURNS
    session.redo()
    session.redo()
    assert turns(session) == (TURNS[0], Turn("user", "Why"))


def test_a_model_without_a_template_reads_the_words(session: Session) -> None:
    session.dispatch(SetTurns(TURNS))
    session.dispatch(OpenCheckpoint("b"))
    assert session.state.document.chat  # what is open still reads them
    session.dispatch(Arrived(answers.loaded("b", "An example")))
    assert read(session) == PLAIN
    assert told(session) == "b has no chat template: it reads what the turns say as plain text."
    session.dispatch(OpenCheckpoint("c"))
    session.dispatch(Arrived(answers.loaded("c", "", chat=True)))
    session.dispatch(SetChat(True))
    assert read(session) == Chat(TURNS)
    assert told(session) == ""


def test_undo_of_a_checkpoint_brings_the_conversation_back(session: Session) -> None:
    session.dispatch(SetTurns(TURNS))
    session.dispatch(OpenCheckpoint("b"))
    session.dispatch(Arrived(answers.loaded("b", "An example")))
    session.undo()
    session.dispatch(Arrived(answers.loaded(chat=True)))
    assert read(session) == Chat(TURNS)


def test_another_model_that_converses_reads_the_conversation(session: Session) -> None:
    session.dispatch(SetTurns(TURNS))
    session.dispatch(OpenCheckpoint("b"))
    session.dispatch(Arrived(answers.loaded("b", "An example", chat=True)))
    assert read(session) == Chat(TURNS)


def test_a_step_goes_into_the_assistants_turn(session: Session) -> None:
    session.dispatch(SetTurns(TURNS[:2]))
    session.dispatch(Arrived(answers.ran(3, Chat(TURNS[:2]))))
    longer = Chat(TURNS[:2]).said("A")
    press, view = answers.stepping(longer, RunInputs(Chat(TURNS[:2])))
    session.dispatch(press)
    session.dispatch(Arrived(view))
    assert read(session) == longer
    session.undo()
    assert read(session) == Chat(TURNS[:2])


def test_a_refused_conversation_is_not_tried_again(session: Session) -> None:
    session.dispatch(SetTurns(TURNS))
    requests = asked(session)
    failure = Failure(request=ForwardRequest(inputs=RunInputs(Chat(TURNS))), sentence="Roles must alternate.")
    session.dispatch(Arrived(failure))
    assert notice(session) == Notice("error", "Roles must alternate.", lane=ForwardRequest.lane)
    assert requests == []
    session.dispatch(SetTurns(TURNS[:2]))
    assert notice(session) is None
    assert requests == [ForwardRequest(inputs=RunInputs(Chat(TURNS[:2])))]


def test_turns_are_bounded(session: Session) -> None:
    for many in ((), TURNS * MOST_TURNS):
        with pytest.raises(ValueError, match=f"1 to {MOST_TURNS}"):
            reduce(session.state, SetTurns(many))
    with pytest.raises(ValueError, match="no turn 0"):
        reduce(session.state, SayInTurn(0, "x"))


def test_the_tree_of_a_conversation_is_its_own(session: Session) -> None:
    plain = session.state.document.origin
    session.dispatch(SetChat(True))
    assert session.state.document.origin != plain
