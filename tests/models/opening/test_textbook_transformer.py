"""A textbook transformer's folder opens as any checkpoint's does, and every question about a run is answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from attention_models import open_checkpoint, run
from attention_models.decoding.decode import decode
from attention_models.opening.open import describe
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.request import Failure
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import Placement
from attention_models.textbook.pretrained import KINDS as CLASSES
from attention_models.views.cell import cell_view
from tests.models.everything import everything, open_in
from tests.models.textbook_folders import KINDS, TEXT, text_for, write_folder

FAMILIES = {"encoder-decoder": "seq2seq", "decoder": "causal", "encoder": "masked"}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def folder(kind, tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp(kind), **KINDS[kind])


@pytest.mark.short("encoder-decoder", "llama-like", "encoder")
def test_it_opens_as_what_it_is(kind, folder):
    model, info = open_checkpoint(folder), describe(str(folder))
    shape = KINDS[kind].get("shape", "encoder-decoder")
    assert info.family == FAMILIES[shape]
    heads = (2, 4, KINDS[kind].get("key_heads", 4))
    stacks = ("encoder", "decoder", "cross") if shape == "encoder-decoder" else (shape,)
    assert [(s.stack, s.layers, s.heads, s.key_heads) for s in info.stacks] == [(stack, *heads) for stack in stacks]
    assert (info.context, info.width, info.weights_only, info.textbook) == (64, 32, "", False)
    assert info.parameters == sum(p.numel() for p in model.module.parameters())


@pytest.mark.short("encoder-decoder-*", "llama-like-*", "additive-*")
@pytest.mark.parametrize("target", ["", "gfed"])
def test_logits_are_those_of_the_plain_module(kind, folder, target):
    model = open_checkpoint(folder)
    trace = run(model, text_for(model.config.shape), target=target if model.seq2seq else None)
    plain = CLASSES[model.config.shape].from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.tensor([[token.id for token in trace.source or trace.tokens]])
    more = {"decoder_input_ids": torch.tensor([[token.id for token in trace.tokens]])} if model.seq2seq else {}
    with torch.no_grad():
        wanted = plain(ids, **more).logits[0].numpy()
    np.testing.assert_allclose(trace.logits, wanted, atol=1e-5 * np.abs(wanted).max())


def test_ids_are_those_of_the_saved_tokenizer(kind, folder):
    model = open_checkpoint(folder)
    tokens = model.tokenize(TEXT)
    saved = AutoTokenizer.from_pretrained(folder)
    assert [token.id for token in tokens] == saved(TEXT)["input_ids"]
    assert "".join(token.text for token in tokens) == TEXT


@pytest.mark.short("encoder-decoder", "llama-like", "decoder")
def test_what_it_writes_is_what_transformers_writes(kind, folder):
    model = open_checkpoint(folder)
    if model.info.family == "masked":
        pytest.skip("it does not write")
    *_, last = decode(model, TEXT, steps=8)
    plain = CLASSES[model.config.shape].from_pretrained(folder, attn_implementation="eager").eval()
    inputs = AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")
    inputs.pop("token_type_ids", None)
    causal = model.config.causal_mask  # one that attends to later tokens reads the whole text again at every step
    written = plain.generate(**inputs, max_new_tokens=8, do_sample=False, use_cache=causal)[0].tolist()
    start = 1 if model.seq2seq else inputs["input_ids"].shape[1]
    assert list(last.ids)[: len(written) - start] == written[start:]


@pytest.mark.short("llama-like")
def test_every_question_about_it_is_answered(kind, folder, tmp_path):
    engine = open_in(folder, Placement("cpu"))
    text = text_for(KINDS[kind].get("shape", "encoder-decoder"))
    trusted = []
    for request, result in everything(engine, text, tmp_path):
        if isinstance(result, Failure):
            assert "Traceback" not in result.cause or "InputError" in result.cause, (
                request,
                result.sentence,
                result.cause,
            )
        if isinstance(result, TrustReport):
            trusted.append(result)
    assert trusted
    for report in trusted:
        assert report.computes_the_same
        assert max(report.weight_difference, report.logit_difference) <= 1e-5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": 5}, "heads is 5, which does not divide the width of 32"),
        ({"positions": "wavy"}, "positions is “wavy”"),
        ({"layers": 500_000}, "500000|500,000"),
        ({"width": 1 << 19}, "width|parameters"),
        ({"width": "much"}, "width"),
        ({"layers": 3}, "incomplete"),
        ({"layers": 1}, "more layers than"),
    ],
)
def test_a_config_that_does_not_fit_is_refused_with_a_sentence(tmp_path, change, words):
    folder = write_folder(tmp_path / "model", **KINDS["decoder"])
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=words):
        open_checkpoint(folder)


def test_a_pickle_is_not_read(tmp_path):
    folder = write_folder(tmp_path / "model", **KINDS["decoder"])
    Path(folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError):
        open_checkpoint(folder)


def test_the_cell_of_an_additive_score_is_its_own_arithmetic(tmp_path):
    model = open_checkpoint(write_folder(tmp_path, **KINDS["additive"]))
    trace = run(model, TEXT, target="gfe")
    site = next(site for site in trace.sites if site.stack == "cross")
    request = CellRequest(run=1, site=site.ref, head=2, query=1, key=4)
    view = cell_view(request, model, trace)
    attention: Any = model.module.get_submodule(site.module)
    v = attention.additive.weight[2].double().numpy()
    x = trace.inputs[trace.index(site)]
    q, keys = x.query[0, 2, 1].double().numpy(), x.key[0, 2].double().numpy()
    scores = np.tanh(q + keys) @ v
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    np.testing.assert_allclose(view.products, v * np.tanh(q + keys[4]), atol=1e-6)
    np.testing.assert_allclose(view.row_raw, scores, atol=1e-6)
    np.testing.assert_allclose(view.row_weights, weights, atol=1e-6)
    assert view.raw == pytest.approx(scores[4], abs=1e-6)
    assert view.score == pytest.approx(view.raw, abs=1e-6)
    assert (view.bias, view.scaled) == (None, view.raw)


def test_additive_scores_are_not_scaled(tmp_path):
    model = open_checkpoint(write_folder(tmp_path, **KINDS["additive"]))
    assert model.info.additive
    with pytest.raises(InputError, match=r"v · tanh\(q \+ k\): there is no product to scale"):
        run(model, TEXT, target="", interventions=[Scale(0.5)])
    masked = run(model, TEXT, target="gf", interventions=[Mask("window", window=2)])  # masks act all the same
    assert masked.sites
