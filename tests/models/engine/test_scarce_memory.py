"""Memory that really runs out: the operating system refuses it to a process of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from attention_models.files.devices import is_out_of_memory
from attention_models.protocol.errors import CheckpointError
from tests.models.tiny import byte_level

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a process to its bounds of addresses")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened to an engine with too little memory for a checkpoint of 101 MB, 50 MB as a file."""
    folder = tmp_path_factory.mktemp("large") / "large model"
    tokenizer = byte_level()
    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=2048,
        num_hidden_layers=6,
        num_attention_heads=8,
        vocab_size=len(tokenizer),
        max_position_embeddings=8192,
    )
    LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
    tokenizer.model_max_length = 8192
    tokenizer.save_pretrained(folder)
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.scarce_memory", str(folder)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.full
@pytest.mark.parametrize("room", ["20", "75", "100"])
def test_a_checkpoint_that_does_not_fit(told: dict[str, Any], room: str) -> None:
    """Wherever it runs out: when the file is mapped, when it is mapped again, when the weights are made."""
    load = told["loads"][room]
    assert "large model in float32 does not fit on cpu: there is not enough memory." in load["sentence"]
    assert "Close other programs, or choose a smaller number format." in load["sentence"]
    assert load["no_room"] == "Placement(device='cpu', dtype='float32')"
    assert load["cause"].startswith("Traceback")
    assert load["left"] < 50_000_000  # half of its weights
    assert told["load leaves open"]


@pytest.mark.full
def test_a_text_whose_run_does_not_fit(told: dict[str, Any]) -> None:
    text = told["text"]
    assert text["sentence"].startswith("There is not enough memory for this. Shorten the text")
    assert text["no_room"] == "Placement(device='cpu', dtype='float32')"
    assert text["left"] < 50_000_000  # a third of what the run had kept
    assert told["text leaves open"]
    assert told["goes on"]


def test_what_says_that_memory_ran_out() -> None:
    wrapped = CheckpointError("tokenizer.json cannot be read.")
    wrapped.__cause__ = MemoryError()
    for error in (MemoryError(), OSError(12, "Cannot allocate memory"), wrapped, RuntimeError("std::bad_alloc")):
        assert is_out_of_memory(error)
    for other in (OSError(2, "No such file"), CheckpointError("broken"), RuntimeError("sizes differ"), None):
        assert not is_out_of_memory(other)
