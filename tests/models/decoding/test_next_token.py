"""One more token: as transformers would write it, characters whole, masks from the most confident on."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from attention_models import open_checkpoint, run
from attention_models.decoding.player import write_into_input
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.protocol.decoding import DecodeCandidate, DecodeStepView, into_input
from attention_models.protocol.errors import InputError
from attention_models.protocol.running import RunInputs
from tests.models import tiny
from tests.models.tiny import TinyFolder


def step(model: Model, text: str, target: str | None = None) -> DecodeStepView:
    inputs = RunInputs(text, target)
    return write_into_input(
        into_input(inputs), CurrentRun(model, (run(model, text, target=target),), inputs, target, ticket=1)
    )


def text_of(written: DecodeStepView) -> str:
    assert isinstance(written.whole, str)
    return written.whole


def chosen(written: DecodeStepView) -> DecodeCandidate:
    assert written.chosen is not None
    return written.chosen


def saying(model: Model, *pieces: str) -> Model:
    """`model`, made to say `pieces` one after the other, after a text that ends with none of them."""
    ids = model.tokenizer.convert_tokens_to_ids(list(pieces))
    follows = dict(pairwise(ids))
    return tiny.rig(model, lambda before: {-1: follows.get(before[-1], ids[0])})


@pytest.mark.parametrize(
    "text",
    [
        tiny.SENTENCE,
        "Once upon a time, there was a little",
        "The dog",
        "Anna said: \u201cI want a caf\u00e9",
        "a",
    ],
)
def test_story_gpt_writes_what_transformers_writes(story_gpt: Model, text: str) -> None:
    inputs = story_gpt.encode(text).inputs
    expected = int(tiny.eager(story_gpt).generate(**inputs, max_new_tokens=1, do_sample=False)[0, -1])
    written = step(story_gpt, text)
    assert chosen(written).id == expected
    assert written.whole == text + story_gpt.tokenizer.decode([expected])
    assert text_of(written).startswith(text)
    assert written.ending != "model"


def test_writing_on(story_gpt: Model) -> None:
    text = "Tom had a red ball. He"
    for _ in range(5):
        longer = text_of(step(story_gpt, text))
        assert longer.startswith(text)
        assert len(longer) > len(text)
        text = longer


def test_end_of_the_text(tiny_folder: TinyFolder) -> None:
    model = saying(open_checkpoint(tiny_folder("gpt2")), "<|endoftext|>")
    written = step(model, "Tom and Anna")
    assert written.ending == "model"
    assert written.whole == "Tom and Anna"
    assert chosen(written).label == "⟨end⟩"


def test_context_is_full(story_gpt: Model) -> None:
    text = tiny.text_of(story_gpt, 512)
    with pytest.raises(InputError, match=r"context is full.*512.*Take some text away"):
        step(story_gpt, text)


@pytest.mark.parametrize("character", ["é", "日", "🙂"])
def test_character_is_written_whole(tiny_folder: TinyFolder, character: str) -> None:
    model = open_checkpoint(tiny_folder("gpt2"))
    pieces = model.tokenizer.tokenize(character)
    assert len(pieces) == len(character.encode())
    saying(model, *pieces)
    written = step(model, "Tom ")
    assert written.whole == "Tom " + character
    assert chosen(written).id == written.ids[0] == model.tokenizer.convert_tokens_to_ids(pieces[0])


def test_character_that_never_ends(tiny_folder: TinyFolder) -> None:
    model = open_checkpoint(tiny_folder("gpt2"))
    first = model.tokenizer.tokenize("🙂")[0]
    saying(model, first, first)  # the same first byte for ever
    written = step(model, "Tom")
    assert text_of(written).startswith("Tom\ufffd")
    assert written.ending != "model"


def test_character_at_the_end_of_the_context(tiny_folder: TinyFolder) -> None:
    model = open_checkpoint(tiny_folder("gpt2"))
    saying(model, *model.tokenizer.tokenize("🙂"))
    text = "." * 62
    assert len(model.tokenize(text)) == 62
    assert model.info.context == 64  # room for two of the four bytes
    assert step(model, text).whole == text + "\ufffd"


def test_translator_goes_on_with_what_it_is_made_to_say(en_es: Model) -> None:
    text = "The house has three doors."
    target = ""
    for expected in ("La", "La casa", "La casa tiene"):
        assert step(en_es, text, target).whole == expected
        target = expected


def test_translator_that_wrote_its_own_answer_has_nothing_to_add(en_es: Model) -> None:
    with pytest.raises(InputError, match="written its whole answer"):
        step(en_es, "The house has three doors.")


# --------------------------------------------------------------------------- masks


def test_the_most_confident_mask_is_filled_first(story_bert: Model) -> None:
    text = "Anna lost her ball in the [MASK]. Tom helped [MASK] find it."
    inputs = story_bert.encode(text).inputs
    with torch.no_grad():
        p = tiny.eager(story_bert)(**inputs).logits[0].double().softmax(-1)
    masks = (inputs["input_ids"][0] == story_bert.tokenizer.mask_token_id).nonzero().flatten().tolist()
    best = max(masks, key=lambda position: float(p[position].max()))
    word = story_bert.tokenizer.convert_ids_to_tokens(int(p[best].argmax()))
    head, middle, tail = text.split("[MASK]")
    expected = f"{head}{word}{middle}[MASK]{tail}" if best == masks[0] else f"{head}[MASK]{middle}{word}{tail}"
    written = step(story_bert, text)
    assert written.whole == expected
    assert chosen(written).probability == pytest.approx(float(p[best].max()), rel=1e-4)
    done = text_of(step(story_bert, text_of(written)))
    assert "[MASK]" not in done
    with pytest.raises(InputError, match=r"no \[MASK\] to fill.*press Mask"):
        step(story_bert, done)


def test_order_of_the_masks_does_not_decide(story_bert: Model) -> None:
    filled = []
    for text in ("Anna went [MASK] the park. Zorg [MASK] quickly.", "Zorg [MASK] quickly. Anna went [MASK] the park."):
        trace = run(story_bert, text)
        masks = [i for i, token in enumerate(trace.tokens) if token.piece == "[MASK]"]
        first, second = (prediction.candidates[0] for prediction in predict(story_bert, trace, masks))
        head, middle, tail = text.split("[MASK]")
        filled.append(first.probability > second.probability)
        expected = (
            f"{head}{first.piece}{middle}[MASK]{tail}" if filled[-1] else f"{head}[MASK]{middle}{second.piece}{tail}"
        )
        assert step(story_bert, text).whole == expected
    assert filled == [True, False]


@pytest.mark.parametrize(
    ("text", "piece", "expected"),
    [
        ("She walk [MASK] .", "##ing", "She walking ."),
        ("She walk[MASK].", "##ing", "She walking."),
        ("the [MASK] ball", "and", "the and ball"),
        ("[MASK] ball", "the", "the ball"),
    ],
)
def test_piece_joins_the_word_before_it(tiny_folder: TinyFolder, text: str, piece: str, expected: str) -> None:
    model = open_checkpoint(tiny_folder("bert"))
    word, mask = model.tokenizer.convert_tokens_to_ids(piece), model.tokenizer.mask_token_id
    assert word != model.tokenizer.unk_token_id
    tiny.rig(model, lambda ids: {ids.index(mask): word})
    assert step(model, text).whole == expected


@pytest.mark.parametrize(
    ("text", "piece", "expected"),
    [
        ("Tom <mask> Anna", "Ġand", "Tom and Anna"),
        ("Tom<mask> Anna", "ing", "Toming Anna"),
        ("<mask> and Anna", "Ġthe", " the and Anna"),  # without the space it would be the piece "the"
    ],
)
def test_word_is_written_and_not_its_spelling(tiny_folder: TinyFolder, text: str, piece: str, expected: str) -> None:
    model = open_checkpoint(tiny_folder("roberta"))
    word, mask = model.tokenizer.convert_tokens_to_ids(piece), model.tokenizer.mask_token_id
    assert word != model.tokenizer.unk_token_id
    tiny.rig(model, lambda ids: {ids.index(mask): word})
    written = step(model, text)
    assert written.whole == expected
    assert chosen(written).id == word
