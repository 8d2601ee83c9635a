"""The scripts of whole heads, next tokens, positions, blocks, choices and the variance, run on their own."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from attention_models import as_pytorch, open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.decoding import DecodeSettings, DecodeStepRequest, DecodeStepView
from attention_models.protocol.errors import InputError
from attention_models.protocol.flow import BlockRequest, BlockView
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.interventions import Scale
from attention_models.protocol.positions import PositionsRequest, PositionsView
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.running import RunInputs
from attention_models.protocol.scripts import ScriptRequest
from attention_models.protocol.variance import VarianceRequest, VarianceView
from attention_models.scripts.positions import positions_script
from attention_models.views.positions import positions_view
from tests.models import textbook_folders, tiny
from tests.models.asking import ask, failure_of, forward, opened
from tests.models.scripts.running import check_lines, few_first, printed, script

TOLERANCE = 1e-6  # of the largest number that a script prints
check = partial(check_lines, tolerance=TOLERANCE)

BY_MODEL = [
    *("gpt2", "llama", "qwen3", "gemma2", "phi3", "gpt_neox", "opt", "gpt_oss"),
    *("bert", "albert", "distilbert", "roberta", "modernbert", "t5", "bart", "marian", "t5_encoder", "deberta_v2"),
]
POSITIONED = [
    "story-gpt",
    "story-bert",
    "en-es",
    "llama",
    "gpt_neox",
    "gemma2",
    "gpt_oss",
    "t5",
    "bart",
    "bloom",
    "mpt",
]


def model_of(name: str, tiny_model) -> Model:
    return tiny_model(name) if name in tiny.KINDS else open_checkpoint(name)


@few_first(BY_MODEL, "gpt2", "gemma2", "bert", "bart")
def test_a_whole_head_by_the_model_itself(tiny_model, tmp_path: Path, kinds) -> None:
    scripts = {}
    for kind in kinds:
        model = tiny_model(kind)
        trace = run(model, tiny.SENTENCE, target="to the park" if model.seq2seq else None)
        for site in {site.stack: site for site in trace.sites}.values():
            code = as_pytorch(model, trace, site, site.heads - 1)
            assert "from_pretrained" in code
            scripts[f"{kind} {site.stack}"] = code
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_a_whole_head_of_a_pair_of_texts(tiny_model, tmp_path: Path) -> None:
    model = tiny_model("bert")
    trace = run(model, ("Tom went to the park.", "Anna gave the ball to"))
    scripts = {"pair": as_pytorch(model, trace, trace.sites[-1], 1)}
    assert "token_type_ids=segments" in scripts["pair"]
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_a_whole_head_from_queries_and_keys(tiny_model, tmp_path: Path) -> None:
    scripts = {}
    for kind in ("gpt2", "llama", "gemma2", "gpt_oss", "bert", "t5"):  # edited: the model itself gives others
        model = tiny_model(kind)
        trace = run(model, tiny.SENTENCE, target="to the park" if model.seq2seq else None, interventions=[Scale(0.5)])
        scripts[kind] = as_pytorch(model, trace, trace.sites[0], 1)
        assert "with your intervention" in scripts[kind]
    recurrent = open_checkpoint("dates-bahdanau")
    trace = run(recurrent, "3 May 2001", target="2001")
    scripts["recurrent"] = as_pytorch(recurrent, trace, trace.sites[0])
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_a_whole_head_by_the_textbook_transformers_lines(tmp_path: Path) -> None:
    scripts = {}
    for name in textbook_folders.KINDS:
        switches = textbook_folders.KINDS[name]
        model = open_checkpoint(textbook_folders.write_folder(tmp_path / name, **switches))
        text = textbook_folders.text_for(switches.get("shape", "encoder-decoder"))
        trace = run(model, text, target="abc" if model.seq2seq else None)
        scripts[name] = as_pytorch(model, trace, trace.sites[-1], 1)
        assert ("def eager_attention_forward(" in scripts[name]) == (name != "additive")
    check(printed(scripts, tmp_path))


PREDICTING = (
    *("gpt2", "llama", "gemma2", "opt", "gpt_neox", "gpt_oss", "bert", "distilbert", "t5", "bart", "marian"),
    *("story-gpt", "story-bert", "en-es"),
)
WITH_NORM = {"gpt2", "llama", "gemma2", "opt", "gpt_neox", "t5", "story-gpt"}


@few_first(PREDICTING, "gpt2", "gemma2", "bert", "bart")
def test_the_next_token(tiny_model, tmp_path: Path, kinds) -> None:
    scripts = {}
    for name in kinds:
        model = model_of(name, tiny_model)
        trace = run(model, tiny.SENTENCE, target="to the park" if model.seq2seq else None)
        scripts[name] = as_pytorch(model, trace)
    found = printed(scripts, tmp_path)
    check(found)
    assert {name for name in WITH_NORM & set(kinds) if "W_U @ x" not in scripts[name]} == set()
    assert "gemma2" not in kinds or "torch.tanh(logits" in scripts["gemma2"]


@pytest.mark.full
def test_the_next_token_is_what_the_panel_shows(gpt, tmp_path: Path) -> None:
    forward(gpt, tiny.SENTENCE)
    request = PredictionRequest(run=2, positions=(13,))
    view = ask(gpt, request)
    assert isinstance(view, PredictionView)
    lines = printed({"next": script(gpt, request)}, tmp_path)["next"]
    shown = [candidate.probability for candidate in view.predictions[0].candidates[:3]]
    assert [line.shown for line in lines if line.name.startswith("p[")] == shown
    check({"next": lines})


@few_first(POSITIONED, "en-es", "llama", "t5", "bloom")
def test_positions(tiny_model, tmp_path: Path, kinds) -> None:
    scripts = {}
    for name in kinds:
        model = model_of(name, tiny_model)
        trace = run(model, tiny.SENTENCE, target="to the park" if model.seq2seq else None)
        sites = [site for site in trace.sites if site.stack != "cross"]
        for site in {site.stack: site for site in sites}.values():
            query = site.queries - 1
            request = PositionsRequest(run=1, site=site.ref, head=1, query=query, key=1)
            scripts[f"{name} {site.stack}"] = positions_script(request, model, trace).code()
    if "en-es" in kinds:
        assert "sinusoidal(" in scripts["en-es encoder"]
        assert "t5_buckets(" in scripts["t5 decoder"]
        assert "alibi_slopes(" in scripts["bloom decoder"]
        assert "torch.exp(1j * at_query * frequency)" in scripts["llama decoder"]
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_textbook_positions(tmp_path: Path) -> None:
    scripts, shown = {}, {}
    for positions in ("sinusoidal", "learned", "rope", "alibi", "t5"):
        folder = textbook_folders.write_folder(tmp_path / positions, shape="decoder", positions=positions)
        model = open_checkpoint(folder)
        trace = run(model, textbook_folders.TEXT)
        request = PositionsRequest(run=1, site=trace.sites[0].ref, head=1, query=5, key=2)
        view = positions_view(request, model, trace)
        assert isinstance(view, PositionsView)
        scripts[positions] = positions_script(request, model, trace).code()
        shown[positions] = view
    found = printed(scripts, tmp_path)
    check(found)
    rotation = shown["rope"].rotation
    assert rotation is not None
    assert {line.shown for line in found["rope"]} == {rotation.product}


BLOCKS = ("gpt2", "llama", "gemma2", "gpt_neox", "opt", "gpt_oss", "bert", "t5", "marian", "albert")


@few_first(BLOCKS, "gpt2", "gemma2", "bert")
def test_a_block_of_every_kind(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts, views = {}, {}
    for kind in kinds:
        engine = opened(str(tiny_folder(kind)))
        forward(engine, tiny.SENTENCE)
        stack = "decoder" if kind in ("gpt2", "llama", "gemma2", "gpt_neox", "opt", "gpt_oss") else "encoder"
        request = BlockRequest(run=2, stack=stack, layer=1, position=3)
        view = ask(engine, request)
        assert isinstance(view, BlockView)
        scripts[kind], views[kind] = script(engine, request), view
    found = printed(scripts, tmp_path)
    check(found)
    for kind, view in views.items():
        after = np.linalg.norm(view.after.astype(np.float64))
        assert found[kind][-2].shown == pytest.approx(after), kind


@pytest.mark.full
def test_a_block_of_the_textbook_transformer(tmp_path: Path) -> None:
    scripts = {}
    for name in ("decoder", "llama-like"):
        folder = textbook_folders.write_folder(tmp_path / name, **textbook_folders.KINDS[name])
        engine = opened(str(folder))
        forward(engine, textbook_folders.TEXT)
        scripts[name] = script(engine, BlockRequest(run=2, stack="decoder", layer=0, position=4))
    assert "def _post_norm(" in scripts["decoder"]
    assert "def _pre_norm(" in scripts["llama-like"]
    check(printed(scripts, tmp_path, own_classes=True))


CHOICES = {
    "greedy": DecodeSettings(),
    "temperature": DecodeSettings(strategy="sample", temperature=0.7),
    "top-k": DecodeSettings(strategy="sample", temperature=1.3, top_k=5, seed=3),
    "top-p": DecodeSettings(strategy="sample", top_p=0.8, seed=1),
    "min-p": DecodeSettings(strategy="sample", min_p=0.05, seed=2),
    "all": DecodeSettings(strategy="sample", temperature=0.8, top_k=20, top_p=0.9, min_p=0.02, seed=5),
    "penalty": DecodeSettings(strategy="sample", repetition_penalty=1.5, top_k=4, seed=6),
}


def test_the_choice_of_a_token(gpt, tmp_path: Path) -> None:
    inputs = RunInputs(tiny.SENTENCE)
    scripts, views = {}, {}
    for name, settings in CHOICES.items():
        request = DecodeStepRequest(inputs=inputs, settings=settings, steps=5, number=1)
        view = ask(gpt, request)
        assert isinstance(view, DecodeStepView)
        scripts[name], views[name] = script(gpt, request), view
    found = printed(scripts, tmp_path)
    check(found)
    for name, view in views.items():
        assert view.chosen is not None
        said = {line.name: line for line in found[name]}
        if name != "temperature":  # all tokens can be drawn there, and their order is not written out
            assert said["token"].computed == view.chosen.id
        if name not in ("greedy",):
            assert said["share of the chosen token"].shown == view.chosen.kept


def test_what_has_no_lines_is_said(gpt, bert) -> None:
    beam = DecodeStepRequest(
        inputs=RunInputs(tiny.SENTENCE), settings=DecodeSettings(strategy="beam"), steps=5, number=1
    )
    assert "compares whole texts" in failure_of(gpt, ScriptRequest(of=beam)).sentence
    flat = DecodeSettings(strategy="sample", temperature=900.0, top_p=0.99)
    request = DecodeStepRequest(inputs=RunInputs(tiny.SENTENCE), settings=flat, steps=5, number=1)
    assert "too many for a script" in failure_of(gpt, ScriptRequest(of=request)).sentence
    fills = DecodeStepRequest(inputs=RunInputs("Tom [MASK] home."), settings=DecodeSettings(), steps=5, number=1)
    assert "fills in masks" in failure_of(bert, ScriptRequest(of=fills)).sentence


def test_too_many_numbers_are_refused(tiny_model, monkeypatch) -> None:
    monkeypatch.setattr("attention_models.scripts.script_text.MOST_NUMBERS", 50)
    model = tiny_model("gpt2")
    trace = run(model, tiny.SENTENCE, interventions=[Scale(0.5)])
    with pytest.raises(InputError, match="more than 50 numbers"):
        as_pytorch(model, trace, trace.sites[0], 1)


def test_the_variance_is_the_panels(gpt, tmp_path: Path) -> None:
    request = VarianceRequest(batch=8, tokens=16, deviation=1.0, seed=4)
    view = ask(gpt, request)
    assert isinstance(view, VarianceView)
    found = printed({"variance": script(gpt, request)}, tmp_path)
    check(found)
    at = list(view.experiment.dimensions).index(64)
    lines = {line.name: line for line in found["variance"]}
    assert lines["variance of q . k at d = 64"].computed == view.experiment.variance[at]


def test_a_head_request_of_the_window(gpt) -> None:
    ran = forward(gpt, tiny.SENTENCE)
    code = script(gpt, HeadRequest(run=2, site=ran.sites[2].ref, head=3))
    assert "out.attentions[2][0, 3]" in code


@pytest.mark.full
def test_the_script_of_a_head_prints_the_cell_that_is_selected(gpt, tmp_path: Path) -> None:
    """First, and then the largest of its row: not of the last one."""
    ran = forward(gpt, tiny.SENTENCE)
    query = ran.sites[2].queries - 3
    request = HeadRequest(run=ran.run, site=ran.sites[2].ref, head=3, cell=(query, 1))
    found = printed({"head": script(gpt, request)}, tmp_path)
    check(found)
    view = ask(gpt, replace(request, cell=None))
    assert isinstance(view, HeadView)
    largest = [key for key in view.weights[query].argsort()[::-1].tolist() if key != 1][:2]
    assert [line.name for line in found["head"]] == [f"weight of ({query}, {key})" for key in (1, *largest)]
    shown = [line.shown for line in found["head"]]
    assert shown == pytest.approx([float(view.weights[query, key]) for key in (1, *largest)], abs=1e-6)
