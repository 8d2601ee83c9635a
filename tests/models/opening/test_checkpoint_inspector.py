"""Who opens what was just described need not have it tried again, and reads it once."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from attention_models import open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.files.weight_files import read_headers
from attention_models.opening.trial_process import verdict_on
from attention_models.protocol.loading import Described, DescribeRequest, Loaded, LoadRequest
from tests.models.asking import ask, failure_of
from tests.models.opening.damage import change_config
from tests.models.tiny import TinyFolder


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a checkpoint is tried in another process, and how often headers are read and a tokenizer built here."""
    calls: Counter[str] = Counter()

    def counting(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **options: Any) -> Any:
            calls[what] += 1
            return function(*args, **options)

        return count

    monkeypatch.setattr("attention_models.opening.inspect_checkpoint.read_headers", counting("headers", read_headers))
    for module in ("describe", "load"):
        monkeypatch.setattr(f"attention_models.opening.{module}.verdict_on", counting("tried", verdict_on))
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", counting("tokenizer", AutoTokenizer.from_pretrained))
    return calls


@pytest.fixture
def folder(tiny_folder: TinyFolder, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_folder("gpt2"), tmp_path / "gpt2")


def describe(engine: Engine, folder: Path) -> None:
    described = ask(engine, DescribeRequest(reference=str(folder)))
    assert isinstance(described, Described)
    assert not described.refusal


def load(engine: Engine, folder: Path) -> Loaded:
    loaded = ask(engine, LoadRequest(reference=str(folder)))
    assert isinstance(loaded, Loaded), loaded
    return loaded


def test_opening_examines_once(folder: Path, counted: Counter[str]) -> None:
    open_checkpoint(folder)
    assert counted == {"headers": 1, "tokenizer": 1}


def test_opening_what_was_just_described_has_it_tried_once(folder: Path, counted: Counter[str]) -> None:
    engine = Engine()
    describe(engine, folder)
    loaded = load(engine, folder)
    assert counted == {"tried": 1, "headers": 1, "tokenizer": 1}
    assert loaded.info == open_checkpoint(folder).info


def test_two_openings_share_no_tokenizer(folder: Path, counted: Counter[str]) -> None:
    engine = Engine()
    describe(engine, folder)
    load(engine, folder)
    assert engine.workspace.model is not None
    first = engine.workspace.model.tokenizer
    load(engine, folder)
    assert engine.workspace.model.tokenizer is not first
    assert counted == {"tried": 2, "headers": 2, "tokenizer": 2}


def test_another_checkpoint_is_examined_for_itself(tiny_folder: TinyFolder, folder: Path) -> None:
    engine = Engine()
    describe(engine, folder)
    assert load(engine, tiny_folder("bert")).info.model_type == "bert"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_that_was_written_again_meanwhile_is_read_again(folder: Path, counted: Counter[str], name: str) -> None:
    engine = Engine()
    describe(engine, folder)
    stat = (folder / name).stat()
    os.utime(folder / name, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))
    load(engine, folder)
    assert counted == {"tried": 2, "headers": 1, "tokenizer": 1}


def test_what_was_spoilt_meanwhile_is_refused(folder: Path) -> None:
    engine = Engine()
    describe(engine, folder)
    change_config(folder, n_layer=40)
    assert "is incomplete" in failure_of(engine, LoadRequest(reference=str(folder))).sentence


def test_a_file_that_came_or_went_meanwhile_is_noticed(folder: Path, counted: Counter[str]) -> None:
    engine = Engine()
    describe(engine, folder)
    (folder / "additional_chat_templates").mkdir()
    load(engine, folder)
    assert counted["tried"] == 2
    describe(engine, folder)
    (folder / "additional_chat_templates" / "tool.jinja").write_text("{{ messages }}")
    load(engine, folder)
    assert counted["tried"] == 4
