"""What weights account for: real configs keep within it, and what sizes a loop beyond it is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModel

from attention_models.files.bounds import (
    Accounted,
    out_of_bounds,
    too_large_for_vocabulary,
    too_long_header,
    too_many_values,
)
from attention_models.files.families import settings_of
from attention_models.files.weight_files import read_json
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import Tensors
from attention_models.textbook.typed_numbers import typed_number

REAL = (
    *("albert", "bart", "bert", "bloom", "clip", "deberta-v2", "deepseek_v3", "dinov2", "distilbert", "electra"),
    *("gemma2", "gemma3_text", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_oss", "jamba", "llama", "longformer"),
    *(
        "longt5",
        "m2m_100",
        "mamba",
        "marian",
        "mbart",
        "mistral",
        "mixtral",
        "modernbert",
        "mpt",
        "mt5",
        "olmo2",
        "opt",
    ),
    *(
        "phi3",
        "qwen2",
        "qwen3",
        "qwen3_moe",
        "roberta",
        "siglip",
        "swin",
        "t5",
        "vit",
        "whisper",
        "xlm-roberta",
        "xlnet",
    ),
)
"""Families whose default settings are those of a published checkpoint."""

FEW = Accounted(tensors=28, largest=330)
NAMES = {"num_experts", "attention_types", "max_position_embeddings", "rope_theta"}


@pytest.mark.short(
    *("bert", "deepseek_v3", "gemma2", "gpt_neox", "longformer", "mbart", "mpt", "phi3", "siglip", "whisper"),
)
@pytest.mark.parametrize("kind", REAL)
def test_settings_of_published_checkpoints_are_within_bounds(kind: str) -> None:
    config = transformers.CONFIG_MAPPING[kind]()
    with torch.device("meta"):
        state = AutoModel.from_config(config).state_dict()
    tensors = Tensors({name: tuple(tensor.shape) for name, tensor in state.items()}, 0)
    written = json.loads(config.to_json_string(use_diff=False))
    assert out_of_bounds(written, settings_of(type(config)), Accounted.by(tensors)) == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"num_experts": 10**6},
            "num_experts is 1,000,000, and its weights are 28 tensors, with no dimension",
        ),
        ({"num_experts": -(10**6)}, "num_experts is -1,000,000"),
        ({"num_experts": 10**400}, "num_experts is a number of 401 digits"),
        ({"attention_types": [[["global"], 10**6]]}, "attention_types is 1,000,000"),
        ({"part": {"num_experts": 10**6}}, "part.num_experts is 1,000,000"),
        ({"id2label": {str(i): "x" for i in range(5000)}}, "id2label has 5,000 entries"),
        ({"a": [[1] * 5000]}, "a has 5,000 entries"),
        ({"max_position_embeddings": 10**7}, ""),  # positions that are turned have no table
        ({"max_position_embeddings": 10**10}, "max_position_embeddings is 10,000,000,000"),
        ({"rope_theta": 5_000_000}, ""),
        ({"number_of_parameters": 10**9}, ""),  # which no code reads
        ({"num_experts": True}, ""),
    ],
)
def test_what_is_beyond(settings: dict[str, Any], said: str) -> None:
    found = out_of_bounds(settings, NAMES, FEW)
    assert found.startswith(said) if said else found == ""


def test_depth() -> None:
    nested: Any = 1
    for _ in range(100):
        nested = [nested]
    assert out_of_bounds({"a": nested}, (), FEW) == "a is nested more than 64 levels deep"


def test_values_are_counted_before_they_are_parsed() -> None:
    assert too_many_values(b'{"a": [1, 2]}') == ""
    assert too_many_values(b"[" * 1_000_001) == "it holds 1,000,001 values, more than 1,000,000"


def test_a_vocabulary_is_no_larger_than_the_model_s() -> None:
    assert too_large_for_vocabulary(b"[]," * 100_000, FEW) == "it holds 200,000 values, more than 105,728"
    assert too_large_for_vocabulary(b"[]," * 100_000, Accounted(100, 50_000)) == ""
    assert too_large_for_vocabulary(b" " * (5 << 20), FEW).startswith("it has 5,242,880 bytes, and its weights are 28")
    assert too_large_for_vocabulary(b" " * (36 << 20), Accounted(100, 262_144)) == ""


def test_a_tensor_that_holds_nothing_accounts_for_nothing() -> None:
    shapes = {"a": (4, 8), "b": (0, 10**12), "c": (10**12, 7, 0), "d": (), "e": (0,)}
    assert Accounted.by(Tensors(shapes, 0)) == Accounted(tensors=2, largest=8)
    assert out_of_bounds({"n_layer": 10**6}, {"n_layer"}, Accounted.by(Tensors(shapes, 0))) != ""


@pytest.mark.parametrize(
    ("rows", "length", "fits"),
    [
        (262_144, 20 << 20, True),  # Gemma 3: 262,144 pieces, with scores, kinds and merges
        (151_936, 6 << 20, True),  # Qwen 3
        (32_000, 1 << 20, True),  # Llama 2
        (1, 4 << 20, True),
        (32_000, 13 << 20, False),
        (64, 190 << 20, False),
        (262_144, 190 << 20, False),
    ],
)
def test_a_header_is_as_long_as_a_vocabulary_of_its_weights_may_be(rows: int, length: int, fits: bool) -> None:
    assert (too_long_header(length, Accounted(tensors=0, largest=rows)) == "") is fits


def test_numbers_without_end_are_said_without_advice_for_programmers(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"n_layer": ' + "9" * 5_000 + "}")
    with pytest.raises(CheckpointError, match="it holds a number of thousands of digits") as caught:
        read_json(path, "")
    assert "sys." not in str(caught.value)
    with pytest.raises(ValueError, match=r"^width is “9{39}…”, and has to be a whole number$"):
        typed_number("width", "9" * 5_000, int)
