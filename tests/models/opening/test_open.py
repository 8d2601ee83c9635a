"""What opens, and as what; a checkpoint that fails to open changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.files.catalogue import SHIPPED, WEIGHTS
from attention_models.files.sample_pictures import default_picture
from attention_models.opening import inspect_checkpoint as examining
from attention_models.opening import open as checkpoints
from attention_models.opening.open import describe
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Failure
from attention_models.protocol.values import StackInfo
from tests.models.asking import never, silent
from tests.models.opening.damage import NAME, change_config, enlarge, shard, written
from tests.models.opening.refusal import assert_refused
from tests.models.tiny import TinyFolder


def test_an_adapter_beside_whole_weights_is_not_put_on_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers does where peft is installed, of a file that nobody looked into."""
    expected = run(open_checkpoint(folder), "a b").logits
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "/else"}))
    for module in ("transformers.models.auto.auto_factory", "transformers.integrations.peft"):
        monkeypatch.setattr(f"{module}.is_peft_available", lambda: True)
    np.testing.assert_array_equal(run(open_checkpoint(folder), "a b").logits, expected)


@pytest.mark.short("story-bert", "en-es", "dates-luong", "vit-quickdraw")
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped(name: str) -> None:
    model = open_checkpoint(name)
    assert model.info.shipped
    assert model.info.name == name
    assert model.dtype == torch.float32
    assert model.device.type == "cpu"
    assert not any(module.training for module in model.module.modules())
    assert not any(parameter.requires_grad for parameter in model.module.parameters())
    given = default_picture(model.info.channels) if model.info.family == "vision" else model.info.example
    assert len(run(model, given).sites) == sum(stack.layers for stack in model.info.stacks)


def test_described_without_reading_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_weights", None)
    info = describe("story-gpt")
    assert info.family == "causal"
    assert info.model_type == "gpt2"
    assert info.architecture == "GPT2LMHeadModel"
    assert info.stacks == (StackInfo("decoder", 8, 8, 8),)
    assert (info.width, info.context, info.vocabulary) == (256, 512, 8192)
    assert info.prefix == "<|endoftext|>"
    assert info.file_bytes == (WEIGHTS / "story-gpt" / "model.safetensors").stat().st_size


def test_parameters_are_counted(story_gpt: Any) -> None:
    assert story_gpt.info.parameters == sum(p.numel() for p in story_gpt.module.parameters())


def test_folder_with_spaces_and_other_letters(folder: Path) -> None:
    model = open_checkpoint(folder)
    assert model.info.name == NAME
    assert not model.info.shipped
    assert len(run(model, "Tom and Anna").sites) == 3


def test_relative_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert open_checkpoint(NAME).info.stacks == (StackInfo("decoder", 3, 4, 4),)


def test_shards(folder: Path) -> None:
    shard(folder)
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    model = open_checkpoint(folder)
    assert model.info.parameters == sum(p.numel() for p in model.module.parameters())
    assert len(run(model, "Tom and Anna").sites) == 3


def test_half_precision_is_opened_in_float32(folder: Path) -> None:
    path = folder / "model.safetensors"
    save_file({name: t.half() for name, t in load_file(path).items()}, path, metadata={"format": "pt"})
    change_config(folder, dtype="float16")
    assert open_checkpoint(folder).dtype == torch.float32


@pytest.mark.parametrize("architectures", ["GPT2LMHeadModel", {"a": 1}, 5, [], [None], None])
def test_architecture_that_is_not_named(folder: Path, architectures: Any) -> None:
    change_config(folder, architectures=architectures)
    assert describe(str(folder)).architecture == "GPT2"


@pytest.mark.parametrize("reference", ["", "no such folder", "nowhere/at all", "~nobody-at-home/x", "x" * 5000, "a\0b"])
def test_no_such_folder(engine: Engine, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        open_checkpoint(reference)
    failure = engine.run(LoadRequest(reference=reference), never, silent)
    assert isinstance(failure, Failure)


def test_file_in_place_of_a_folder(engine: Engine, folder: Path) -> None:
    assert_refused(engine, str(folder / "config.json"), "neither a shipped one nor a folder", "Choose a folder")


def test_attention_that_can_not_be_seen(engine: Engine, tiny_folder: TinyFolder) -> None:
    assert_refused(engine, str(tiny_folder("longformer")), "longformer", "nothing to show", "another family")


def test_a_folder_that_vanishes_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def vanish(path: Path) -> None:
        shutil.rmtree(path)
        next(path.iterdir())

    monkeypatch.setattr(examining, "read_headers", vanish)
    with pytest.raises(CheckpointError, match=r"cannot be read \(No such file or directory\). Check that it is still"):
        open_checkpoint(folder)


def test_same_weights_as_transformers_reads(folder: Path) -> None:
    ours = open_checkpoint(folder).module.state_dict()
    for name, tensor in load_file(folder / "model.safetensors").items():
        assert np.array_equal(ours[name].numpy(), tensor.numpy())


def test_the_folder_where_the_program_was_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert describe(".").name == NAME
    monkeypatch.chdir(folder.parent)
    (folder / "inside").mkdir()
    monkeypatch.chdir(folder / "inside")
    assert describe("..").name == NAME
    with pytest.raises(CheckpointError, match=r"^inside has no config\.json"):
        describe(".")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are text")
def test_a_folder_whose_name_is_no_text(folder: Path) -> None:
    odd = folder.with_name(os.fsdecode(b"bad\xff"))
    folder.rename(odd)
    with pytest.raises(CheckpointError, match=r"bad\ufffd” has bytes in its name that are no text.*Rename it"):
        open_checkpoint(odd)


def test_what_training_left_beside_the_weights_may_be_large(folder: Path) -> None:
    enlarge(written(folder / "trainer_state.json"), 64)
    assert describe(str(folder)).parameters
