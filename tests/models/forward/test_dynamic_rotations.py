"""Rotations that are scaled to the length of a text (dynamic NTK) go on where positions were trained no further."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from attention_models import open_checkpoint, run
from attention_models.decoding.cached_run import CachedRun
from attention_models.forward.model import Model
from attention_models.forward.position_schemes import frequencies
from tests.models import tiny

IDS = [5 + 7 * i % 90 for i in range(60)]
TRAINED = 16


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    llama = tiny.KINDS["llama"]
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10_000.0}
    settings = {**llama.settings, "max_position_embeddings": TRAINED, "rope_parameters": rope}
    folder = tmp_path_factory.mktemp("dynamic") / "llama"
    return open_checkpoint(tiny.save(dataclasses.replace(llama, settings=settings), folder))


@torch.no_grad()
def theirs(model: Model, ids: list[int]) -> np.ndarray:
    """Of a model that has read nothing before: its scale is that of this text."""
    fresh = transformers.AutoModelForCausalLM.from_pretrained(Path(model.info.folder)).eval()
    logits: np.ndarray = fresh(torch.tensor([ids])).logits[0].numpy()
    return logits


def test_a_text_may_be_longer_than_positions_and_does_not_change_the_next(model: Model) -> None:
    assert model.info.context is None
    for length in (8, 60, 30, 17, 16):
        np.testing.assert_allclose(run(model, IDS[:length]).logits, theirs(model, IDS[:length]), atol=5e-5)


def test_speeds_are_those_of_a_text_of_that_length(model: Model) -> None:
    """Base theta * (factor * length / trained - factor + 1) ** (d / (d - 2)), as transformers has it."""
    run(model, IDS)
    trace = run(model, IDS[:30])
    size = trace.inputs[0].query.shape[-1]
    base = 10_000.0 * (4.0 * 30 / TRAINED - 3.0) ** (size / (size - 2))
    expected = base ** -(np.arange(0, size, 2) / size)
    np.testing.assert_allclose(frequencies(model, trace.sites[0]).inverse, expected, rtol=1e-6)


def test_decoding_past_the_end_reads_as_a_pass_over_all_of_it(model: Model) -> None:
    written = CachedRun(model, model.encode(IDS[: TRAINED - 2]))
    for token in IDS[TRAINED - 2 : TRAINED + 4]:
        said = written.logits()[0].numpy()
        np.testing.assert_allclose(said, theirs(model, written.ids[0].tolist())[-1], atol=5e-5)
        written.append(torch.tensor([token]))
