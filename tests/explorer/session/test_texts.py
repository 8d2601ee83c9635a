"""Several texts in the document: how they come and go, which is shown, and what is asked of the engine for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.intents import (
    AddTexts,
    Intent,
    KeepShownText,
    RemoveText,
    SetChat,
    SetPadding,
    SetSecond,
    SetTarget,
    SetText,
    ShowText,
)
from attention_explorer.session.reduce import reduce
from attention_explorer.session.result_rules import arrive
from attention_explorer.session.session import Session, effects
from attention_explorer.session.state import BatchText, Document, State
from attention_explorer.session.texts import texts_of
from attention_models.protocol.batch import MOST_TEXTS, Batch
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.loading import Loaded
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from tests.explorer.session import answers

TEXT = "Tom ran."


def opened(*intents: Intent, document: Document | None = None, **info: object) -> State:
    state = answers.after(State(document or Document(checkpoint="story-gpt", text=TEXT)), answers.loaded(**info))  # type: ignore[arg-type]
    for intent in intents:
        state = reduce(state, intent)
    return state


def words(state: State) -> tuple[list[str], int]:
    return [text.text for text in texts_of(state.document)], len(state.document.before)


def test_one_text_is_no_batch() -> None:
    assert opened().document.prompt == TEXT
    assert opened(SetPadding("left")).document.prompt == TEXT


def test_texts_are_added_at_the_end_and_the_first_of_them_is_shown() -> None:
    state = opened(AddTexts(("b", "c")))
    assert words(state) == ([TEXT, "b", "c"], 1)
    assert state.document.text == "b"
    assert state.document.prompt == Batch((TEXT, "b", "c"), "right", 1)
    assert words(reduce(state, AddTexts(("d",)))) == ([TEXT, "b", "c", "d"], 3)


def test_a_text_that_says_nothing_is_filled_by_those_that_are_added() -> None:
    assert words(opened(SetText(" "), AddTexts(("b", "c")))) == (["b", "c"], 0)
    assert words(opened(AddTexts(()))) == ([TEXT], 0)


def test_stepping_shows_another_and_leaves_out_one_in_which_nothing_was_written() -> None:
    state = opened(AddTexts(("b", "c")))
    assert words(reduce(state, ShowText(0))) == ([TEXT, "b", "c"], 0)
    assert words(reduce(state, ShowText(2))) == ([TEXT, "b", "c"], 2)
    drafted = reduce(state, AddTexts(("",)))
    assert words(drafted) == ([TEXT, "b", "c", ""], 3)
    assert words(reduce(drafted, ShowText(1))) == ([TEXT, "b", "c"], 1)
    emptied = reduce(state, SetText(""))
    assert words(reduce(emptied, ShowText(2))) == ([TEXT, "c"], 1)
    assert words(reduce(emptied, ShowText(0))) == ([TEXT, "c"], 0)


def test_what_is_typed_goes_into_the_one_that_is_shown() -> None:
    state = opened(AddTexts(("b", "c")), SetText("B"))
    assert words(state) == ([TEXT, "B", "c"], 1)


def test_each_has_a_second_text_and_a_target_of_its_own() -> None:
    state = opened(SetSecond("So did Anna."), AddTexts(("b", "c")), SetTarget("dice"), pairs=True)
    assert state.document.second == ""  # its field stays open
    prompt = state.document.prompt
    assert prompt == Batch((Pair(TEXT, "So did Anna."), "b", "c"), "right", 1, (None, "dice", None))
    first = reduce(state, ShowText(0)).document
    assert (first.second, first.target) == ("So did Anna.", None)
    assert first.inputs.target is None
    assert first.after == (BatchText("b", "", "dice"), BatchText("c"))


def test_removing_shows_the_next_and_the_only_one_stays() -> None:
    state = opened(AddTexts(("b", "c")))
    assert words(reduce(state, RemoveText(1))) == ([TEXT, "c"], 1)
    assert words(reduce(state, RemoveText(0))) == (["b", "c"], 0)
    assert words(reduce(reduce(state, ShowText(2)), RemoveText(2))) == ([TEXT, "b"], 1)
    assert words(reduce(state, KeepShownText())) == (["b"], 0)
    with pytest.raises(ValueError, match="only text"):
        reduce(opened(), RemoveText(0))


@pytest.mark.parametrize("intent", [ShowText(3), ShowText(-1), RemoveText(3), AddTexts(("x",) * MOST_TEXTS)])
def test_what_cannot_be_is_refused(intent: Intent) -> None:
    state = opened(AddTexts(("b", "c")))
    with pytest.raises(ValueError, match=r"There is no text|texts; 256 are run at once"):
        reduce(state, intent)


def test_another_text_another_side_and_one_less_are_asked_for() -> None:
    state = opened(AddTexts(("b", "c")))
    for intent, batch in (
        (ShowText(2), Batch((TEXT, "b", "c"), "right", 2)),
        (SetPadding("left"), Batch((TEXT, "b", "c"), "left", 1)),
        (RemoveText(2), Batch((TEXT, "b"), "right", 1)),
    ):
        assert effects(state, reduce(state, intent)) == (ForwardRequest(inputs=RunInputs(batch)),)


def test_undo_goes_back_through_them() -> None:
    session = Session(opened())
    before = session.state.document
    session.dispatch(AddTexts(("b", "c")))
    added = session.state.document
    session.dispatch(RemoveText(1))
    session.undo()
    assert session.state.document == added
    session.undo()
    assert session.state.document == before
    session.redo()
    assert session.state.document == added


def test_a_conversation_is_read_alone_and_the_texts_come_back_after_it() -> None:
    state = opened(AddTexts(("b",)), SetChat(True), chat=True)
    assert isinstance(state.document.prompt, Chat)
    assert reduce(state, SetChat(False)).document.prompt == Batch((TEXT, "b"), "right", 1)


def test_a_textbook_model_takes_one_text_and_a_model_of_pictures_lets_them_wait() -> None:
    several = Document(checkpoint="story-gpt", text=TEXT, after=(BatchText("b"), BatchText("c")))
    state = opened(document=several)
    textbook = arrive(State(several), _named(answers.loaded(), textbook=True))
    assert words(textbook) == ([TEXT], 0)
    assert textbook.notice is not None
    assert "takes one text at a time: the 2 others were taken out." in textbook.notice.text
    assert words(arrive(State(several), _named(answers.loaded(), family="vision"))) == words(state)


def test_a_model_that_reads_no_pairs_takes_every_second_text_out() -> None:
    several = Document(checkpoint="story-gpt", text=TEXT, after=(BatchText("b", "c"),))
    state = opened(document=several)
    assert state.document.prompt == Batch((TEXT, "b"))
    assert state.notice is not None
    assert "reads no pairs of texts" in state.notice.text


def test_an_example_takes_no_place_among_texts() -> None:
    several = Document(checkpoint="story-gpt", text="", after=(BatchText("b"),))
    assert words(opened(document=several, example="An example.")) == (["", "b"], 0)


def test_an_empty_text_among_others_is_no_error() -> None:
    state = opened(AddTexts(("b", "")), ShowText(2))
    request = replace(ForwardRequest(inputs=state.document.inputs), ticket=5)
    failed = arrive(state, Failure(request=request, sentence="Text 3: The input is empty."))
    assert failed.notice is not None
    assert failed.notice.kind == "info"


def _named(loaded: Loaded, **info: object) -> Loaded:
    return replace(loaded, info=replace(loaded.info, **info))  # type: ignore[arg-type]
