"""Where a model is asked for its answer if nobody says where: one place for every question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attention_models import (
    adversarial_attention,
    as_pytorch,
    compare_runs,
    explanations,
    head_effects,
    logit_attribution,
    logit_lens,
    patch,
    run,
)
from attention_models.forward.model import Model
from attention_models.forward.predictions import answering_position
from attention_models.protocol.errors import InputError
from tests.models import tiny
from tests.models.tiny import TinyModel

MASKED = "Tom and [MASK] went to the park."
OTHER = "Tom and [MASK] went to the bus."
PLAIN = "Tom and Anna went to the park."

Ask = Callable[..., int]

ASKED: dict[str, Ask] = {
    "effects": lambda model, text, **options: head_effects(model, text, **options).aim.position,
    "explanations": lambda model, text, **options: explanations(model, text, **options).aim.position,
    "lens": lambda model, text, **options: logit_lens(model, text, **options).position,
    "patch": lambda model, text, **options: patch(model, text, OTHER, align="tokens", **options).aim.position,
    "other weights": lambda model, text, **options: (
        adversarial_attention(model, text, run(model, text).sites[-1].ref, 0, **options).position
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_mask_where_there_is_one(story_bert: Model, name: str) -> None:
    tokens = [token.piece for token in run(story_bert, MASKED).tokens]
    assert ASKED[name](story_bert, MASKED) == tokens.index("[MASK]") == 3
    assert ASKED[name](story_bert, MASKED, position=2) == 2


@pytest.mark.parametrize("name", ASKED)
def test_else_the_last_token_that_stands_for_text(story_bert: Model, name: str) -> None:
    tokens = run(story_bert, PLAIN).tokens
    assert tokens[-1].special
    assert ASKED[name](story_bert, PLAIN) == len(tokens) - 2


@pytest.mark.parametrize("name", ASKED)
def test_a_model_that_goes_on_answers_at_its_last_token(story_gpt: Model, name: str) -> None:
    text = "Tom and Anna went to the"
    assert ASKED[name](story_gpt, text) == len(run(story_gpt, text).tokens) - 1


def test_attribution_too(story_gpt: Model) -> None:
    text = "Tom and Anna went to the"
    assert logit_attribution(story_gpt, text).aim.position == len(run(story_gpt, text).tokens) - 1
    assert logit_attribution(story_gpt, text, position=1).aim.position == 1


def test_what_is_measured_is_what_the_mask_says(story_bert: Model) -> None:
    logits = run(story_bert, MASKED).logits[3]
    view = head_effects(story_bert, MASKED)
    assert view.aim.target == logits.argmax()
    assert view.aim.value == pytest.approx(float(logits.max()), abs=1e-5)
    script = as_pytorch(story_bert, run(story_bert, MASKED))
    assert script.startswith("# story-bert: what it says at “[MASK]” (3)")


def test_two_runs_are_compared_there(story_bert: Model) -> None:
    view = compare_runs(story_bert, MASKED, OTHER)
    assert [side.output.position for side in (view.a, view.b)] == [3, 3]


@pytest.mark.parametrize(("kind", "first"), [("bert_classifier", True), ("gpt2_classifier", False)])
def test_a_class_is_read_where_its_head_reads(tiny_model: TinyModel, kind: str, first: bool) -> None:
    model = tiny_model(kind)
    traces = run(model, [tiny.SENTENCE, "Tom went"], padding="left")
    for trace in traces:
        real = [i for i, token in enumerate(trace.tokens) if not token.padding]
        assert answering_position(model, trace) == (real[0] if first else real[-1])
    assert head_effects(model, "Tom went").aim.position == (0 if first else len(run(model, "Tom went").tokens) - 1)


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_is_never_asked(story_bert: Model, side: Any) -> None:
    for text, trace in zip([PLAIN, "Tom ran."], run(story_bert, [PLAIN, "Tom ran."], padding=side), strict=True):
        place = answering_position(story_bert, trace)
        alone = run(story_bert, text)
        assert trace.tokens[place] == alone.tokens[-2]
        np.testing.assert_allclose(trace.logits[place], alone.logits[-2], atol=7e-6 * np.abs(alone.logits).max())


@pytest.mark.parametrize("name", ASKED)
def test_a_position_that_is_not_there_is_said(story_bert: Model, name: str) -> None:
    with pytest.raises(InputError, match=r"There is no position 99: the text has tokens 0 to"):
        ASKED[name](story_bert, MASKED, position=99)
