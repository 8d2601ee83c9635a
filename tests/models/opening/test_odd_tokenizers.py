"""Tokenizers that open, and do not take every text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attention_models import open_checkpoint
from attention_models.protocol.errors import InputError
from tests.models.opening.damage import change_tokenizer, replacing


def test_a_text_that_the_tokenizer_leaves_nothing_of(folder: Path) -> None:
    change_tokenizer(folder, normalizer=replacing({"Regex": ".*"}, ""))
    model = open_checkpoint(folder)
    with pytest.raises(InputError, match="leaves nothing of this text"):
        model.encode("Tom went")


def test_a_text_that_a_tokenizer_gives_up_on(folder: Path) -> None:
    change_tokenizer(folder, normalizer=replacing({"Regex": "(a+)+$"}, "b"))
    model = open_checkpoint(folder)
    assert model.encode("Tom went").tokens
    with pytest.raises(InputError, match=r"tokenizer fails on this text \(.*retry-limit.*\)\. Change the text"):
        model.encode("a" * 40 + "!")


@pytest.mark.parametrize("longest", ["many", None, [5], {}])
def test_a_tokenizer_that_gives_no_number_for_its_longest_text(folder: Path, longest: Any) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": longest}))
    assert len(open_checkpoint(folder).encode("Tom went").tokens) > 1


def test_a_token_around_a_text_that_the_model_does_not_know(folder: Path) -> None:
    template = [{"SpecialToken": {"id": "X", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}]
    special = {"X": {"id": "X", "ids": [9999], "tokens": ["X"]}}
    change_tokenizer(
        folder,
        post_processor={"type": "TemplateProcessing", "single": template, "pair": pair, "special_tokens": special},
    )
    with pytest.raises(InputError, match=r"330 tokens, and 9,999 is none of them\. Its tokenizer is another model's"):
        open_checkpoint(folder).encode("Tom went")
