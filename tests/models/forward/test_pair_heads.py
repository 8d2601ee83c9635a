"""Heads for pairs and for replaced tokens, as pre-training leaves them, against transformers' own call."""

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

from attention_models import Mask, adopt, open_checkpoint, run
from attention_models.forward.classes import best_of_tokens, classes_at, said_of_pair
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.opening.describe import capabilities
from attention_models.trust.check import compare_with_eager
from tests.models import tiny
from tests.models.tiny import TinyFolder, TinyModel

NEXT = ("bert_next", "megatron_next")
BOTH = ("bert_pretrained", "albert_pretrained", "mobilebert_pretrained")
PAIR = ("Tom and Anna went to the park.", "They ran.")


def theirs(model: Model, auto: str, *texts: str) -> Any:
    folder = model.info.folder
    kind = getattr(transformers, auto)
    module = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(*texts, return_tensors="pt", return_token_type_ids=True)
    with torch.no_grad():
        return module(**inputs, output_attentions=True)


def assert_weights(trace: Any, out: Any) -> None:
    for site, weights in zip(trace.sites, out.attentions, strict=True):
        for head in range(site.heads):
            np.testing.assert_allclose(trace.weights(site, head), weights[0, head].numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", NEXT)
def test_whether_a_text_is_the_next_one(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace, out = run(model, PAIR), theirs(model, "AutoModelForNextSentencePrediction", *PAIR)
    np.testing.assert_allclose(trace.logits, np.broadcast_to(out.logits.numpy(), trace.logits.shape), atol=1e-5)
    assert_weights(trace, out)
    shares = dict(zip(("is next", "is not next"), out.logits[0].double().softmax(-1).tolist(), strict=True))
    found = classes_at(model, trace, 0)
    assert {candidate.label: candidate.probability for candidate in found} == pytest.approx(shares, abs=1e-6)


@pytest.mark.parametrize("kind", NEXT)
def test_segments_that_are_lost_are_seen(tiny_model: TinyModel, kind: str) -> None:
    """Planted: the same ids with segment ids all 0 are another sentence pair to the head."""
    model = tiny_model(kind)
    flat = run(model, model.tokenizer(*PAIR)["input_ids"])
    out = theirs(model, "AutoModelForNextSentencePrediction", *PAIR)
    assert float(np.abs(flat.logits[0] - out.logits[0].numpy()).max()) > 1e-2


@pytest.mark.parametrize("kind", BOTH)
def test_both_heads_are_those_of_transformers_own_call(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace, out = run(model, PAIR), theirs(model, "AutoModelForPreTraining", *PAIR)
    pair = out.sop_logits if kind == "albert_pretrained" else out.seq_relationship_logits
    assert trace.pair_logits is not None
    np.testing.assert_allclose(trace.logits, out.prediction_logits[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(trace.pair_logits.numpy(), pair[0].numpy(), atol=1e-5)
    assert_weights(trace, out)
    assert model.info.pair_head is not None
    shares = dict(zip(model.info.pair_head.labels, pair[0].double().softmax(-1).tolist(), strict=True))
    found = said_of_pair(model, trace)
    assert {candidate.label: candidate.probability for candidate in found} == pytest.approx(shares, abs=1e-6)
    assert found[0].logit >= found[1].logit


@pytest.mark.parametrize("kind", BOTH)
def test_the_check_compares_both_heads(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace, encoded = run(model, PAIR), model.encode(PAIR)
    assert compare_with_eager(model, encoded, trace).logit_difference <= 1e-5
    assert trace.pair_logits is not None
    swapped = replace(trace, pair_logits=trace.pair_logits.flip(0))
    assert compare_with_eager(model, encoded, swapped).logit_difference > 1e-3


def test_of_one_text_nothing_is_said_of_a_pair(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_pretrained")
    trace = run(model, tiny.SENTENCE)
    assert said_of_pair(model, trace) == ()
    assert predict(model, trace, [1])[0].candidates  # and words as ever


def test_what_was_said_of_the_pair_before_a_change(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_pretrained")
    before, after = run(model, PAIR), run(model, PAIR, interventions=[Mask("causal")])
    was = {candidate.id: candidate.probability for candidate in said_of_pair(model, before)}
    for candidate in said_of_pair(model, after, before):
        assert candidate.before == pytest.approx(was[candidate.id], abs=1e-9)
        assert abs(candidate.probability - was[candidate.id]) > 1e-4


def test_a_pair_head_that_is_not_in_the_files_is_left_out(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    folder = tmp_path / "words-only"
    shutil.copytree(tiny_folder("bert_pretrained"), folder)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: t for name, t in tensors.items() if "seq_relationship" not in name and "pooler" not in name}
    save_file(kept, folder / "model.safetensors")
    model = open_checkpoint(folder)
    assert (model.info.family, model.info.pair_head) == ("masked", None)
    trace = run(model, PAIR)
    assert trace.pair_logits is None
    whole = run(open_checkpoint(tiny_folder("bert_pretrained")), PAIR)
    np.testing.assert_array_equal(trace.logits, whole.logits)


def test_a_head_for_pairs_that_is_handed_over(tiny_model: TinyModel) -> None:
    folder = tiny_model("bert_pretrained")
    given = adopt(transformers.AutoModelForPreTraining.from_pretrained(folder.info.folder).eval(), folder.tokenizer)
    try:
        trace = run(given, PAIR)
        ours = run(folder, PAIR)
        np.testing.assert_array_equal(trace.logits, ours.logits)
        assert trace.pair_logits is not None
        assert ours.pair_logits is not None
        assert torch.equal(trace.pair_logits, ours.pair_logits)
    finally:
        given.release()


def test_a_discriminator_says_of_each_token_whether_it_was_replaced(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    folder = tmp_path / "discriminator"
    shutil.copytree(tiny_folder("electra_discriminator"), folder)
    tensors, bias = load_file(folder / "model.safetensors"), "discriminator_predictions.dense_prediction.bias"
    middle = float(np.median(run(open_checkpoint(folder), tiny.SENTENCE).logits))  # so that it says both
    save_file({**tensors, bias: tensors[bias] - middle - 1e-3}, folder / "model.safetensors")
    model = open_checkpoint(folder)
    trace, out = run(model, tiny.SENTENCE), theirs(model, "AutoModelForPreTraining", tiny.SENTENCE)
    assert trace.logits.shape == (len(trace.tokens), 1)
    np.testing.assert_allclose(trace.logits[:, 0], out.logits[0].numpy(), atol=1e-5)
    assert_weights(trace, out)
    # as ElectraForPreTraining's own documentation reads its logits: 1 is replaced
    said = torch.round((torch.sign(out.logits[0]) + 1) / 2).tolist()
    share = out.logits[0].double().sigmoid()
    best = best_of_tokens(model, trace)
    assert [candidate.label for candidate in best] == ["replaced" if one else "original" for one in said]
    assert {"replaced", "original"} == {candidate.label for candidate in best}
    expected = [float(p if one else 1 - p) for p, one in zip(share, said, strict=True)]
    np.testing.assert_allclose([candidate.probability for candidate in best], expected, atol=1e-6)
    (at,) = classes_at(model, trace, 3)
    assert at.label == "replaced"
    assert at.probability == pytest.approx(float(share[3]), abs=1e-6)


def test_the_check_compares_a_discriminator_token_by_token(tiny_model: TinyModel) -> None:
    model = tiny_model("electra_discriminator")
    trace, encoded = run(model, tiny.SENTENCE), model.encode(tiny.SENTENCE)
    assert compare_with_eager(model, encoded, trace).logit_difference <= 1e-5
    assert trace.output_logits is not None
    shifted = replace(trace, output_logits=trace.output_logits.roll(1, 0))  # the token beside
    assert compare_with_eager(model, encoded, shifted).logit_difference > 1e-3


def test_what_is_said_before_it_is_open(tiny_model: TinyModel) -> None:
    said = {line.name: line.why for line in capabilities(tiny_model("electra_discriminator").info)}
    assert said["Classifying each token"] == "original or replaced"
    said = {line.name: line.why for line in capabilities(tiny_model("bert_next").info)}
    assert said["Classifying each text"] == "2 classes: is next, is not next"
    said = {line.name: line.why for line in capabilities(tiny_model("albert_pretrained").info)}
    assert said["Filling in masks"] == "and of two texts whether the second in this order or swapped"
