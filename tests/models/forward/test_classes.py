"""Classifiers: their logits and weights are those of transformers' own call, and shares are made of them as it does."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from attention_models import adopt, open_checkpoint, run
from attention_models.forward.classes import best_of_tokens, classes_at, ends_of_span
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.protocol.errors import CheckpointError, ExplorerError
from attention_models.trust.check import compare_with_eager
from tests.models import tiny
from tests.models.eager import assert_same_as_eager
from tests.models.tiny import TinyFolder, TinyModel

OF_TEXT = (
    *("bert_classifier", "bert_several", "roberta_classifier", "distilbert_classifier", "deberta_classifier"),
    *("modernbert_classifier", "gpt2_classifier", "llama_classifier", "llama_reward"),
)
OF_TOKENS = ("bert_tagger", "gpt2_tagger")
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LABELS = {"gpt2_classifier": ("sad", "glad", "angry"), "bert_tagger": TAGS}


def theirs(model: Model, text: str) -> Any:
    """transformers' own auto class for the folder, called on its own tokenizer's input."""
    kinds = {
        "text": "AutoModelForSequenceClassification",
        "token": "AutoModelForTokenClassification",
        "span": "AutoModelForQuestionAnswering",
    }
    assert model.info.class_head is not None
    kind = getattr(transformers, kinds[model.info.class_head.of])
    module = kind.from_pretrained(model.info.folder, attn_implementation="eager", dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model.info.folder)
    inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        return module(**inputs, output_attentions=True)


@pytest.mark.parametrize("kind", OF_TEXT)
def test_a_text_has_the_logits_of_transformers_own_call(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace, out = run(model, tiny.SENTENCE), theirs(model, tiny.SENTENCE)
    assert trace.logits.shape == (len(trace.tokens), out.logits.shape[1])
    np.testing.assert_allclose(trace.logits, np.broadcast_to(out.logits.numpy(), trace.logits.shape), atol=1e-5)
    for site, weights in zip(trace.sites, out.attentions, strict=True):
        for head in range(site.heads):
            np.testing.assert_allclose(trace.weights(site, head), weights[0, head].numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", OF_TOKENS)
def test_each_token_has_the_logits_of_transformers_own_call(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace = assert_same_as_eager(model, tiny.SENTENCE)
    out = theirs(model, tiny.SENTENCE)
    np.testing.assert_allclose(trace.logits, out.logits[0].numpy(), atol=1e-5)
    shares = out.logits[0].double().softmax(-1)
    said = [model.config.id2label[int(i)] for i in out.logits[0].argmax(-1)]
    best = best_of_tokens(model, trace)
    assert [candidate.label for candidate in best] == said
    assert set(said) <= set(TAGS)
    np.testing.assert_allclose([candidate.probability for candidate in best], shares.amax(-1), atol=1e-6)


def test_an_answer_starts_and_ends_where_transformers_says(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_answerer")
    trace, out = run(model, tiny.SENTENCE), theirs(model, tiny.SENTENCE)
    np.testing.assert_allclose(trace.logits[:, 0], out.start_logits[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(trace.logits[:, 1], out.end_logits[0].numpy(), atol=1e-5)
    for found, logits in zip(ends_of_span(model, trace, 4), (out.start_logits[0], out.end_logits[0]), strict=True):
        shares = logits.double().softmax(-1)
        assert [candidate.id for candidate in found] == logits.topk(4).indices.tolist()
        np.testing.assert_allclose([c.probability for c in found], shares[logits.topk(4).indices], atol=1e-6)
        assert [c.label for c in found] == [trace.tokens[c.id].label for c in found]
    at = classes_at(model, trace, 3)
    assert [c.label for c in at] == ["start", "end"]
    assert at[1].probability == pytest.approx(float(out.end_logits[0].double().softmax(-1)[3]), abs=1e-6)


@pytest.mark.parametrize("kind", [*OF_TEXT, *OF_TOKENS, "bert_answerer"])
def test_the_check_compares_the_logits_of_the_head(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace, encoded = run(model, tiny.SENTENCE), model.encode(tiny.SENTENCE)
    assert compare_with_eager(model, encoded, trace).logit_difference <= 1e-5
    assert trace.output_logits is not None
    planted = replace(trace, output_logits=trace.output_logits + 0.1)
    assert compare_with_eager(model, encoded, planted).logit_difference > 1e-3


def test_shares_follow_the_kind_of_problem(tiny_model: TinyModel) -> None:
    for kind, shares in (
        ("gpt2_classifier", lambda z: z.softmax(-1)),
        ("bert_several", lambda z: z.sigmoid()),
        ("llama_reward", lambda z: z * torch.nan),
    ):
        model = tiny_model(kind)
        z = theirs(model, tiny.SENTENCE).logits[0].double()
        found = classes_at(model, run(model, tiny.SENTENCE), 2)
        assert [c.id for c in found] == z.argsort(descending=True).tolist()
        assert [c.label for c in found] == [model.config.id2label[c.id] for c in found]
        np.testing.assert_allclose([c.logit for c in found], z.sort(descending=True).values, atol=1e-5)
        np.testing.assert_allclose([c.probability for c in found], shares(z)[[c.id for c in found]], atol=1e-6)


def test_padding_in_the_text_is_passed_over_as_transformers_does(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2_classifier")
    ids = [40, 41, 42, 0, 0]
    with torch.no_grad():
        out = tiny.eager(model)(input_ids=torch.tensor([ids]))
    np.testing.assert_allclose(run(model, ids).logits[0], out.logits[0].numpy(), atol=1e-5)


def test_a_classifier_that_is_handed_over_keeps_its_head(tiny_model: TinyModel) -> None:
    folder = tiny_model("bert_classifier")
    module = transformers.AutoModelForSequenceClassification.from_pretrained(folder.info.folder).eval()
    given = adopt(module, folder.tokenizer)
    try:
        logits = run(given, tiny.SENTENCE).logits
    finally:
        given.release()
    np.testing.assert_allclose(logits[0], theirs(folder, tiny.SENTENCE).logits[0].numpy(), atol=1e-5)


def test_a_head_that_is_not_in_the_files_is_left_out(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    folder = tmp_path / "headless"
    shutil.copytree(tiny_folder("bert_tagger"), folder)
    tensors = load_file(folder / "model.safetensors")
    save_file({n: t for n, t in tensors.items() if not n.startswith("classifier")}, folder / "model.safetensors")
    info = open_checkpoint(folder).info
    assert (info.family, info.class_head) == ("encoder", None)
    assert info.wordless == "classifier.weight is not in the file"


def test_it_says_no_words(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_classifier")
    with pytest.raises(ExplorerError, match="tells classes apart"):
        predict(model, run(model, tiny.SENTENCE), [0])


def test_what_is_said_of_each_kind_before_it_is_open(tiny_model: TinyModel, tiny_folder: TinyFolder) -> None:
    for kind, (of, scale) in {
        "bert_classifier": ("text", "softmax"),
        "bert_several": ("text", "sigmoid"),
        "llama_reward": ("text", "number"),
        "bert_tagger": ("token", "softmax"),
        "bert_answerer": ("span", "softmax"),
    }.items():
        head = tiny_model(kind).info.class_head
        assert head is not None
        assert (head.of, head.scale) == (of, scale)
        assert head.labels == LABELS.get(kind, head.labels)
    for kind in ("bert_bare", "bert"):
        assert tiny_model(kind).info.class_head is None
    assert tiny_model("bert_bare").info.wordless == ""
    with pytest.raises(CheckpointError, match="classifiers of one stack"):
        open_checkpoint(tiny_folder("bart_classifier"))
