"""Other weights that give the same answer: against transformers' eager forward with these put in by hooks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import adversarial_attention, open_checkpoint, run
from attention_models.effects import adversarial_attention as counterfactual
from attention_models.effects import adversarial_attention as search
from attention_models.effects import batched_runs
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.effects import AdversarialAttentionRequest, AdversarialAttentionView, Rerun
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Cancelled
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, failure_of, opened
from tests.models.tiny import TinyModel

STORY = "Tom and Anna went to the park. Anna gave the ball to"


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "STEPS", 16)


def eager_with(model: Model, text: str, view: AdversarialAttentionView, weights: np.ndarray) -> np.ndarray:
    """The answer, (answers,) float64, of transformers' own eager forward with `weights` in the row, put in by hooks."""
    theirs: Any = tiny.eager(model)
    of_layer: dict[int, list[tuple[int, np.ndarray]]] = {}
    for (site, head), row in zip(view.heads, weights, strict=True):
        of_layer.setdefault(site.layer, []).append((head, row))
    handles = []
    for layer, rows in of_layer.items():
        values: dict[str, torch.Tensor] = {}
        if theirs.config.model_type == "gpt2":
            attention = theirs.transformer.h[layer].attn
            made_by, width, mixing = attention.c_attn, theirs.config.n_embd, attention.c_proj
        else:
            attention = theirs.bert.encoder.layer[layer].attention
            made_by, width, mixing = attention.self.value, theirs.config.hidden_size, attention.output.dense

        def keep(_m: Any, _i: Any, out: torch.Tensor, values: dict[str, torch.Tensor] = values, w: int = width) -> None:
            values["v"] = out[0, :, -w:]  # of c_attn the last third

        def put(
            _m: Any,
            given: tuple[torch.Tensor],
            values: dict[str, torch.Tensor] = values,
            rows: list[tuple[int, np.ndarray]] = rows,
            size: int = width // theirs.config.num_attention_heads,
        ) -> tuple[torch.Tensor]:
            mixed = given[0].clone()
            for head, row in rows:
                part = slice(head * size, (head + 1) * size)
                mixed[0, view.query, part] = torch.tensor(row, dtype=torch.float32) @ values["v"][:, part]
            return (mixed,)

        handles += [made_by.register_forward_hook(keep), mixing.register_forward_pre_hook(put)]
    try:
        with torch.no_grad():
            logits = theirs(**model.encode(text).inputs).logits[0]
    finally:
        for handle in handles:
            handle.remove()
    there = logits if logits.dim() == 1 else logits[view.position]
    return torch.softmax(there.double(), dim=-1).numpy()


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> float:
    middle = (p + q) / 2
    return sum(float(np.sum(x[x > 0] * np.log(x[x > 0] / middle[x > 0]))) for x in (p, q)) / 2


def check(model: Model, text: str, view: AdversarialAttentionView, rerun: Rerun) -> None:
    """What is said of a run is so in transformers'."""
    before, after = (eager_with(model, text, view, weights) for weights in (view.observed, rerun.weights))
    assert rerun.distance == pytest.approx(np.abs(after - before).sum() / 2, abs=1e-5)
    assert rerun.best.id == after.argmax()
    assert rerun.best.probability == pytest.approx(after.max(), abs=1e-5)
    assert rerun.former.id == before.argmax() == view.before.id
    assert rerun.former.probability == pytest.approx(after[before.argmax()], abs=1e-5)
    np.testing.assert_allclose(rerun.weights.sum(axis=1), 1, atol=1e-6)
    assert (rerun.weights[~view.visible] == 0).all()
    assert (rerun.weights >= 0).all()
    for own, other, divergence in zip(view.observed, rerun.weights, rerun.divergence, strict=True):
        assert divergence == pytest.approx(jensen_shannon(own, other), abs=1e-6)


@pytest.mark.short("gpt2-layer", "bert-layer")
@pytest.mark.parametrize("scope", ["head", "layer", "stack"])
@pytest.mark.parametrize("kind", ["gpt2", "bert"])
@pytest.mark.usefixtures("few_steps")
def test_what_is_found_is_so_in_a_forward_of_transformers(tiny_model: TinyModel, kind: str, scope: Any) -> None:
    model = tiny_model(kind)
    site = (model.info.predicting_stack, 1)
    view = adversarial_attention(model, tiny.SENTENCE, site, 1, scope=scope, position=4, epsilon=0.02)
    assert view.searched
    assert view.blocks_done
    assert view.moves_done
    heads = sum(stack.heads * (stack.layers if scope == "stack" else 1) for stack in model.info.stacks)
    assert len(view.heads) == (1 if scope == "head" else heads)
    trace = run(model, tiny.SENTENCE)
    for (at, head), row in zip(view.heads, view.observed, strict=True):
        np.testing.assert_allclose(row, trace.weights(at, head)[4], atol=1e-6)
    before = eager_with(model, tiny.SENTENCE, view, view.observed)
    np.testing.assert_allclose(before.max(), view.before.probability, atol=1e-5)
    check(model, tiny.SENTENCE, view, view.same)
    assert view.same.distance <= 0.02
    assert view.same.divergence.mean() > 1e-3
    for change in (view.blocked, view.moved):
        if change is not None:
            check(model, tiny.SENTENCE, view, change.rerun)
            assert change.rerun.best.id != view.before.id


@pytest.mark.full
def test_a_head_that_decides_and_what_it_takes_to_turn_it(story_gpt: Model, few_steps: None) -> None:
    """Layer 4, head 1 of story-gpt finds the name: only with its weight elsewhere it is not Tom."""
    view = adversarial_attention(story_gpt, STORY, ("decoder", 4), 1)
    check(story_gpt, STORY, view, view.same)
    assert view.moved is not None
    check(story_gpt, STORY, view, view.moved.rerun)
    assert view.before.label == "␣Tom"
    taken = view.observed[0, view.moved.source] - view.moved.rerun.weights[0, view.moved.source]
    assert taken == pytest.approx(view.moved.mass, abs=1e-6)
    assert view.moved.mass == pytest.approx(view.moved.share * view.observed[0, view.moved.source], abs=1e-9)
    # a hundredth of it less and the answer is as it was
    less = view.observed[0].copy()
    less[view.moved.source] -= 0.99 * taken
    assert view.moved.target is not None
    less[view.moved.target] += 0.99 * taken
    assert eager_with(story_gpt, STORY, view, less[None]).argmax() == view.before.id


def test_every_move_and_block_by_itself_finds_no_less(tiny_model: TinyModel, few_steps: None) -> None:
    """Against trying each, alone, in transformers."""
    model = tiny_model("gpt2")
    view = adversarial_attention(model, tiny.SENTENCE, ("decoder", 0), 0, position=3, scope="layer")
    rows, masses = view.observed, view.observed.mean(axis=0)
    blocked, moved = {}, {}
    for source in range(4):
        without = rows.copy()
        without[:, source] = 0
        without /= without.sum(axis=1, keepdims=True)
        if eager_with(model, tiny.SENTENCE, view, without).argmax() != view.before.id:
            blocked[source] = masses[source]
        for target in set(range(4)) - {source}:
            other = rows.copy()
            other[:, target] += other[:, source]
            other[:, source] = 0
            if eager_with(model, tiny.SENTENCE, view, other).argmax() != view.before.id:
                moved[source, target] = masses[source]
    assert view.moves == view.tried == 12
    assert (view.blocked is None) == (not blocked)
    assert (view.moved is None) == (not moved)
    if view.blocked is not None:
        assert view.blocked.mass == pytest.approx(min(blocked.values()), abs=1e-6)
    if view.moved is not None:
        assert view.moved.mass <= min(moved.values()) + 1e-6


@pytest.mark.full
def test_a_head_that_is_out_of_the_run_may_have_any_weights(story_gpt: Model, few_steps: None) -> None:
    skip = Ablation("head", SiteRef("decoder", 4), 1)
    view = adversarial_attention(story_gpt, STORY, ("decoder", 4), 1, interventions=(skip,))
    assert view.same.distance == pytest.approx(0, abs=1e-6)
    assert view.same.divergence[0] > 0.9 * math.log(2)
    assert view.moved is None
    assert view.blocked is None


@pytest.mark.full
def test_weights_of_cross_attention_and_of_a_picture(en_es: Model, few_steps: None) -> None:
    view = adversarial_attention(en_es, "The cat sleeps.", ("cross", 3), 0, written="El gato")
    assert view.observed.shape[1] == len(en_es.tokenize("The cat sleeps."))
    assert view.same.distance <= 0.01
    vision = open_checkpoint("vit-quickdraw")
    seen = adversarial_attention(vision, "sample:fish-1", ("encoder", 3), 0, position=0)
    assert seen.query == 0
    assert seen.same.distance <= 0.01


@pytest.mark.full
def test_one_key_leaves_nothing_to_change(story_gpt: Model, few_steps: None) -> None:
    view = adversarial_attention(story_gpt, STORY, ("decoder", 4), 1, position=0)
    assert view.same.divergence[0] == pytest.approx(0, abs=1e-9)
    assert (view.blocked, view.moved, view.moves) == (None, None, 0)


@pytest.mark.full
def test_it_comes_in_parts_and_can_be_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "STEPS", 16)
    engine = opened("story-gpt")
    ask(engine, ForwardRequest(inputs=RunInputs(STORY), ticket=2))
    request = AdversarialAttentionRequest(run=2, site=SiteRef("decoder", 4), head=1)
    first = ask(engine, request)
    assert isinstance(first, AdversarialAttentionView)
    assert 0 < first.done < 1
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 5

    with pytest.raises(Cancelled):
        ask(engine, request, stop)
    view, shares = first, [first.done]
    while view.done < 1:
        view = ask(engine, request)  # type: ignore[assignment]
        shares.append(view.done)
    assert shares == sorted(shares)
    assert view.same.divergence.mean() >= first.same.divergence.mean()
    assert view.moved is not None
    with pytest.raises(Cancelled):
        ask(engine, AdversarialAttentionRequest(run=2, site=SiteRef("decoder", 4), head=0), lambda: True)


def test_where_there_can_be_none_it_is_said() -> None:
    half = open_checkpoint("story-gpt", dtype="bfloat16")
    with pytest.raises(InputError, match="runs in bfloat16, in which gradients are rounded too much"):
        adversarial_attention(half, STORY, ("decoder", 4), 1)
    with pytest.raises(InputError, match="is a recurrent model"):
        adversarial_attention(open_checkpoint("dates-luong"), "1 May 2020", ("cross", 0), 0)
    engine = opened("en-es")
    ask(engine, ForwardRequest(inputs=RunInputs("The cat sleeps.", "El gato"), ticket=2))
    failure = failure_of(engine, AdversarialAttentionRequest(run=2, site=SiteRef("encoder", 0), head=0))
    assert "Choose one of its heads, or one of cross-attention" in failure.sentence
    failure = failure_of(engine, AdversarialAttentionRequest(run=2, site=SiteRef("cross", 0), head=0, epsilon=0.0))
    assert "more than 0 and less than 1" in failure.sentence
    failure = failure_of(engine, AdversarialAttentionRequest(run=2, site=SiteRef("cross", 0), head=0, position=99))
    assert "There is no position 99" in failure.sentence


@pytest.mark.full
def test_few_copies_at_once_find_what_many_do(
    story_gpt: Model, few_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large vocabulary or a long text fewer beginnings are run together: the search is the same."""
    many = adversarial_attention(story_gpt, STORY, ("decoder", 4), 1)
    monkeypatch.setitem(batched_runs.TOKENS_AT_ONCE, "cpu", 4 * len(story_gpt.tokenize(STORY)))
    few = adversarial_attention(story_gpt, STORY, ("decoder", 4), 1)
    np.testing.assert_allclose(few.same.weights, many.same.weights, atol=1e-3)
    assert few.moved is not None
    assert many.moved is not None
    assert (few.moved.source, few.moved.target) == (many.moved.source, many.moved.target)
    assert few.moved.mass == pytest.approx(many.moved.mass, abs=2e-3)


def test_of_a_long_row_the_moves_from_the_heaviest_keys_are_tried(
    story_gpt: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "STEPS", 1)
    monkeypatch.setattr(counterfactual, "MOST_MOVES", 20)
    view = adversarial_attention(story_gpt, STORY, ("decoder", 4), 1)
    assert (view.tried, view.moves) == (20, 182)
    assert view.moved is not None
    assert view.moved.source == int(view.observed[0].argmax())
