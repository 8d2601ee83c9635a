"""A word that is none of those there are is refused with those there are."""

from __future__ import annotations

from typing import Any

import pytest

from attention_models import open_checkpoint, patch, run, which_heads
from attention_models.forward.model import Model
from attention_models.protocol.effects import AdversarialAttentionRequest, Metric, PatchRequest
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.interventions import Scale
from attention_models.protocol.values import SiteRef


@pytest.mark.parametrize(
    ("kind", "values", "sentence"),
    [
        (Metric, {"measure": "logits"}, "There is no measure “logits”: there are logit, difference and loss."),
        (
            PatchRequest,
            {"run": 0, "other": "", "kind": "stream"},
            "There is no kind of activation “stream”: there are residual, attention, mlp, head and pattern.",
        ),
        (
            PatchRequest,
            {"run": 0, "other": "", "align": "left"},
            "There is no way to align tokens “left”: there are same, start, end and tokens.",
        ),
        (
            AdversarialAttentionRequest,
            {"run": 0, "site": SiteRef("decoder", 0), "head": 0, "scope": "model"},
            "There is no scope “model”: there are head, layer and stack.",
        ),
    ],
)
def test_a_request_says_which_there_are(kind: Any, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        kind(**values)


def test_patching_by_a_kind_that_there_is_not(story_gpt: Model) -> None:
    with pytest.raises(ValueError, match="There is no kind of activation “bogus”"):
        patch(story_gpt, "Tom and Anna", "Tom and Lily", "bogus")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (Scale(0.5), r"Interventions are given as a list, as in \[Scale\(0.5\)\], not as a Scale."),
        ("0.5", "not as a str"),
        ([("scale", 0.5)], "An intervention is a Scale, Mask, Positions, Adapter or Ablation, not a tuple."),
    ],
)
def test_what_is_no_list_of_interventions(story_gpt: Model, given: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run(story_gpt, "Tom and Anna", interventions=given)


def test_a_question_that_is_none(story_gpt: Model) -> None:
    with pytest.raises(ValueError, match="A question is a HeadQuestion or the name of a pattern, not a tuple"):
        which_heads(story_gpt, run(story_gpt, "Tom and Anna"), ("previous", 0))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "  "])
def test_no_checkpoint_is_not_the_current_folder(name: str) -> None:
    with pytest.raises(CheckpointError, match="No checkpoint is named"):
        open_checkpoint(name)
