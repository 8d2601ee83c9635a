"""A checkpoint is tried in another process before it is read in this one, and that can be called off."""

from __future__ import annotations

import json
import math
import os
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import nn

from attention_explorer.compute.bridge import Bridge
from attention_models.engine.engine import Engine
from attention_models.files.catalogue import SHIPPED, WEIGHTS, shipped_unchanged
from attention_models.files.helper_process import HelperProcess, Limits
from attention_models.files.helper_work import TRY_CHECKPOINTS
from attention_models.opening import trial_process
from attention_models.opening.building import called_off_by
from attention_models.opening.checkpoint_inspector import CheckpointInspector
from attention_models.opening.open import open_examined
from attention_models.opening.trial import TrialRequest, judge
from attention_models.opening.trial_process import start_for, verdict_on
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.loading import Described, DescribeRequest, Loaded, LoadRequest
from attention_models.protocol.request import Cancelled, Request, Result
from attention_models.protocol.values import DEFAULT_PLACEMENT
from tests.models.asking import ask, failure_of
from tests.models.gguf_maker import gguf_of
from tests.models.opening.damage import change_config
from tests.models.tiny import TinyFolder

PATIENT = Limits(processor_seconds=600, seconds=600, memory=1 << 40)
ENDLESS = [[["global"] * 1000, 1000]] * 200  # two hundred million layers, of numbers that are all small


@pytest.fixture
def endless(tiny_folder: TinyFolder, tmp_path: Path) -> Path:
    """A checkpoint over which transformers would sit for good."""
    folder = Path(tmp_path / "endless")
    folder.mkdir()
    for file in tiny_folder("gpt_neo").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    change_config(folder, attention_types=ENDLESS)
    return folder


@pytest.mark.parametrize("kind", ["llama", "bert_tagger", "t5"])
def test_the_other_process_finds_the_same(tiny_folder: TinyFolder, kind: str) -> None:
    request = TrialRequest(reference=str(tiny_folder(kind)))
    verdict = verdict_on(request)
    assert verdict == judge(request)
    assert verdict.info is not None
    assert not verdict.refusal


def test_a_gguf_file_and_a_vision_model(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    for reference in (gguf_of(tiny_folder("llama"), tmp_path / "n.gguf"), WEIGHTS / "vit-cifar10"):
        request = TrialRequest(reference=str(reference))
        assert verdict_on(request) == judge(request)


def test_a_refusal_comes_with_what_lies_behind_it(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{not")
    described = ask(Engine(), DescribeRequest(reference=str(tmp_path)))
    assert isinstance(described, Described)
    assert "cannot be read as JSON" in described.refusal
    assert "JSONDecodeError" in described.cause
    failure = failure_of(Engine(), LoadRequest(reference=str(tmp_path)))
    assert failure.sentence == described.refusal
    assert "JSONDecodeError" in failure.cause


def test_what_takes_too_much_is_a_sentence(endless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_process, "LIMITS", replace(trial_process.LIMITS, processor_seconds=1.0, memory=200 << 20))
    with pytest.raises(CheckpointError) as refused:
        verdict_on(TrialRequest(reference=str(endless)))
    for words in (
        "endless: what its config and its weights' headers say takes ",
        "so it was not opened. Fetch it again",
    ):
        assert words in str(refused.value)


def deepseek(folder: Path) -> Path:
    """DeepSeek-V3 as its config and the headers of its files say it: 45,337 tensors of 671 billion numbers."""
    config = transformers.AutoConfig.for_model("deepseek_v3")
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    words = Tokenizer(WordLevel({f"w{i}": i for i in range(config.vocab_size)}, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0").save_pretrained(folder)
    header: dict[str, Any] = {}
    end = 0
    for name, shape in ((name, tuple(p.shape)) for name, p in model.named_parameters()):
        for part, size in _as_in_files(name, shape):
            begin, end = end, end + 2 * math.prod(size)
            header[part] = {"dtype": "BF16", "shape": size, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return folder


def _as_in_files(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What transformers stacks, in the files is a tensor an expert."""
    if ".experts." not in name or len(shape) != 3:
        yield name, shape
        return
    experts, rows, columns = shape
    stem = name.rpartition(".")[0]
    parts = [("gate_proj", rows // 2), ("up_proj", rows // 2)] if "gate_up" in name else [("down_proj", rows)]
    for expert in range(experts):
        for part, size in parts:
            yield f"{stem}.{expert}.{part}.weight", (size, columns)


@pytest.mark.long
def test_the_largest_that_is_known_takes_less_than_half_of_what_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, whole = deepseek(tmp_path / "DeepSeek-V3"), trial_process.LIMITS
    half = replace(whole, processor_seconds=whole.processor_seconds / 2, memory=whole.memory // 2)
    monkeypatch.setattr(trial_process, "LIMITS", half)
    verdict = verdict_on(TrialRequest(reference=str(folder)))
    assert (verdict.refusal, verdict.missing, verdict.misshapen) == ("", (), ())
    assert verdict.info is not None
    assert verdict.info.parameters == pytest.approx(671e9, rel=0.01)


@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_is_read_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shipped_unchanged(name)
    monkeypatch.setattr(trial_process, "THE_PROCESS", None)
    assert not verdict_on(TrialRequest(reference=name)).refusal


def test_what_ships_and_was_changed_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (WEIGHTS / "story-gpt").iterdir():
        (tmp_path / "story-gpt").mkdir(exist_ok=True)
        (tmp_path / "story-gpt" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "SHA256SUMS").write_bytes((WEIGHTS / "SHA256SUMS").read_bytes())
    monkeypatch.setattr("attention_models.files.catalogue.WEIGHTS", tmp_path)
    assert shipped_unchanged("story-gpt")
    change_config(tmp_path / "story-gpt", n_layer=10**9)
    assert not shipped_unchanged("story-gpt")
    assert not shipped_unchanged(str(WEIGHTS / "story-gpt"))


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="the stand-in for a frozen program is a shell script")
def test_a_frozen_program_starts_itself_to_try(
    tiny_folder: TinyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, root = tmp_path / "attention explorer", Path(trial_process.__file__).parents[2]
    program.write_text(f'#!/bin/sh\ncd "{root}" && exec "{sys.executable}" -m attention_explorer "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    process = HelperProcess("none", TRY_CHECKPOINTS)
    monkeypatch.setattr(trial_process, "THE_PROCESS", process)
    try:
        assert not verdict_on(TrialRequest(reference=str(tiny_folder("gpt2")))).refusal
    finally:
        process.close()


def test_it_is_started_early_for_what_will_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(HelperProcess, "start", lambda _: started.append("started"))
    for reference in (*SHIPPED, "python:model"):
        start_for(reference)
    assert not started
    start_for("/somewhere/else")
    assert started


# --------------------------------------------------------------------------- called off


def test_building_and_filling_a_model_are_called_off(tiny_folder: TinyFolder) -> None:
    polls = 0

    def counting() -> bool:
        nonlocal polls
        polls += 1
        return False

    folder = str(tiny_folder("llama"))
    open_examined(CheckpointInspector(folder), DEFAULT_PLACEMENT, counting)
    every, tensors = polls, 3 * 9 + 3
    assert every > 3 * tensors  # the skeleton, its parameters, and the first run
    for stops_at in range(1, every, every // 12):
        polls = 0
        with pytest.raises(Cancelled):
            open_examined(CheckpointInspector(folder), DEFAULT_PLACEMENT, lambda: counting() or polls >= stops_at)  # noqa: B023
    open_examined(CheckpointInspector(folder), DEFAULT_PLACEMENT)


def test_other_threads_are_not_called_off() -> None:
    made: list[nn.Module] = []
    with called_off_by(lambda: True):
        thread = threading.Thread(target=lambda: made.append(nn.Linear(2, 2)))
        thread.start()
        thread.join()
        with pytest.raises(Cancelled):
            nn.Linear(2, 2)
    assert made
    nn.Linear(2, 2)


@pytest.fixture
def answers(qapp: QCoreApplication) -> Iterator[tuple[Bridge, list[Result]]]:
    """The window's way to the engine, with the real one in its thread, and what has arrived."""
    bridge, arrived = Bridge(), list[Result]()
    bridge.arrived.connect(arrived.append)
    yield bridge, arrived
    assert bridge.stop(60)


@pytest.mark.short("describe-load")
@pytest.mark.parametrize(("first", "then"), [("describe", "describe"), ("describe", "load"), ("load", "load")])
def test_another_choice_does_not_wait_behind_one_that_hangs(
    answers: tuple[Bridge, list[Result]],
    endless: Path,
    monkeypatch: pytest.MonkeyPatch,
    qtbot: QtBot,
    first: str,
    then: str,
) -> None:
    monkeypatch.setattr(trial_process, "LIMITS", PATIENT)  # nothing but the other choice ends it
    bridge, arrived = answers

    def request(kind: str, reference: str) -> Request:
        return DescribeRequest(reference=reference) if kind == "describe" else LoadRequest(reference=reference)

    bridge.post(LoadRequest(reference="story-gpt"))
    qtbot.waitUntil(lambda: any(isinstance(result, Loaded) for result in arrived), timeout=60_000)
    arrived.clear()
    bridge.post(request(first, str(endless)))
    qtbot.wait(300)
    bridge.post(request(then, "story-bert"))
    qtbot.waitUntil(lambda: any(isinstance(result, (Loaded, Described)) for result in arrived), timeout=60_000)
    [answer] = [result for result in arrived if isinstance(result, (Loaded, Described))]
    assert isinstance(answer.request, (LoadRequest, DescribeRequest))
    assert answer.request.reference == "story-bert"
