"""Where definitions agree, TransformerLens' numbers on the same random GPT-2: see `transformer_lens_reference.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import logit_lens, run
from attention_models.effects.attribution import attributed
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.metric import resolve
from attention_models.effects.patching import PatchSweep
from attention_models.effects.sweep import effects_of
from attention_models.forward.model import Model
from attention_models.protocol.effects import AttributionRequest, Metric, Patched, PatchRequest
from attention_models.roles.copying import copying_scores
from tests.models.effects.reference_model import AGAINST, HERE, TARGET, THERE, reference_model

FILE = Path(__file__).with_name("transformer_lens.json")
AIM = Metric(measure="difference", target=TARGET, against=AGAINST)
ATOL = 2e-5  # of differences of about 1


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return reference_model(tmp_path_factory.mktemp("reference"))


def test_heads_that_are_zeroed(model: Model, theirs: dict[str, Any]) -> None:
    effects = effects_of(model, run(model, HERE), HERE, None, AIM)
    assert effects.aim.value == pytest.approx(theirs["value"], abs=ATOL)
    ours = np.stack([at.heads for at in effects.sites]) + effects.aim.value
    np.testing.assert_allclose(ours, theirs["zeroed"], atol=ATOL)
    assert np.ptp(ours) > 100 * ATOL


def test_heads_that_a_logit_is_made_of(model: Model, theirs: dict[str, Any]) -> None:
    trace = run(model, HERE)
    copies = BatchedRuns.of(model, trace, HERE, None)
    parts = attributed(AttributionRequest(run=0, aim=AIM), copies, resolve(model, trace, AIM))
    np.testing.assert_allclose(np.stack([site.heads for site in parts.sites]), theirs["attributed"], atol=ATOL)


def test_layers_read_by_the_head(model: Model, theirs: dict[str, Any]) -> None:
    lens = logit_lens(model, HERE, target=TARGET)
    assert lens.target_share is not None
    np.testing.assert_allclose(lens.target_share[:, -1], theirs["lens"], atol=1e-6)


def test_heads_that_write_what_they_read(model: Model, theirs: dict[str, Any]) -> None:
    scores = copying_scores(model, run(model, HERE))
    assert scores is not None
    np.testing.assert_allclose(scores, theirs["copying"], atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "name"), [("residual", "resid_pre"), ("mlp", "mlp_out"), ("head", "z"), ("pattern", "pattern")]
)
def test_activations_of_another_run(model: Model, theirs: dict[str, Any], kind: Patched, name: str) -> None:
    copies = [BatchedRuns.of(model, run(model, ids), ids, None) for ids in (HERE, THERE)]
    request = PatchRequest(run=0, other="", kind=kind, aim=AIM)
    sweep = PatchSweep(request, *copies)
    while not sweep.is_whole:
        sweep.advance()
    view = sweep.view(request)
    assert view.other_value == pytest.approx(theirs["other"], abs=ATOL)
    np.testing.assert_allclose(view.values, theirs[name], atol=ATOL)
    assert torch.tensor(view.values).std() > 100 * ATOL
