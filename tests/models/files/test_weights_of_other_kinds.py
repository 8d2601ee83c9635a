"""Weights that are not read: each is called what it is."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path

import pytest
import torch

from attention_models.opening.inspect_checkpoint import inspect_checkpoint
from attention_models.protocol.errors import CheckpointError


def folder_with(tmp_path: Path, name: str, content: bytes, config: dict[str, object] | None = None) -> str:
    (tmp_path / "config.json").write_text(json.dumps(config or {}))
    (tmp_path / name).write_bytes(content)
    return str(tmp_path)


def ctranslate2() -> bytes:
    """The start of its format: version of the binary, name of the specification, its revision."""
    name = b"TransformerSpec\0"
    return struct.pack("<IH", 6, len(name)) + name + struct.pack("<I", 7) + bytes(100)


def test_a_model_of_ctranslate2_is_no_pickle(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is a model of CTranslate2 \(model\.bin\)") as caught:
        inspect_checkpoint(folder_with(tmp_path, "model.bin", ctranslate2()))
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize("old", [False, True])
def test_a_pickle_is_called_one(tmp_path: Path, old: bool) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=not old)
    with pytest.raises(CheckpointError, match=r"only as a pickle \(pytorch_model\.bin\)"):
        inspect_checkpoint(folder_with(tmp_path, "pytorch_model.bin", (tmp_path / "pytorch_model.bin").read_bytes()))
    with pytest.raises(CheckpointError, match="only as a pickle"):
        inspect_checkpoint(folder_with(tmp_path, "pytorch_model.bin", pickle.dumps({})))


def test_what_is_neither_is_not_called_a_pickle(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model\.bin, which is no format that is read here"):
        inspect_checkpoint(folder_with(tmp_path, "model.bin", b"whatever it is"))


def test_a_config_without_a_model_type(tmp_path: Path) -> None:
    header = json.dumps({}).encode()
    content = struct.pack("<Q", len(header)) + header
    with pytest.raises(CheckpointError, match=r"config\.json names no model type") as caught:
        inspect_checkpoint(folder_with(tmp_path, "model.safetensors", content, {"hidden_size": 4}))
    assert "None" not in str(caught.value)
