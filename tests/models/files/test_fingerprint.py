"""Which checkpoint it is: the same contents are the same checkpoint wherever they lie, others are told apart."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from attention_models.files.fingerprint import cheap_fingerprint, difference, fingerprint, shown_hash
from attention_models.protocol.request import Cancelled


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    for name, content in {
        "model.safetensors": b"weights",
        "config.json": b"{}",
        "tokenizer.json": b"[]",
        "README.md": b"words",
    }.items():
        (made / name).write_bytes(content)
    return made


def test_every_file_that_decides_a_figure_is_in_it(folder):
    assert fingerprint(folder) == {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model.safetensors", "config.json", "tokenizer.json")
    }
    assert cheap_fingerprint(folder) == fingerprint(folder)


def test_a_copy_is_the_same(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "README.md").write_text("other words")
    assert difference(fingerprint(folder), fingerprint(tmp_path / "copy")) == ""


def test_what_is_another(folder):
    before = fingerprint(folder)
    (folder / "model.safetensors").write_bytes(b"WEIGHTS")
    assert difference(before, fingerprint(folder)) == "model.safetensors has other contents"
    (folder / "config.json").write_bytes(b"{ }")
    assert difference(before, fingerprint(folder)) == "config.json and model.safetensors have other contents"
    (folder / "tokenizer.json").unlink()
    assert difference(before, fingerprint(folder)).endswith(", tokenizer.json is missing")
    (folder / "adapter_model.safetensors").write_bytes(b"")
    assert difference(before, fingerprint(folder)).endswith(", adapter_model.safetensors was added")


def test_a_gguf_file_may_be_renamed(tmp_path):
    one, other, third = (tmp_path / name for name in ("a.gguf", "b.gguf", "c.gguf"))
    one.write_bytes(b"x")
    other.write_bytes(b"x")
    third.write_bytes(b"y")
    assert difference(fingerprint(one), fingerprint(other)) == ""
    assert difference(fingerprint(one), fingerprint(third)) == "a.gguf has other contents"


def test_reading_is_called_off(folder):
    (folder / "model.safetensors").write_bytes(b"read for the first time")
    with pytest.raises(Cancelled):
        fingerprint(folder, lambda: True)


def test_in_a_sentence(folder):
    digest = hashlib.sha256(b"weights").hexdigest()
    assert shown_hash(fingerprint(folder)) == f"model.safetensors, SHA-256 {digest[:12]}…"
    assert shown_hash({}) == ""
