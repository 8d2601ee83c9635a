"""A text's vector, against the last hidden states of transformers' own call, pooled in float64."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from attention_models import adopt, open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.sentence import SentenceRequest, SentenceView
from attention_models.views.sentence import sentence_view
from tests.models import tiny


def view_of(model: Model, how: str | None = None) -> SentenceView:
    return sentence_view(SentenceRequest(run=1, how=how), model, run(model, tiny.SENTENCE))  # type: ignore[arg-type]


def states_of(model: Model) -> np.ndarray:
    """(tokens, width) float64 of transformers' own call."""
    kind = transformers.T5EncoderModel if model.info.model_type == "t5" else transformers.AutoModel
    module = kind.from_pretrained(model.info.folder, attn_implementation="eager").eval()
    inputs = transformers.AutoTokenizer.from_pretrained(model.info.folder)(
        tiny.SENTENCE, return_tensors="pt", return_token_type_ids=False
    )
    with torch.no_grad():
        return np.asarray(module(**inputs).last_hidden_state[0].double().numpy())


@pytest.mark.parametrize("kind", ["bert_bare", "t5_encoder", "llama_bare"])
def test_mean_and_ends_are_those_of_transformers_states(tiny_model, kind):
    model = tiny_model(kind)
    states = states_of(model)
    end = "last" if kind == "llama_bare" else "first"
    for how, wanted in (("mean", states.mean(axis=0)), (end, states[0 if end == "first" else -1])):
        view = view_of(model, how)
        assert view.how == how
        np.testing.assert_allclose(view.vector, wanted, atol=1e-5)
        assert view.norm == pytest.approx(np.linalg.norm(wanted), abs=1e-4)
    assert [how for how, _ in view.choices] == ["mean", end]
    assert view_of(model).how == "mean"


@pytest.fixture
def sentence_folder(tmp_path: Path) -> Path:
    folder = tiny.save("bert_bare", tmp_path / "sentence")
    (folder / "1_Pooling").mkdir()
    return folder


def written(folder: Path, settings: dict[str, object], *after: str) -> Model:
    types = ["Transformer", "Pooling", *after]
    paths = ["", "1_Pooling", *(f"{i + 2}_{kind}" for i, kind in enumerate(after))]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(types, paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    return open_checkpoint(folder)


def test_its_own_pooling_is_read_from_its_files(sentence_folder):
    model = written(sentence_folder, {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "Normalize")
    mean = states_of(model).mean(axis=0)
    view = view_of(model)
    assert (view.how, view.choices[0][0]) == ("own", "own")
    np.testing.assert_allclose(view.vector, mean / np.linalg.norm(mean), atol=1e-6)
    assert view.norm == pytest.approx(1)
    assert view.words.endswith("brought to length 1")


@pytest.mark.parametrize(
    ("mode", "pool"),
    [
        ("cls", lambda x: x[0]),
        ("max", lambda x: x.max(axis=0)),
        ("mean_sqrt_len_tokens", lambda x: x.sum(axis=0) / np.sqrt(len(x))),
        ("weightedmean", lambda x: np.average(x, axis=0, weights=np.arange(1, len(x) + 1))),
        ("lasttoken", lambda x: x[-1]),
    ],
)
def test_every_mode_of_a_pooling(sentence_folder, mode, pool):
    view = view_of(written(sentence_folder, {"pooling_mode": mode}))
    assert view.how == "own"
    np.testing.assert_allclose(view.vector, pool(states_of(open_checkpoint(sentence_folder))), atol=1e-5)


def test_several_modes_are_joined_and_what_is_left_out_is_said(sentence_folder):
    model = written(sentence_folder, {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, "Dense")
    states, view = states_of(model), view_of(model)
    np.testing.assert_allclose(view.vector, np.concatenate([states[0], states.max(axis=0)]), atol=1e-5)
    assert "without what follows (Dense)" in view.words


@pytest.mark.parametrize("settings", ["[", "[]", '{"pooling_mode": 3}', '{"pooling_mode": "unheard of"}'])
def test_a_pooling_that_cannot_be_read_is_none(sentence_folder, settings):
    (sentence_folder / "1_Pooling" / "config.json").write_text(settings)
    assert view_of(open_checkpoint(sentence_folder)).how == "mean"


def test_a_path_that_leads_out_of_the_folder_is_not_followed(sentence_folder):
    outside = sentence_folder.parent / "outside"
    outside.mkdir()
    (outside / "config.json").write_text('{"pooling_mode": "mean"}')
    (sentence_folder / "modules.json").write_text('[{"type": "x.Pooling", "path": "../outside"}]')
    assert view_of(open_checkpoint(sentence_folder)).how == "mean"


def test_a_module_of_ones_own_has_its_states(tiny_model):
    """Handed over as an encoder: what it gives for each token is pooled, as for any other."""
    model = tiny_model("bert_bare")
    body = transformers.AutoModel.from_pretrained(model.info.folder, attn_implementation="eager").eval()
    given = adopt(body, model.tokenizer)
    try:
        np.testing.assert_allclose(view_of(given).vector, states_of(model).mean(axis=0), atol=1e-5)
    finally:
        given.release()
