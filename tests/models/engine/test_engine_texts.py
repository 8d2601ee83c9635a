"""Texts that a model cannot take: a sentence, where to cut, and the run before them still held."""

from __future__ import annotations

import pytest

from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from attention_models.protocol.decoding import into_input
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from tests.models import tiny
from tests.models.asking import ask, failure_of, forward, still_holds


@pytest.mark.parametrize("text", ["", "\0", " "])
def test_nothing_to_read(bert: Engine, text: str) -> None:
    forward(bert, "Tom", ticket=30)
    failure = failure_of(bert, ForwardRequest(inputs=RunInputs(text), ticket=31))
    assert ("is empty" if text == "" else "leaves nothing") in failure.sentence
    assert failure.sentence.count("Type a") == 1
    assert failure.cut_to is None
    assert isinstance(ask(bert, into_input(RunInputs("Tom"))), Failure)  # no mask in it: it is the run that is held
    assert not failure_of(bert, into_input(RunInputs("Tom"))).stale


def test_one_token_too_many(gpt: Engine, story_gpt: Model) -> None:
    text = tiny.text_of(story_gpt, 512)
    assert len(forward(gpt, text, ticket=40).tokens) == 512
    failure = failure_of(gpt, ForwardRequest(inputs=RunInputs(text + " and"), ticket=41))
    assert "513 tokens long; story-gpt takes 512" in failure.sentence
    assert "Nothing was cut" in failure.sentence
    assert failure.cut_to == len(text)
    assert still_holds(gpt, 40)


ENDINGS = {
    "emoji": "🙂🙂🙂🙂",
    "words": " a long tail of words that goes on and on",
    "families": "👩‍👩‍👧‍👦" * 3,
    "marks": "e\u0301e\u0301" * 9,
    "Japanese": "日本語のテスト",
    "lines": "\r\n\r\n" * 9,
}


@pytest.mark.short("2-emoji", "2-families")
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("room", [0, 1, 2, 3, 4])
def test_cut_keeps_what_fits(gpt: Engine, story_gpt: Model, ending: str, room: int) -> None:
    text = tiny.text_of(story_gpt, 512 - room) + ending
    failure = failure_of(gpt, ForwardRequest(inputs=RunInputs(text), ticket=50))
    assert failure.cut_to is not None
    kept = text[: failure.cut_to]
    tokens = forward(gpt, kept, ticket=51).tokens
    assert 512 - 4 <= len(tokens) <= 512  # no room was left that a whole character would have fitted in
    assert "".join(token.text for token in tokens if token.part[0] == token.part[1]) == kept
    assert tokens[-1].part[0] == tokens[-1].part[1]  # no half of a character
    one_more = failure_of(gpt, ForwardRequest(inputs=RunInputs(text), ticket=52))
    assert one_more.cut_to == failure.cut_to


def test_cut_for_a_framed_model(bert: Engine) -> None:
    text = "Anna lost her xylophone in the park. " * 60
    failure = failure_of(bert, ForwardRequest(inputs=RunInputs(text), ticket=60))
    assert "story-bert takes 256" in failure.sentence
    assert failure.cut_to is not None
    tokens = forward(bert, text[: failure.cut_to], ticket=61).tokens
    assert 254 <= len(tokens) <= 256
    assert (tokens[0].piece, tokens[-1].piece) == ("[CLS]", "[SEP]")


@pytest.mark.full
def test_a_megabyte_of_text(gpt: Engine) -> None:
    text = ("Tom and Anna went to the park. 🙂 " * 40_000)[: 1 << 20]
    failure = failure_of(gpt, ForwardRequest(inputs=RunInputs(text), ticket=70))
    assert failure.cut_to is not None
    assert 500 < len(forward(gpt, text[: failure.cut_to], ticket=71).tokens) <= 512
