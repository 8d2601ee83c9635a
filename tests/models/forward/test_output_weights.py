"""Models that show nothing of their attention but its weights: those are kept, bounded, and nothing else is claimed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_models import decode, open_checkpoint, run
from attention_models.decoding.player import Player
from attention_models.engine.engine import Engine
from attention_models.files.memory import KEPT_BYTES, most_tokens
from attention_models.forward.model import Model
from attention_models.opening.describe import capabilities
from attention_models.opening.open import describe
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.decoding import DecodeRowsRequest, DecodeSettings, DecodeStepRequest
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.interventions import Intervention, Mask, Positions, Scale
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.positions import ShuffleRequest, ShuffleView
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef, StackInfo
from attention_models.protocol.variance import VarianceRequest, VarianceView
from attention_models.trust.check import compare_with_eager
from tests.models import tiny
from tests.models.asking import never, silent
from tests.models.tiny import TinyFolder, TinyModel

CAUSAL = ("bloom", "mpt", "gpt_neo")
KINDS = (*CAUSAL, "deberta_v2", "xlnet")


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_transformers(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace = run(model, tiny.SENTENCE)
    theirs = tiny.eager_run(model, tiny.SENTENCE)
    assert len(trace.sites) == len(theirs.attentions) == model.info.stacks[0].layers
    for site, weights in zip(trace.sites, theirs.attentions, strict=True):
        assert (site.stack, site.causal) == (model.info.stacks[0].stack, kind in CAUSAL)
        for head in range(site.heads):
            assert np.array_equal(trace.weights(site, head), weights[0, head].numpy())
            assert np.array_equal(trace.weights(site, head, [3, 1]), weights[0, head, [3, 1]].numpy())
    if kind == "xlnet":  # its words come from a second stream of queries, so that it is opened without its head
        assert not trace.has_logits
        for state, theirs_state in zip(trace.residual["encoder"][1:], theirs.hidden_states[1:], strict=True):
            torch.testing.assert_close(state, theirs_state[0], atol=1e-6, rtol=0)
    else:
        np.testing.assert_allclose(trace.logits, theirs.logits[0].numpy(), atol=1e-5)
    assert trace.atlas_view(8).rows.error < 1e-5
    assert len(trace.residual[model.info.stacks[0].stack]) == len(trace.sites) + 1


@pytest.mark.parametrize(("kind", "windows"), [("bloom", (None, None)), ("mpt", (None, None)), ("gpt_neo", (None, 8))])
def test_cells_that_are_shut(tiny_model: TinyModel, kind: str, windows: tuple[int | None, ...]) -> None:
    trace = run(tiny_model(kind), tiny.SENTENCE)
    places = np.arange(len(trace.tokens))
    back = places[:, None] - places
    for layer, window in enumerate(windows):
        masked = trace.masked(layer, 2)
        assert masked is not None
        assert np.array_equal(masked, (back < 0) | (back >= (window or len(places))))
    rows = trace.masked(1, 2, [0])
    assert rows is not None
    assert rows[0].tolist() == [place > 0 for place in places]


@pytest.mark.parametrize("kind", ["deberta_v2", "xlnet"])
def test_nothing_is_shut_in_an_encoder(tiny_model: TinyModel, kind: str) -> None:
    assert run(tiny_model(kind), tiny.SENTENCE).masked(0, 0) is None


def test_xlnet_says_why_it_says_no_words(tiny_folder: TinyFolder) -> None:
    said = {line.name: line for line in capabilities(describe(str(tiny_folder("xlnet"))))}
    assert not said["Next token"].works
    assert said["Next token"].why == (
        "its words come from a second stream of queries, which is not run here, so it says no words"
    )
    assert said["Attention"].works


def test_a_format_in_which_transformers_code_fails_is_named(tiny_folder: TinyFolder) -> None:
    with pytest.raises(CheckpointError, match=r"cannot be run in bfloat16: .* Choose float32, or open another"):
        open_checkpoint(tiny_folder("xlnet"), dtype="bfloat16")


def test_xlnet_that_reads_from_left_to_right_is_opened_as_one(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder("xlnet"), tmp_path / "uni"))
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "attn_type": "uni"}))
    model = open_checkpoint(folder)
    assert model.info.family == "causal"
    trace, theirs = run(model, tiny.SENTENCE), tiny.eager_run(model, tiny.SENTENCE)
    np.testing.assert_array_equal(trace.weights(0, 1), theirs.attentions[0][0, 1].numpy())
    np.testing.assert_allclose(trace.logits, theirs.logits[0].numpy(), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_answers_alike_when_not_asked(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace = run(model, tiny.SENTENCE)
    encoded = model.encode(tiny.SENTENCE)
    found = compare_with_eager(model, encoded, trace)
    assert max(found.logit_difference, found.weight_difference) <= 1e-6
    first = trace.inputs[0]
    assert first.precomputed is not None
    changed = replace(trace, inputs=(replace(first, precomputed=first.precomputed + 0.25), *trace.inputs[1:]))
    assert compare_with_eager(model, encoded, changed).weight_difference == pytest.approx(0.25)
    if trace.output_logits is None:
        return  # it gives no logits that could differ
    changed = replace(trace, output_logits=trace.output_logits + 1)
    assert compare_with_eager(model, encoded, changed).logit_difference > 0.05


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "xlnet"])
def test_it_answers_alike_in_half_precision(tiny_folder: TinyFolder, kind: str, dtype: str) -> None:
    model = open_checkpoint(tiny_folder(kind), dtype=dtype)
    found = compare_with_eager(model, model.encode(tiny.SENTENCE), run(model, tiny.SENTENCE))
    assert found.weight_difference == 0.0
    assert found.logit_difference <= found.logit_tolerance < 0.02


@pytest.mark.parametrize("kind", CAUSAL)
def test_writing_is_that_of_whole_runs(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    ids = [token.id for token in model.tokenize("Tom and Anna")]
    for _ in range(5):
        with torch.no_grad():
            ids.append(int(model.module(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    prompt = len(model.tokenize("Tom and Anna"))
    assert [step.ids[-1] for step in decode(model, "Tom and Anna", steps=5)] == ids[prompt:]


@pytest.mark.parametrize("kind", CAUSAL)
def test_rows_of_the_steps_are_those_of_the_whole(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    player = Player(model)
    text, site, head = "Tom and Anna went", SiteRef("decoder", 1), 2
    ids: tuple[int, ...] = ()
    for number in (1, 2, 3, 4):
        request = DecodeStepRequest(
            inputs=RunInputs(text), ids=ids, settings=DecodeSettings(), number=number, steps=9, site=site, head=head
        )
        ids = player.step(request, never).ids
    view = player.rows(DecodeRowsRequest(inputs=RunInputs(text), ids=ids, site=site, head=head), never)
    assert view.from_steps
    prompt = [token.id for token in model.tokenize("Tom and Anna went")]
    whole = run(model, [*prompt, *ids[:-1]]).weights(site, head)
    np.testing.assert_allclose(view.weights, whole, atol=1e-5)


# --------------------------------------------------------------------------- what is said


def test_said_before_loading(tiny_folder: TinyFolder) -> None:
    assert "only the weights can be seen" in describe(str(tiny_folder("bloom"))).weights_only
    assert describe(str(tiny_folder("gpt2"))).weights_only == ""


def test_bound_is_what_fits() -> None:
    stacks = (StackInfo("encoder", 24, 16, 16), StackInfo("decoder", 24, 16, 16))
    most = most_tokens(stacks)
    assert 4 * 24 * 32 * most**2 <= KEPT_BYTES == 10**9
    assert 4 * 24 * 32 * (most + 1) ** 2 > KEPT_BYTES


def test_text_beyond_the_bound(tiny_folder: TinyFolder) -> None:
    bloom = open_checkpoint(tiny_folder("bloom"))  # one of its own, to put into another `Model`
    stacks = (StackInfo("decoder", 1000, 1000, 1000),)
    info = replace(bloom.info, stacks=stacks, context=most_tokens(stacks))
    assert info.context == 15
    model = Model(info, bloom.module, bloom.tokenizer)
    with pytest.raises(
        InputError, match=r"takes 15, for all of its weights have to be kept \(1 GB at most\)"
    ) as caught:
        model.encode(tiny.SENTENCE)
    cut = caught.value.cut_to
    assert cut
    assert 10 < len(model.tokenize(tiny.SENTENCE[:cut])) <= 15


@pytest.mark.parametrize("edit", [Scale(0.5), Mask("window", window=4)])
def test_what_is_not_seen_is_not_changed(tiny_model: TinyModel, edit: Intervention) -> None:
    with pytest.raises(ValueError, match=r"bloom keeps .* So masks, scales and single heads cannot be changed"):
        run(tiny_model("bloom"), tiny.SENTENCE, interventions=[edit])


def test_scores_are_not_made_up(tiny_model: TinyModel) -> None:
    with pytest.raises(ValueError, match="gives its weights alone"):
        run(tiny_model("bloom"), tiny.SENTENCE).scores(0, 0)


def test_positions_of_a_table_can_be_turned_off(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt_neo")
    off = run(model, tiny.SENTENCE, interventions=[Positions("off")])
    assert np.abs(off.weights(0, 0) - run(model, tiny.SENTENCE).weights(0, 0)).max() > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_the_engine(tiny_folder: TinyFolder, kind: str) -> None:
    engine = Engine()
    assert isinstance(engine.run(LoadRequest(reference=str(tiny_folder(kind))), never, silent), Loaded)
    ran = engine.run(ForwardRequest(inputs=RunInputs(tiny.SENTENCE), ticket=1), never, silent)
    assert isinstance(ran, Ran)
    site = ran.sites[0].ref
    cell = engine.run(CellRequest(run=1, site=site, head=1, query=5, key=3), never, silent)
    assert isinstance(cell, Failure)
    assert "only the weights" in cell.sentence
    draw = VarianceRequest(run=1, site=site, batch=2, tokens=4, deviation=1.0, seed=0)
    variance = engine.run(draw, never, silent)
    assert isinstance(variance, VarianceView)
    assert variance.head is None
    shuffled = engine.run(ShuffleRequest(run=1), never, silent)
    assert isinstance(shuffled, ShuffleView)
    assert shuffled.off_open is None
    assert shuffled.on.largest > 0
