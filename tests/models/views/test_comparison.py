"""What changed: every figure against float64 arithmetic on two separate runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import attention_models as models
from attention_models.forward.model import Model
from attention_models.protocol.comparison import CompareRequest, CompareView
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.values import SiteRef
from attention_models.views.comparison import compare, loss
from tests.models.tiny import SENTENCE

SITE, HEAD, LAST = SiteRef("decoder", 5), 5, 13
TOLERANCE = 1e-5
THIS_HEAD, THIS_LAYER = Mask("none", site=SITE, head=HEAD), Mask("none", site=SITE)


def compared(model: Model, *items: Intervention, text: str = SENTENCE, site: SiteRef = SITE) -> CompareView:
    before = models.run(model, text)
    after = models.run(model, text, interventions=items)
    position = len(before.tokens) - 1
    return compare(CompareRequest(run=1, site=site, head=HEAD, position=position), model, before, after)


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def test_every_figure_is_the_float64_one(story_gpt):
    item = Scale(0.4, site=SITE, head=HEAD)
    view = compared(story_gpt, item)
    before, after = models.run(story_gpt, SENTENCE), models.run(story_gpt, SENTENCE, interventions=[item])
    x = before.inputs[5]
    q, k = (t[0, HEAD].double().numpy() for t in (x.query, x.key))
    for factor, shown, bits, top in (
        (1.0, view.before, view.entropy_before, view.top_key_before),
        (0.4, view.after, view.entropy_after, view.top_key_after),
    ):
        scores = np.where(np.tri(len(q), dtype=bool), q @ k.T * factor / math.sqrt(32), -np.inf)
        w = softmax(scores)
        np.testing.assert_allclose(shown, w, atol=TOLERANCE)
        plain = np.where(w > 0, w, 1)
        np.testing.assert_allclose(bits, -(w * np.log2(plain)).sum(axis=1), atol=1e-4)
        np.testing.assert_array_equal(top, w.argmax(axis=1))
    np.testing.assert_allclose(view.difference, view.after.astype(np.float64) - view.before, atol=1e-7)
    assert view.largest_difference == pytest.approx(np.abs(view.after - view.before).max(), abs=1e-7)
    assert view.scale == pytest.approx(1 / math.sqrt(32))
    assert view.head_dim == 32
    assert view.factor == pytest.approx(0.4)
    p_before, p_after = softmax(before.logits[LAST]), softmax(after.logits[LAST])
    best = np.argsort(-np.maximum(p_before, p_after))[:6]
    assert [change.id for change in view.token_changes] == best.tolist()
    for change in view.token_changes:
        assert change.before == pytest.approx(p_before[change.id], abs=1e-6)
        assert change.after == pytest.approx(p_after[change.id], abs=1e-6)
        assert change.label == story_gpt.piece_label(change.id)
    ids = [token.id for token in before.tokens[1:]]
    for trace, shown_loss in ((before, view.loss_before), (after, view.loss_after)):
        p = softmax(trace.logits[:-1])
        assert shown_loss == pytest.approx(-np.log(p[np.arange(len(ids)), ids]).mean(), abs=TOLERANCE)
    assert not view.peeks
    assert view.dead_rows == ()


def test_opening_the_future_late_lets_it_peek_and_opening_it_everywhere_confuses(story_gpt):
    head, layer, everywhere = (compared(story_gpt, item) for item in (THIS_HEAD, THIS_LAYER, Mask("none")))
    assert head.loss_before == pytest.approx(2.995, abs=5e-4)
    assert head.loss_after == pytest.approx(2.685, abs=5e-3)
    assert layer.loss_after == pytest.approx(2.54, abs=5e-3)
    assert everywhere.loss_after == pytest.approx(3.07, abs=5e-3)
    assert head.peeks
    assert layer.peeks
    assert everywhere.peeks


def test_without_interventions_both_sides_are_the_same(story_gpt):
    view = compared(story_gpt)
    np.testing.assert_array_equal(view.before, view.after)
    assert view.largest_difference == 0
    assert view.loss_before == view.loss_after
    assert all(change.before == change.after for change in view.token_changes)
    assert (view.factor, view.peeks) == (1.0, False)


@pytest.mark.parametrize(
    ("item", "peeks"),
    [
        (Mask("window", window=3), False),
        (Mask("prefix", window=1), False),  # the first token is seen by all as it is
        (Mask("prefix", window=2), True),
        (Mask("painted", cells=((5, 2, True),)), False),
        (Mask("painted", cells=((5, 6, True),)), True),
        (Mask("painted", cells=((5, 6, False),)), False),
        (Mask("none", site=SiteRef("decoder", 0), head=7), True),  # not at the head that is compared
    ],
)
def test_peeking_is_to_look_at_a_later_token_that_was_hidden(story_gpt, item, peeks):
    assert compared(story_gpt, item).peeks is peeks


def test_a_model_that_sees_everything_does_not_peek(story_bert):
    view = compared(story_bert, Mask("full"), text="Tom lost his [MASK].", site=SiteRef("encoder", 5))
    assert not view.peeks
    assert view.loss_before is None
    assert view.loss_after is None
    assert view.token_changes


def test_rows_that_may_look_at_nothing_are_named(story_gpt):
    cells = tuple((2, key, False) for key in range(3))
    view = compared(story_gpt, Mask("painted", cells=cells, site=SITE, head=HEAD))
    assert view.dead_rows == (2,)
    assert not view.after[2].any()
    assert view.entropy_after[2] == 0
    assert np.isfinite([change.after for change in view.token_changes]).all()


def test_a_model_without_a_head_has_neither_tokens_nor_loss(tiny_model):
    model = tiny_model("bert_bare")
    before, after = models.run(model, SENTENCE), models.run(model, SENTENCE, interventions=[Scale(0.5)])
    view = compare(CompareRequest(run=1, site=SiteRef("encoder", 0), head=0, position=0), model, before, after)
    assert view.token_changes == ()
    assert (view.loss_before, view.prediction_after) == (None, None)


def test_a_text_of_one_token_has_no_loss(story_gpt):
    assert loss(story_gpt, models.run(story_gpt, [5])) is None


@pytest.mark.parametrize("name", ["bert_classifier", "bert_several", "llama_reward", "bert_tagger", "bert_answerer"])
def test_a_classifiers_classes_change_as_two_calls_say(tiny_model, name):
    """Shares as its head makes them, plain numbers as they are, ends of an answer over the tokens."""
    model, item = tiny_model(name), Mask("window", window=2)
    before, after = (models.run(model, SENTENCE, interventions=items) for items in ((), (item,)))
    request = CompareRequest(run=1, site=before.sites[0].ref, head=0, position=4, top=100)
    view = compare(request, model, before, after)
    assert view.prediction_after is None
    found = {change.id: (change.before, change.after) for change in view.token_changes}
    for side, trace in enumerate((before, after)):
        z = trace.logits.astype(np.float64)
        wanted = {
            "bert_several": 1 / (1 + np.exp(-z[4])),
            "llama_reward": z[4],
            "bert_answerer": softmax(z.T).T.ravel(),
        }.get(name, softmax(z[4]))
        np.testing.assert_allclose([found[i][side] for i in range(len(wanted))], wanted, atol=1e-6)
    assert {change.is_share for change in view.token_changes} == {name != "llama_reward"}
    assert any(was != now for was, now in found.values())
    if name == "bert_answerer":
        best = view.token_changes[0]
        assert best.label == f"{('start', 'end')[best.id % 2]}: {before.tokens[best.id // 2].label}"
