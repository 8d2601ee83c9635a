"""Where an effect is measured when nobody says where: one answer for all functions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_models import (
    adversarial_attention,
    explanations,
    head_effects,
    logit_attribution,
    open_checkpoint,
    patch,
    run,
)
from attention_models.forward.model import Model
from attention_models.forward.predictions import answering_position
from attention_models.protocol.values import SiteRef
from tests.models import tiny

MASKED = "The cats near the house [MASK] hungry."


@pytest.mark.parametrize(
    ("checkpoint", "text", "word"),
    [
        ("story-bert", MASKED, "[MASK]"),
        ("story-bert", "[MASK] cats [MASK] hungry.", "[MASK]"),
        ("story-bert", "The cats are hungry", "hungry"),  # and not the [SEP] that the tokenizer puts after it
        ("story-gpt", "Tom gave the ball to", "to"),
    ],
)
def test_it_is_the_first_mask_or_the_last_token_of_the_text(checkpoint: str, text: str, word: str) -> None:
    model = open_checkpoint(checkpoint)
    trace = run(model, text)
    words = [token.word for token in trace.tokens]
    at = words.index(word) if word == "[MASK]" else len(words) - 1 - words[::-1].index(word)
    assert answering_position(model, trace) == at
    assert head_effects(model, text).aim.position == at


def test_padding_is_no_place_to_be_measured_at(story_bert: Model) -> None:
    short = run(story_bert, ["The cats", "The cats near the house are hungry."])[0]
    assert short.tokens[answering_position(story_bert, short)].word == "cats"


def test_heads_are_measured_at_the_mask(story_bert: Model) -> None:
    """Against transformers' own eager forward, with a head's part of what enters W_O zeroed."""
    found = head_effects(story_bert, MASKED)
    theirs, inputs = tiny.eager(story_bert), story_bert.encode(MASKED).inputs
    place = inputs["input_ids"][0].tolist().index(story_bert.tokenizer.mask_token_id)
    width = story_bert.info.width // 8
    with torch.no_grad():
        before = theirs(**inputs).logits[0, place]
        assert found.aim.target == int(before.argmax())
        for layer, head in ((2, 0), (4, 3), (5, 7)):
            part = slice(head * width, (head + 1) * width)

            def zeroed(_module: object, args: tuple[torch.Tensor, ...], part: slice = part) -> tuple[torch.Tensor, ...]:
                joined = args[0].clone()
                joined[..., part] = 0
                return (joined, *args[1:])

            output = theirs.bert.encoder.layer[layer].attention.output.dense
            handle = output.register_forward_pre_hook(zeroed)
            change = float((theirs(**inputs).logits[0, place] - before)[found.aim.target])
            handle.remove()
            heads = found.of(SiteRef("encoder", layer))
            assert heads is not None
            assert heads[head] == pytest.approx(change, abs=1e-5 * float(before.abs().max()))


@pytest.mark.full  # the functions' own tests ask each of them where it measured
def test_all_functions_ask_at_the_same_place(story_bert: Model) -> None:
    place = answering_position(story_bert, run(story_bert, MASKED))
    assert explanations(story_bert, MASKED).aim.position == place
    assert logit_attribution(story_bert, MASKED).aim.position == place
    assert patch(story_bert, MASKED, MASKED.replace("cats", "cat")).aim.position == place
    open_, named, at_end = (
        adversarial_attention(story_bert, MASKED, site=SiteRef("encoder", 5), head=0, position=at).observed
        for at in (None, place, -1 + len(run(story_bert, MASKED).tokens))
    )
    np.testing.assert_array_equal(open_, named)  # the row that the answer is read at
    assert not np.allclose(open_, at_end)


def test_a_position_that_is_named_is_taken(story_bert: Model) -> None:
    assert head_effects(story_bert, MASKED, position=2).aim.position == 2
