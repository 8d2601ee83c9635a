"""A second text in the document: when it is read, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.intents import SetChat, SetPair, SetSecond, SetText
from attention_explorer.session.reduce import reduce
from attention_explorer.session.result_rules import arrive
from attention_explorer.session.session import effects
from attention_explorer.session.state import Document, State
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from tests.explorer.session import answers


def opened(**named: object) -> State:
    document = Document(checkpoint="story-gpt", text="Tom ran.", **named)  # type: ignore[arg-type]
    return answers.after(State(document), answers.loaded(pairs=True))


def test_it_is_read_with_the_text_once_it_says_something() -> None:
    state = opened()
    for second, prompt in ((None, "Tom ran."), ("", "Tom ran."), (" ", "Tom ran."), ("So", Pair("Tom ran.", "So"))):
        state = reduce(state, SetSecond(second))
        assert state.document.prompt == prompt
        assert state.document.second == second


def test_typing_it_runs_both_and_an_empty_field_runs_nothing_anew() -> None:
    before = opened()
    empty = reduce(before, SetSecond(""))
    assert effects(before, empty) == ()
    asked = effects(empty, reduce(empty, SetSecond("So did Anna.")))
    assert asked == (ForwardRequest(inputs=RunInputs(Pair("Tom ran.", "So did Anna."))),)


def test_the_first_text_can_be_changed_beside_it() -> None:
    state = reduce(opened(second="So did Anna."), SetText("Ben ran."))
    assert state.document.prompt == Pair("Ben ran.", "So did Anna.")
    assert reduce(state, SetPair(Pair("a", "b"))).document.prompt == Pair("a", "b")


def test_a_conversation_leaves_it_out() -> None:
    state = reduce(opened(second="So did Anna."), SetChat(True))
    assert isinstance(state.document.prompt, Chat)
    assert reduce(state, SetChat(False)).document.prompt == Pair("Tom ran.", "So did Anna.")


def test_a_model_of_one_text_takes_it_out_with_a_sentence() -> None:
    state = answers.after(State(Document(checkpoint="story-gpt", text="Tom ran.", second="So")), answers.loaded())
    assert state.document.prompt == "Tom ran."
    assert state.notice is not None
    assert "reads no pairs of texts" in state.notice.text
    silent = answers.after(State(Document(checkpoint="story-gpt", text="Tom ran.", second="")), answers.loaded())
    assert (silent.document.second, silent.notice) == (None, None)


def test_a_second_text_without_a_first_is_no_error() -> None:
    state = opened(second="So did Anna.")
    state = reduce(state, SetText(""))
    request = replace(ForwardRequest(inputs=state.document.inputs), ticket=5)
    failed = arrive(state, Failure(request=request, sentence="The first text of the pair is empty."))
    assert failed.notice is not None
    assert failed.notice.kind == "info"
