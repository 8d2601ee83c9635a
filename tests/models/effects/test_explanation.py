"""Accounts of what tokens matter: held against autograd on transformers' own eager forward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attention_models import explanations, open_checkpoint, run
from attention_models.effects.rollout import mixed_with_identity, rollout
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.effects import ACCOUNTS, ExplanationRequest, ExplanationView, Metric
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Scale
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, opened
from tests.models.tiny import TinyModel

STORY = "Tom and Anna went to the park. Anna gave the ball to"


def of(view: ExplanationView, name: str) -> np.ndarray:
    values = view.of(name)
    assert values is not None
    return values


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2", "bert"])
def test_gradients_are_those_of_transformers(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    position = 4
    view = explanations(model, tiny.SENTENCE, target=7, against=9, position=position)
    theirs: Any = tiny.eager(model)
    inputs = model.encode(tiny.SENTENCE).inputs
    embeddings = theirs.get_input_embeddings()(inputs["input_ids"]).detach().requires_grad_(True)
    given = {name: t for name, t in inputs.items() if name != "input_ids"}
    out = theirs(inputs_embeds=embeddings, output_attentions=True, **given)
    for w in out.attentions:
        w.retain_grad()
    value = out.logits[0, position, 7] - out.logits[0, position, 9]
    value.backward()
    expected = (embeddings.grad * embeddings).sum(dim=-1)[0].detach().numpy()
    np.testing.assert_allclose(of(view, "gradient"), expected, atol=1e-5)
    of_weights = sum((w.grad * w)[0].sum(dim=(0, 1)) for w in out.attentions).detach().numpy()
    np.testing.assert_allclose(of(view, "attention_gradient"), of_weights, atol=1e-5)
    without = []
    for token in range(embeddings.shape[1]):
        changed = embeddings.detach().clone()
        changed[0, token] = 0
        with torch.no_grad():
            logits = theirs(inputs_embeds=changed, **given).logits[0, position]
        without.append(float(value.detach()) - float(logits[7] - logits[9]))
    np.testing.assert_allclose(of(view, "ablation"), without, atol=1e-5)


@pytest.mark.parametrize("checkpoint", ["story-gpt", "story-bert"])
def test_integrated_gradients_are_complete(checkpoint: str) -> None:
    model = open_checkpoint(checkpoint)
    view = explanations(model, STORY, position=3 if checkpoint == "story-bert" else None)
    total = of(view, "integrated").sum()
    assert view.gap <= 0.01
    assert total == pytest.approx(view.aim.value - view.baseline, rel=0.01)
    theirs: Any = tiny.eager(model)
    inputs = model.encode(STORY).inputs
    zeros = torch.zeros(1, inputs["input_ids"].shape[1], model.info.width)
    given = {name: t for name, t in inputs.items() if name != "input_ids"}
    with torch.no_grad():
        logits = theirs(inputs_embeds=zeros, **given).logits[0, view.aim.position]
    assert view.baseline == pytest.approx(float(logits[view.aim.target]), abs=1e-4)


def test_attention_and_rollout_are_of_the_weights_on_screen(story_gpt: Model) -> None:
    view = explanations(story_gpt, STORY, target=" Tom")
    trace = run(story_gpt, STORY)
    layers = [np.stack([trace.weights(s, h) for h in range(8)]).astype(np.float64).mean(axis=0) for s in trace.sites]
    np.testing.assert_allclose(of(view, "attention"), layers[-1][-1], atol=1e-7)
    np.testing.assert_allclose(of(view, "rollout"), rollout(mixed_with_identity(layers))[-1], atol=1e-7)
    assert of(view, "flow").max() <= 1 + len(trace.tokens) * 2**-24  # as its rows do, of float32 weights
    assert (of(view, "flow") + 1e-9 >= of(view, "rollout")).all()  # what is multiplied along paths can also flow
    np.testing.assert_allclose(np.diag(view.correlations), 1)
    np.testing.assert_allclose(view.correlations, view.correlations.T)
    assert [account.name for account in view.accounts] == list(ACCOUNTS)


def test_it_is_of_the_run_with_its_interventions(story_gpt: Model) -> None:
    edits = (Scale(0.5), Ablation("head", SiteRef("decoder", 5), 5))
    view = explanations(story_gpt, STORY, target=300, interventions=edits)
    assert view.aim.value == pytest.approx(float(run(story_gpt, STORY, interventions=edits).logits[-1, 300]), abs=1e-6)
    assert np.abs(of(view, "gradient") - of(explanations(story_gpt, STORY, target=300), "gradient")).max() > 1e-3


@pytest.mark.full
def test_a_long_text_has_no_flow_and_the_reason(story_gpt: Model) -> None:
    view = explanations(story_gpt, tiny.text_of(story_gpt, 60))
    account = next(account for account in view.accounts if account.name == "flow")
    assert account.values is None
    assert account.why == "A maximum flow is sought for texts of up to 40 tokens."
    assert np.isnan(view.correlations[2]).all()


@pytest.mark.parametrize(
    ("checkpoint", "dtype", "sentence"),
    [
        ("story-gpt", "bfloat16", "runs in bfloat16, in which gradients are rounded too much to be told apart"),
        ("en-es", "float32", "this model has two"),
        ("vit-quickdraw", "float32", "takes no token embeddings in one stack"),
    ],
)
def test_where_there_are_none_it_is_said(checkpoint: str, dtype: str, sentence: str) -> None:
    model = open_checkpoint(checkpoint, dtype=dtype)
    with pytest.raises(InputError, match=sentence):
        explanations(model, "sample:fish-1" if model.info.family == "vision" else "Good morning.")


def test_a_loss_is_no_answer_and_it_leaves_no_gradient_behind(story_gpt: Model) -> None:
    engine = opened("story-gpt")
    ask(engine, ForwardRequest(inputs=RunInputs(STORY), ticket=2))
    failure = ask(engine, ExplanationRequest(run=2, aim=Metric(measure="loss")))
    assert isinstance(failure, Failure)
    assert "choose one" in failure.sentence
    view = ask(engine, ExplanationRequest(run=2))
    assert isinstance(view, ExplanationView)
    assert all(p.grad is None for p in story_gpt.module.parameters())


@pytest.mark.parametrize(("kind", "position", "last"), [("gpt2", 4, 4), ("bert", 4, None)])
def test_what_a_position_cannot_see_is_said(tiny_model: TinyModel, kind: str, position: int, last: int | None) -> None:
    """Of a causal model what comes later, of one that reads both ways nothing."""
    view = explanations(tiny_model(kind), tiny.SENTENCE, position=position)
    tokens = len(view.reached)
    end = tokens - 1 if last is None else last
    np.testing.assert_array_equal(view.reached, np.arange(tokens) <= end)
    for account in view.accounts:
        assert account.values is not None
        assert not account.values[~view.reached].any(), account.name
