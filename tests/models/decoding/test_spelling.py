"""What is written is read back as the very tokens that were chosen, by the tokenizer's own call; or it is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attention_models import decode, open_checkpoint, run
from attention_models.decoding.filling import Filling
from attention_models.decoding.player import write_into_input
from attention_models.decoding.spelling import Spelled, at_the_end, in_place_of, in_target
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.protocol.chat import Pair
from attention_models.protocol.decoding import DecodeStepView, into_input
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import never
from attention_models.protocol.running import RunInputs
from tests.models import tiny
from tests.models.tiny import TinyFolder

COMMA = "The sun was bright[MASK] the birds were singing."


def own_ids(model: Model, text: str, **more: object) -> list[int]:
    ids: list[int] = model.tokenizer(text, **more)["input_ids"]
    return ids


def own_target_ids(model: Model, text: str) -> list[int]:
    """What the tokenizer's own call makes of a target, without its end; a start that was typed stands once."""
    typed: list[int] = model.tokenizer(text_target=text, add_special_tokens=False)["input_ids"]
    cls = model.tokenizer.cls_token_id
    return typed if cls is None or typed[:1] == [cls] else [cls, *typed]


def step(model: Model, text: str, forced: int | None = None, target: str | None = None) -> DecodeStepView:
    inputs = RunInputs(text, target)
    ran = CurrentRun(model, (run(model, text, target=target),), inputs, target, ticket=1)
    return write_into_input(replace(into_input(inputs), forced=forced), ran)


def id_of(model: Model, piece: str) -> int:
    id_: int = model.tokenizer.convert_tokens_to_ids(piece)
    assert id_ != getattr(model.tokenizer, "unk_token_id", None)
    return id_


@pytest.mark.parametrize("piece", ["and", "when", ",", "##ness"])
def test_a_word_in_the_place_of_a_comma(story_bert: Model, piece: str) -> None:
    before = own_ids(story_bert, COMMA)
    expected = [id_of(story_bert, piece) if id_ == story_bert.tokenizer.mask_token_id else id_ for id_ in before]
    written = step(story_bert, COMMA, forced=id_of(story_bert, piece))
    assert isinstance(written.whole, str)
    assert own_ids(story_bert, written.whole) == expected
    assert written.misread == ""


def test_step_writes_a_word_of_its_own(story_bert: Model) -> None:
    assert step(story_bert, COMMA).whole == "The sun was bright and the birds were singing."


def check(model: Model, spelled: Spelled, wanted: list[int], read: list[int]) -> bool:
    """Whether the token was written; and where it is said that it was, or was not, that is so."""
    assert (read == wanted) is not bool(spelled.misread), spelled
    return not spelled.misread


@pytest.mark.short("Tom and {} went.-modernbert", "sing{} ing {}-bert", "{}-roberta")
@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert", "electra"])
@pytest.mark.parametrize("pattern", ["Tom and {} went.", "The cat{}, and the dog.", "sing{} ing {}", "{}"])
def test_every_token_in_the_place_of_a_mask(tiny_folder: TinyFolder, kind: str, pattern: str) -> None:
    model = open_checkpoint(tiny_folder(kind))
    text = pattern.replace("{}", model.tokenizer.mask_token)
    tokens, before = model.tokenize(text), own_ids(model, text)
    place = before.index(model.tokenizer.mask_token_id)
    written = []
    for id_ in range(len(model.tokenizer)):
        spelled = in_place_of(model, text, tokens, place, id_)
        wanted = [*before[:place], id_, *before[place + 1 :]]
        assert isinstance(spelled.whole, str)
        written.append(check(model, spelled, wanted, own_ids(model, spelled.whole)))
    assert all(written[id_of(model, word)] for word in ("Ġand" if kind == "roberta" else "and", "T", "."))


@pytest.mark.short("Tom and Anna went-bert_decoder", "sing-gpt2", "Tom\\n-gpt2")
@pytest.mark.parametrize("kind", ["gpt2", "bert_decoder"])
@pytest.mark.parametrize("text", ["Tom and Anna went", "The cat is ", "sing", "Tom\n"])
def test_every_token_after_a_text(tiny_folder: TinyFolder, kind: str, text: str) -> None:
    model = open_checkpoint(tiny_folder(kind))
    tokens, before = model.tokenize(text), own_ids(model, text)
    end = 1 if before[-1] == model.tokenizer.sep_token_id else 0  # which the tokenizer itself puts there
    before, after = before[: len(before) - end], before[len(before) - end :]
    written = []
    for id_ in range(len(model.tokenizer)):
        spelled = at_the_end(model, text, tokens, (id_,))
        assert isinstance(spelled.whole, str)
        written.append(check(model, spelled, [*before, id_, *after], own_ids(model, spelled.whole)))
        assert spelled.whole.startswith(text)
    assert all(written[id_of(model, piece)] for piece in (".", "Ġand" if kind == "gpt2" else "and")) or text[-1] == " "


@pytest.mark.short("-bert2bert", "La casa tien-t5")
@pytest.mark.parametrize("kind", ["t5", "bert2bert"])
@pytest.mark.parametrize("target", ["", "La casa", "La casa tien"])
def test_every_token_after_a_target(tiny_folder: TinyFolder, kind: str, target: str) -> None:
    model = open_checkpoint(tiny_folder(kind))
    before = own_target_ids(model, target)
    written = []
    for id_ in range(len(model.tokenizer)):
        spelled = in_target(model, target, before, (id_,))
        assert isinstance(spelled.whole, str)
        written.append(check(model, spelled, [*before, id_], own_target_ids(model, spelled.whole)))
    assert written[id_of(model, "▁and" if kind == "t5" else "and")]


def test_a_mask_in_the_second_of_two_texts(story_bert: Model) -> None:
    pair, which = Pair("Tom fell.", COMMA), id_of(story_bert, "and")
    tokens = story_bert.tokenize(pair)
    place = next(i for i, token in enumerate(tokens) if token.piece == "[MASK]")
    spelled = in_place_of(story_bert, pair, tokens, place, which)
    assert spelled.whole == Pair("Tom fell.", "The sun was bright and the birds were singing.")
    assert spelled.misread == ""


def test_a_piece_that_cannot_stand_after_a_space(story_gpt: Model) -> None:
    written = step(story_gpt, "Once upon a ", forced=id_of(story_gpt, "time"))
    assert written.ending == "misread"
    assert written.misread == "is read as “␣time”, not as “␣” “time”"
    own = [story_gpt.tokenizer.decode([id_]) for id_ in own_ids(story_gpt, "Once upon a time")]
    assert own[-1] == " time"


def test_a_target_gets_whole_characters(tiny_folder: TinyFolder) -> None:
    model = open_checkpoint(tiny_folder("t5"))
    first, second = (id_of(model, f"<0x{byte:02X}>") for byte in "é".encode())

    def certain(_module: Any, _args: Any, given: dict[str, Any], out: Any) -> None:
        out.logits[0, -1, second if given["decoder_input_ids"][0, -1] == first else first] = 1000.0

    model.module.register_forward_hook(certain, with_kwargs=True)
    written = step(model, "The cat.", target="La casa")
    assert written.whole == "La casaé"
    assert written.ids == (first, second)
    assert written.misread == ""


PLAY = "She was play [MASK] to [MASK]."


def test_nothing_follows_a_piece_that_cannot_be_read_back(story_bert: Model) -> None:
    assert own_ids(story_bert, "playing")[1:-1] == [id_of(story_bert, "playing")]
    inputs, ing = RunInputs(PLAY), id_of(story_bert, "##ing")
    filling = Filling(story_bert, PLAY)
    request = replace(into_input(inputs), into_input=False, steps=2, forced=ing)
    mask = filling.step(request, never)
    if mask.place != own_ids(story_bert, PLAY).index(story_bert.tokenizer.mask_token_id):
        pytest.fail("the first mask is not the one that is filled first")
    assert mask.ending == "misread"
    assert mask.misread == "is read as “playing”, not as “play” “‿ing”"
    with pytest.raises(InputError, match=r"“‿ing” cannot be written there: .*“playing”.* Choose another token"):
        filling.step(replace(request, number=2, ids=(ing,), forced=None), never)


def test_a_notebook_is_told_too(tiny_folder: TinyFolder) -> None:
    model = open_checkpoint(tiny_folder("bert"))
    text = "a [MASK]."
    tokens, place = model.tokenize(text), own_ids(model, text).index(model.tokenizer.mask_token_id)
    joined = next(  # it joins the word before it to a longer piece of the vocabulary
        id_ for id_ in range(len(model.tokenizer)) if in_place_of(model, text, tokens, place, id_).misread
    )
    tiny.rig(model, lambda _ids: {place: joined})
    with pytest.raises(InputError, match="cannot be written there"):
        list(decode(model, text, steps=1))
