"""Another step of a training: what a fresh opening gives, bit for bit, or what was open as it was."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_models import Mask, open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.files.training_steps import snapshot_path
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.interventions import Scale
from attention_models.protocol.loading import Loaded, LoadRequest, Stepped, StepRequest
from attention_models.protocol.request import Cancelled, Failure, never
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.two_runs import OtherRun, TwoRunsRequest
from attention_models.protocol.values import Placement, SiteRef
from tests.models.training_folders import trained

CPU = Placement("cpu")
SITE = SiteRef("decoder", 0)
TEXT = {"encoder-decoder": "abcd", "recurrent": "abcd", "decoder": "abcd>", "encoder": "ab>a<mask>"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trainings")
    for shape in TEXT:
        if shape == "recurrent":
            trained(path / shape, model=shape)
        else:
            trained(path / shape, shape=shape, positions="learned")
    return path


def asked(engine: Engine, request: Any, should_stop: Any = never) -> Any:
    return engine.run(request, should_stop, lambda *_: None)


def opened(reference: object) -> Engine:
    engine = Engine()
    assert isinstance(asked(engine, LoadRequest(reference=str(reference), placement=CPU)), Loaded)
    return engine


def step(folder: Path, number: int | None, ticket: int, inputs: RunInputs, placement: Placement = CPU) -> StepRequest:
    reference = str(folder) if number is None else f"{folder}@{number}"
    return StepRequest(reference=reference, placement=placement, inputs=inputs, ticket=ticket)


def weights(engine: Engine) -> dict[str, torch.Tensor]:
    assert engine.workspace.model is not None
    module = engine.workspace.model.module
    return {name: p.detach().clone() for name, p in module.named_parameters(remove_duplicate=False)}


@pytest.mark.short("float32-encoder-decoder")
@pytest.mark.parametrize("shape", TEXT)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_it_is_what_a_fresh_opening_gives_bit_for_bit(folders, shape, dtype):
    if (shape, dtype) == ("recurrent", "bfloat16"):
        pytest.skip("it stays in float32")
    edits = () if shape == "recurrent" else (Scale(0.5),)
    folder, inputs = folders / shape, RunInputs(TEXT[shape], interventions=edits)
    placement = Placement("cpu", dtype)
    engine = Engine()
    asked(engine, LoadRequest(reference=f"{folder}@2", placement=placement))
    module = engine.workspace.model.module if engine.workspace.model is not None else None
    for ticket, number in enumerate((4, None, 2, 6), start=1):
        found = asked(engine, step(folder, number, ticket, inputs, placement))
        assert isinstance(found, Stepped)
        assert engine.workspace.model is not None
        assert engine.workspace.model.module is module  # only its weights were changed
        fresh = Engine()
        loaded = asked(fresh, LoadRequest(reference=found.request.reference, placement=placement))
        ran = asked(fresh, ForwardRequest(inputs=inputs, ticket=ticket))
        assert isinstance(ran, Ran)
        assert found.loaded.info == loaded.info
        assert (found.loaded.placement, found.loaded.dtype) == (loaded.placement, loaded.dtype)
        assert (found.ran.tokens, found.ran.sites, found.ran.written) == (ran.tokens, ran.sites, ran.written)
        ours, theirs = weights(engine), weights(fresh)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
        assert engine.workspace.run is not None
        assert fresh.workspace.run is not None
        assert np.array_equal(engine.workspace.run.trace.logits, fresh.workspace.run.trace.logits)
        for site in ran.sites:
            request = HeadRequest(run=ticket, site=site.ref, head=site.heads - 1)
            a, b = asked(engine, request), asked(fresh, request)
            assert isinstance(a, HeadView)
            np.testing.assert_array_equal(a.weights, b.weights)


def test_the_trust_strip_holds_the_weights_against_the_steps_own_file(folders, tmp_path):
    folder = shutil.copytree(folders / "decoder", tmp_path / "own")
    engine = opened(folder)
    asked(engine, step(folder, 4, 1, RunInputs("abcd>")))
    report = asked(engine, TrustRequest(run=1))
    assert isinstance(report, TrustReport)
    assert max(report.logit_difference, report.weight_difference) == 0
    tensors = load_file(snapshot_path(folder, 4))
    tensors["model.model.decoder.layers.0.self_attn.q_proj.weight"] *= 1.5
    save_file(tensors, snapshot_path(folder, 4))
    report = asked(engine, TrustRequest(run=1))
    assert report.weight_difference > report.tolerance
    before = weights(engine)
    asked(engine, TrustRequest(run=1))
    assert all(torch.equal(before[name], p) for name, p in weights(engine).items())


@pytest.mark.parametrize("how", ["missing", "damaged", "stopped", "text"])
def test_where_it_fails_all_is_as_it_was(folders, tmp_path, how):
    folder = shutil.copytree(folders / "decoder", tmp_path / "own")
    engine, inputs = opened(f"{folder}@2"), RunInputs("abcd>")
    asked(engine, ForwardRequest(inputs=inputs, ticket=1))
    before, model = weights(engine), engine.workspace.model
    request = step(folder, 4, 2, RunInputs("") if how == "text" else inputs)
    if how == "missing":
        snapshot_path(folder, 4).unlink()
    if how == "damaged":
        path = snapshot_path(folder, 4)
        path.write_bytes(path.read_bytes()[:-4])
    if how == "stopped":
        with pytest.raises(Cancelled):
            asked(engine, request, lambda: True)
    else:
        assert isinstance(asked(engine, request), Failure)
    assert engine.workspace.model is model
    assert all(torch.equal(before[name], p) for name, p in weights(engine).items())
    again = asked(engine, ForwardRequest(inputs=inputs, ticket=3))
    assert isinstance(again, Ran)
    fresh = run(open_checkpoint(f"{folder}@2"), "abcd>")
    assert engine.workspace.run is not None
    assert np.array_equal(engine.workspace.run.trace.logits, fresh.logits)
    assert {stack: len(t) for stack, t in engine.workspace.run.trace.residual.items()} == {
        stack: len(t) for stack, t in fresh.residual.items()
    }


@pytest.mark.parametrize("what", ["config", "tokenizer", "other"])
def test_a_folder_that_has_changed_is_opened_anew(folders, tmp_path, what):
    folder = shutil.copytree(folders / "decoder", tmp_path / "own")
    engine = opened(f"{folder}@2")
    module = engine.workspace.model.module if engine.workspace.model is not None else None
    shutil.rmtree(folder)
    positions, task = "rope" if what == "config" else "learned", "reverse:4" if what == "other" else "copy:4"
    trained(folder, task=task, seed=1, shape="decoder", positions=positions)
    if what == "tokenizer":
        path = folder / "tokenizer_config.json"
        path.write_text(path.read_text().replace("{", '{"note": 1,', 1))
    found = asked(engine, step(folder, 4, 1, RunInputs("abcd>")))
    assert isinstance(found, Stepped)
    assert engine.workspace.model is not None
    assert (engine.workspace.model.module is module) == (what == "other")  # the same but for its weights
    assert engine.workspace.run is not None
    assert np.array_equal(engine.workspace.run.trace.logits, run(open_checkpoint(f"{folder}@4"), "abcd>").logits)


@pytest.mark.full
def test_b_stays_at_its_step_and_goes_to_others_as_a_does(folders):
    folder, inputs = folders / "decoder", RunInputs("abcd>")
    engine = opened(f"{folder}@2")
    asked(engine, ForwardRequest(inputs=inputs, ticket=1))
    seen = []
    for ticket, (a, b) in enumerate([(4, 6), (6, 6), (6, 2), (2, 4)], start=2):
        asked(engine, step(folder, a, ticket, inputs))
        other = OtherRun(reference=f"{folder}@{b}", inputs=inputs)
        asked(engine, TwoRunsRequest(run=ticket, site=SITE, head=0, other=other))
        beside, own = engine.workspace.beside, engine.workspace.run
        assert own is not None
        if a == b:
            continue
        assert beside is not None
        assert beside.run is not None
        assert beside.model is not engine.workspace.model
        seen.append(beside.model.module if beside.model is not None else None)
        for traced, number in ((own, a), (beside.run, b)):
            fresh = run(open_checkpoint(f"{folder}@{number}"), "abcd>")
            assert np.array_equal(traced.trace.logits, fresh.logits)
    assert seen[-1] is seen[-2]


def test_a_mask_stays_in_force(folders):
    folder = folders / "decoder"
    inputs = RunInputs("abcd>", interventions=(Mask("window", window=2),))
    engine = opened(folder)
    asked(engine, step(folder, 4, 1, inputs))
    fresh = run(open_checkpoint(f"{folder}@4"), "abcd>", interventions=[Mask("window", window=2)])
    assert engine.workspace.run is not None
    assert np.array_equal(engine.workspace.run.trace.logits, fresh.logits)
