"""Recurrent checkpoints: they open, run, decode and are checked; broken ones are refused with a sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_models import decode, open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.files.catalogue import WEIGHTS
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.protocol.atlas import AtlasRequest, AtlasView
from attention_models.protocol.cell import CellRequest, CellView
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.interventions import Scale
from attention_models.protocol.positions import ShuffleRequest, ShuffleView
from attention_models.protocol.recurrent_states import RecurrentRequest, RecurrentView
from attention_models.protocol.running import RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import SiteRef
from attention_models.protocol.variance import VarianceRequest, VarianceView
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.recurrent import RecurrentSeq2Seq
from attention_models.trust.report import compare_with_formulas
from tests.models.asking import ask, failure_of, forward, opened

DATES = ("dates-bahdanau", "dates-luong", "dates-bottleneck")
TEXT, DAY = "Thursday, 5 March 1998", "1998-03-05"
CROSS = SiteRef("cross", 0)


@pytest.fixture(scope="module", params=DATES)
def model(request) -> RecurrentModel:
    opened_model = open_checkpoint(request.param)
    assert isinstance(opened_model, RecurrentModel)
    return opened_model


@pytest.fixture(scope="module")
def bahdanau() -> Engine:
    return opened("dates-bahdanau")


# --------------------------------------------------------------------------- running and writing


@pytest.mark.parametrize("settings", [{}, {"strategy": "beam", "beams": 1}, {"strategy": "beam", "beams": 4}])
def test_it_writes_the_date(model, settings):
    *_, last = decode(model, TEXT, steps=12, **settings)
    assert last.text == DAY
    assert last.ended


def test_the_log_probability_of_a_beam_is_that_of_its_tokens(model):
    *_, last = decode(model, "5/3/98", steps=12, strategy="beam", beams=3, length_penalty=0.0)
    ids = list(last.ids)
    logits = run(model, "5/3/98", target=ids[:-1]).output_logits
    assert logits is not None
    by_token = torch.log_softmax(logits.double(), dim=-1)[range(len(ids)), ids]
    assert last.log_probability == pytest.approx(float(by_token.sum()), abs=1e-4)


def test_a_run_has_one_cross_head_or_none(model):
    trace = run(model, TEXT, target=DAY)
    assert [(site.stack, site.layer, site.heads, site.queries, site.keys) for site in trace.sites] == (
        [] if model.info.name == "dates-bottleneck" else [("cross", 0, 1, 11, 23)]
    )
    assert model.info.textbook
    for site in trace.sites:
        np.testing.assert_allclose(trace.weights(site, 0).sum(-1), 1, atol=1e-6)


def test_interventions_are_refused_with_a_sentence(model):
    with pytest.raises(InputError, match="interventions are for transformers"):
        run(model, TEXT, target=DAY, interventions=[Scale(0.5)])


# --------------------------------------------------------------------------- held against the formulas


def test_the_formulas_agree_with_the_run(model):
    found = compare_with_formulas(model, run(model, TEXT, target=DAY))
    assert found.weight_difference < 2e-6
    assert found.logit_difference < 1e-6
    assert found.tolerance == 1e-5


@pytest.mark.parametrize("scope", ["global", "monotonic", "predictive"])
@pytest.mark.parametrize("score", ["dot", "general", "concat"])
def test_the_formulas_know_every_kind(model, score, scope):
    config = RecurrentConfig(model.info.vocabulary, model.info.vocabulary, score=score, scope=scope, hidden=16)
    torch.manual_seed(0)
    other = RecurrentModel(model.info, RecurrentSeq2Seq(config), model.tokenizer)
    found = compare_with_formulas(other, run(other, TEXT, target=DAY))
    assert found.weight_difference < 1e-6
    assert found.logit_difference < 1e-6


@pytest.mark.parametrize("name", ["score.v.weight", "combine.bias", "output.weight"])
def test_the_formulas_notice_a_change(name):
    model = open_checkpoint("dates-bahdanau")
    assert isinstance(model, RecurrentModel)
    trace = run(model, TEXT, target=DAY)
    with torch.no_grad():
        model.module.get_parameter(name).mul_(1.05)
    found = compare_with_formulas(model, trace)
    assert max(found.weight_difference, found.logit_difference) > 1e-4


# --------------------------------------------------------------------------- what the panels ask


@pytest.mark.parametrize("name", DATES)
def test_the_engine_holds_it_against_the_formulas(name):
    engine = opened(name)
    ran = forward(engine, TEXT)
    assert ran.written == DAY
    report = ask(engine, TrustRequest(run=2))
    assert isinstance(report, TrustReport)
    assert report.holds


@pytest.mark.parametrize("name", ["dates-bahdanau", "dates-luong"])
def test_a_cell_shows_the_arithmetic_of_its_score(name):
    engine = opened(name)
    forward(engine, TEXT)
    named = {key: t.double().numpy() for key, t in load_file(WEIGHTS / name / "model.safetensors").items()}
    view = ask(engine, CellRequest(run=2, site=CROSS, head=0, query=6, key=14))
    assert isinstance(view, CellView)
    parts = view.recurrent
    assert parts is not None
    states = ask(engine, RecurrentRequest(run=2))
    assert isinstance(states, RecurrentView)
    h = np.concatenate([direction[14] for direction in states.encoder]).astype(np.float64)
    assert states.scores is not None
    assert states.weights is not None
    if name == "dates-bahdanau":
        assert parts.tanh is not None
        assert parts.v is not None
        ws, uh = named["score.w.weight"] @ states.states[5], named["score.u.weight"] @ h
        products = named["score.v.weight"][0] * np.tanh(ws + uh)
        np.testing.assert_allclose(parts.state, ws, atol=1e-5)
        np.testing.assert_allclose(parts.key, uh, atol=1e-5)
        np.testing.assert_allclose(parts.tanh, np.tanh(ws + uh), atol=1e-5)
        np.testing.assert_allclose(parts.v, named["score.v.weight"][0], atol=1e-7)
    else:
        wh = named["score.narrow.weight"] @ h
        products = states.states[6] * wh
        np.testing.assert_allclose(parts.key, wh, atol=1e-5)
        assert parts.tanh is None
        assert parts.v is None
    np.testing.assert_allclose(parts.products, products, atol=1e-4)
    assert view.raw == pytest.approx(products.sum(), abs=1e-4)
    assert view.score == pytest.approx(view.raw, abs=1e-5)
    np.testing.assert_allclose(view.row_scores, states.scores[6], atol=1e-5)
    assert view.weight == pytest.approx(float(states.weights[6, 14]), abs=1e-6)
    np.testing.assert_allclose(view.head_output, states.contexts[6], atol=1e-5)
    assert (view.bias, view.write, view.effect) == (None, None, None)
    assert "no residual stream" in view.effect_note


def test_hidden_states_of_the_bottleneck_are_one_vector():
    engine = opened("dates-bottleneck")
    forward(engine, TEXT)
    view = ask(engine, RecurrentRequest(run=2))
    assert isinstance(view, RecurrentView)
    assert view.contexts.shape == (1, 96)
    assert [direction.shape for direction in view.encoder] == [(23, 96), (23, 96)]
    assert (view.scores, view.masked, view.weights) == (None, None, None)
    named = {
        key: t.double().numpy() for key, t in load_file(WEIGHTS / "dates-bottleneck" / "model.safetensors").items()
    }
    last = np.concatenate([view.encoder[0][-1], view.encoder[1][0]])
    first = np.tanh(named["bridge.weight"] @ last + named["bridge.bias"])
    np.testing.assert_allclose(view.contexts[0], first, atol=1e-5)


def test_the_local_kinds_say_where_they_look(model):
    config = RecurrentConfig(model.info.vocabulary, model.info.vocabulary, score="dot", scope="predictive", hidden=16)
    torch.manual_seed(0)
    other = RecurrentModel(model.info, RecurrentSeq2Seq(config), model.tokenizer)
    engine = Engine()
    engine.workspace.run = CurrentRun(other, (run(other, TEXT, target=DAY),), RunInputs(TEXT, DAY), DAY, 2)
    states = ask(engine, RecurrentRequest(run=2))
    assert isinstance(states, RecurrentView)
    assert states.masked is not None
    open_keys = np.flatnonzero(~states.masked[4])
    assert len(open_keys) in (6, 7)  # three to each side of a place between two tokens, or on one
    key = int(open_keys[0])
    view = ask(engine, CellRequest(run=2, site=CROSS, head=0, query=4, key=key))
    assert isinstance(view, CellView)
    parts = view.recurrent
    assert parts is not None
    assert parts.place is not None
    assert parts.gaussian == pytest.approx(-((key - parts.place) ** 2) / (2 * 1.5**2), abs=1e-6)
    assert parts.gaussian is not None
    assert view.score == pytest.approx(view.raw + parts.gaussian, abs=1e-5)
    far = ask(engine, CellRequest(run=2, site=CROSS, head=0, query=4, key=key - 1))
    assert isinstance(far, CellView)
    assert far.masked
    assert far.reason == "outside of the window"


def test_a_model_that_looks_at_nothing_has_an_empty_atlas():
    engine = opened("dates-bottleneck")
    forward(engine, TEXT)
    view = ask(engine, AtlasRequest(run=2, size=16))
    assert isinstance(view, AtlasView)
    assert view.images.shape[0] == 0
    assert view.row_error == 0


def test_a_transformer_has_no_hidden_states(gpt):
    forward(gpt, "Tom and Anna went")
    assert "it is a transformer" in failure_of(gpt, RecurrentRequest(run=2)).sentence


def test_scaled_products_are_not_claimed(bahdanau):
    forward(bahdanau, TEXT)
    request = VarianceRequest(run=2, site=CROSS, head=0, batch=4, tokens=4, deviation=1.0, seed=0)
    view = ask(bahdanau, request)
    assert isinstance(view, VarianceView)
    assert view.head is None


def test_order_is_in_the_states(bahdanau):
    forward(bahdanau, TEXT)
    view = ask(bahdanau, ShuffleRequest(run=2, seed=0))
    assert isinstance(view, ShuffleView)
    assert view.on.largest > 0.5
    assert view.off is None
    assert "word after word" in view.scheme.off_note


# --------------------------------------------------------------------------- broken folders


@pytest.fixture
def folder(tmp_path) -> Path:
    return Path(shutil.copytree(WEIGHTS / "dates-bahdanau", tmp_path / "dates"))


def configured(folder: Path, **changes: object) -> None:
    raw = json.loads((folder / "config.json").read_text())
    raw.update(changes)
    (folder / "config.json").write_text(json.dumps({key: value for key, value in raw.items() if value is not None}))


def reshaped(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "score.v.weight": torch.zeros(1, 5)}, folder / "model.safetensors")


def without_one(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({name: t for name, t in weights.items() if name != "bridge.bias"}, folder / "model.safetensors")


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100_000])


BROKEN = {
    "no vocabulary": (lambda f: configured(f, vocabulary=None), "vocabulary"),
    "unknown score": (lambda f: configured(f, score="bilinear"), "“bilinear” is none of"),
    "impossible pair": (lambda f: configured(f, scope="monotonic"), "Local attention is Luong's"),
    "far too wide": (lambda f: configured(f, hidden=1 << 20), "far larger model"),
    "width as words": (lambda f: configured(f, hidden="wide"), "hidden is 'wide'"),
    "no width": (lambda f: configured(f, hidden=0), "hidden is 0"),
    "another width": (lambda f: configured(f, hidden=64), "do not fit its config"),
    "another shape": (reshaped, "do not fit its config"),
    "a tensor missing": (without_one, "do not fit its config"),
    "cut short": (cut, "model.safetensors"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "weights"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer cannot be read"),
    "tokenizer of nonsense": (lambda f: (f / "tokenizer.json").write_text("{]"), "tokenizer cannot be read"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_folder_is_refused_with_a_sentence(folder, what):
    breaks, said = BROKEN[what]
    breaks(folder)
    with pytest.raises(CheckpointError, match=said) as caught:
        open_checkpoint(folder)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert ".." not in sentence
    assert "\n" not in sentence


def test_the_copy_itself_opens(folder):
    *_, last = decode(open_checkpoint(folder), TEXT, steps=12)
    assert last.text == DAY


def test_the_translator_looks_at_the_adjective_when_it_writes_it() -> None:
    engine = opened("recurrent-en-es-bahdanau")
    ran = forward(engine, "He is reading an old book.")
    assert ran.written == "él está leyendo un libro viejo."
    assert [token.word for token in ran.tokens][6:8] == ["libro", "viejo"]
    view = ask(engine, HeadRequest(run=2, site=SiteRef("cross", 0), head=0))
    assert isinstance(view, HeadView)
    assert ran.source[int(view.weights[6].argmax())].word == "old"
    assert view.weights[6, 4] == pytest.approx(0.65, abs=0.01)
