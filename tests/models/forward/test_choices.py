"""Models that choose between texts, against transformers' own call on one question with its choices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attention_models import Mask, adopt, open_checkpoint, run
from attention_models.forward.batches import encode_batch
from attention_models.forward.classes import classes_at, labels_of
from attention_models.forward.model import Model
from attention_models.opening.describe import capabilities
from attention_models.protocol.batch import Batch
from attention_models.protocol.cell import CellRequest
from attention_models.trust.check import compare_with_eager
from attention_models.views.cell import cell_view
from attention_models.views.comparison import token_changes
from attention_models.views.residual import IN_BETWEEN, logit_direction
from tests.models import tiny
from tests.models.tiny import TinyModel

KINDS = ("bert_choice", "distilbert_choice", "roberta_choice", "deberta_choice")
FIRST = "Tom and Anna went to the park."
CHOICES = ("They ran.", "It was a green fish in the old sea.", "No.")
PAIRS = [(FIRST, choice) for choice in CHOICES]


def theirs(model: Model, pairs: list[tuple[str, str]] = PAIRS) -> Any:
    """transformers' own auto class on its own tokenizer's batch, (1, choices, tokens), padded on the right.

    Of padding on the left it would count the tokens, and read the first for the pair.
    """
    folder = model.info.folder
    kind = transformers.AutoModelForMultipleChoice
    module = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, padding_side="right")
    firsts, seconds = zip(*pairs, strict=True)
    inputs = tokenizer([*firsts], [*seconds], padding=True, return_tensors="pt", return_token_type_ids=True)
    if not getattr(model.config, "type_vocab_size", 0) > 1:
        del inputs["token_type_ids"]
    with torch.no_grad():
        return module(**{name: tensor[None] for name, tensor in inputs.items()}, output_attentions=True)


@pytest.mark.parametrize("padding", ["right", "left"])
@pytest.mark.parametrize("kind", KINDS)
def test_choices_have_the_logits_and_weights_of_transformers_own_call(
    tiny_model: TinyModel, kind: str, padding: Any
) -> None:
    model = tiny_model(kind)
    traces, out = run(model, PAIRS, padding=padding), theirs(model)
    for row, trace in enumerate(traces):
        assert trace.logits.shape == (len(trace.tokens), len(CHOICES))
        np.testing.assert_allclose(trace.logits, np.broadcast_to(out.logits.numpy(), trace.logits.shape), atol=1e-5)
        real = [i for i, token in enumerate(trace.tokens) if not token.padding]
        for site, weights in zip(trace.sites, out.attentions, strict=True):
            for head in range(site.heads):
                expected = weights[row, head, : len(real), : len(real)].numpy()
                np.testing.assert_allclose(trace.weights(site, head)[np.ix_(real, real)], expected, atol=1e-6)
    shares = out.logits[0].double().softmax(-1)
    order = out.logits[0].argsort(descending=True).tolist()
    found = classes_at(model, traces[1], 0)
    assert [candidate.id for candidate in found] == order
    assert [candidate.label for candidate in found] == [f"{i + 1}: {CHOICES[i]}" for i in order]
    np.testing.assert_allclose([candidate.probability for candidate in found], shares[order], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_check_compares_all_choices(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    traces, encoded = run(model, PAIRS), encode_batch(model, Batch.of(PAIRS))
    for one, trace in zip(encoded, traces, strict=True):
        found = compare_with_eager(model, one, trace)
        assert max(found.logit_difference, found.weight_difference) <= 1e-5
        assert trace.output_logits is not None
        swapped = replace(trace, output_logits=trace.output_logits.flip(-1))  # the scores of other choices
        assert compare_with_eager(model, one, swapped).logit_difference > 1e-3


def test_a_lost_choice_is_seen(tiny_model: TinyModel) -> None:
    """Planted: a run of two of the three choices says other shares, and longer rows of padding."""
    model = tiny_model("bert_choice")
    fewer = run(model, PAIRS[:2])
    assert len(classes_at(model, fewer[0], 0)) == 2
    out = theirs(model).logits[0].double().softmax(-1)
    assert abs(classes_at(model, fewer[0], 0)[0].probability - float(out.max())) > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_alone_is_one_choice(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace, out = run(model, PAIRS[0]), theirs(model, PAIRS[:1])
    np.testing.assert_allclose(trace.logits[0], out.logits[0].numpy(), atol=1e-5)
    (one,) = classes_at(model, trace, 0)
    assert (one.label, one.probability) == ("choice 1", 1.0)


def test_before_and_after_are_of_the_choices(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_choice")
    before, after = run(model, PAIRS), run(model, PAIRS, interventions=[Mask("causal")])
    changes = token_changes(model, before[2], after[2], 0, 10)
    was = torch.tensor(before[0].logits[0]).double().softmax(-1)
    now = torch.tensor(after[0].logits[0]).double().softmax(-1)
    assert sorted(change.label for change in changes) == [f"{i}: {text}" for i, text in enumerate(CHOICES, start=1)]
    for change in changes:
        assert change.before == pytest.approx(float(was[change.id]), abs=1e-6)
        assert change.after == pytest.approx(float(now[change.id]), abs=1e-6)
    assert float((was - now).abs().max()) > 1e-3


def test_no_write_adds_to_the_score_of_a_choice(tmp_path: Path) -> None:
    # its blocks add to the stream, so that only the pooler stands between
    normed_before = replace(tiny.KINDS["megatron_next"], architecture="MegatronBertForMultipleChoice")
    model = open_checkpoint(tiny.save(normed_before, tmp_path / "choice"))
    trace = run(model, PAIRS)[1]
    for choice in range(3):
        assert logit_direction(model, trace, "encoder", 0, choice) == (None, IN_BETWEEN)


def test_a_cell_names_the_choices(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_choice")
    trace = run(model, PAIRS)[1]
    for choice, text in enumerate(CHOICES):
        request = CellRequest(run=1, site=trace.sites[0].ref, head=0, query=0, key=1, target=choice)
        view = cell_view(request, model, trace)
        assert (view.target_label, view.effect) == (f"{choice + 1}: {text}", None)
        assert view.logit == pytest.approx(float(trace.logits[0, choice]))


def test_long_choices_are_named_in_short(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_choice")
    long = "the park of the cat " * 4
    trace = run(model, [(FIRST, long), (FIRST, "No.")])[0]
    assert model.info.class_head is not None
    first, second = labels_of(model.info.class_head, trace)
    assert (len(first), first[-1], second) == (63, "…", "2: No.")


def test_one_that_is_handed_over_chooses_too(tiny_model: TinyModel) -> None:
    folder = tiny_model("bert_choice")
    module = transformers.AutoModelForMultipleChoice.from_pretrained(folder.info.folder).eval()
    given = adopt(module, folder.tokenizer)
    try:
        logits = run(given, PAIRS)[0].logits[0]
    finally:
        given.release()
    np.testing.assert_allclose(logits, theirs(folder).logits[0].numpy(), atol=1e-5)


def test_what_is_said_before_it_is_open(tiny_model: TinyModel) -> None:
    info = tiny_model("bert_choice").info
    assert info.class_head is not None
    assert (info.family, info.class_head.of, info.class_head.scale, info.wordless) == (
        "encoder",
        "choice",
        "softmax",
        "",
    )
    assert {line.name: line.works for line in capabilities(info)}["Choosing"]


def test_a_text_in_ids_runs(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_choice")
    with torch.no_grad():
        out = tiny.eager(model)(input_ids=torch.tensor([[[2, 5, 6, 3]]]))
    np.testing.assert_allclose(run(model, [2, 5, 6, 3]).logits[0], out.logits[0].numpy(), atol=1e-5)
