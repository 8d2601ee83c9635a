"""Logits that are made where they are looked at, against the model's own forward pass over the whole text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import open_checkpoint, run
from attention_models.attention.rounding import product_off
from attention_models.decoding.cached_run import CachedRun
from attention_models.engine.engine import Engine
from attention_models.forward import logits
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.forward.trace import Trace
from attention_models.protocol.positions import ShuffleRequest, ShuffleView
from attention_models.views.comparison import loss
from tests.models import tiny
from tests.models.asking import ask, forward, opened

MORE = {  # a head whose numbers are multiplied, and one whose numbers are divided
    "cohere": tiny.Kind(
        "CohereForCausalLM", "CohereConfig", {**tiny._LLAMA, "pad_token_id": 0, "logit_scale": 0.3}, tiny.byte_level
    ),
    "granite": tiny.Kind(
        "GraniteForCausalLM", "GraniteConfig", {**tiny._LLAMA, "logits_scaling": 3.0}, tiny.byte_level
    ),
}
LATER = ["gpt2", "llama", "gemma2", "gpt_oss", "cohere", "granite"]
KEPT = ["bert", "albert", "t5", "marian"]
ROWS = [11, 0, 5, 5]


@pytest.fixture(autouse=True)
def more_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in MORE.items():
        monkeypatch.setitem(tiny.KINDS, name, kind)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logits, "KEPT_BYTES", 0)


def own(model: Model) -> np.ndarray:
    """Every position's logits, as transformers alone has them."""
    array: np.ndarray = tiny.eager_run(model, tiny.SENTENCE).logits[0].double().numpy()
    return array


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("kind", LATER)
def test_they_are_the_model_s_own(kind: str, tmp_path: Path) -> None:
    model = open_checkpoint(tiny.save(kind, tmp_path / kind))
    trace, expected = run(model, tiny.SENTENCE), own(model)
    assert trace.output_logits is None
    assert trace.has_logits
    tolerance = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(trace.logits_at(ROWS).numpy(), expected[ROWS], atol=tolerance, rtol=0)
    np.testing.assert_allclose(trace.logits, expected, atol=tolerance, rtol=0)
    # the model itself is as it was
    assert "forward" not in vars(model.module.base_model)
    np.testing.assert_allclose(model.forward(model.encode(tiny.SENTENCE).inputs).logits[0], expected, atol=tolerance)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("kind", KEPT)
def test_a_family_that_does_not_promise_it_keeps_them(kind: str, tmp_path: Path) -> None:
    trace = run(open_checkpoint(tiny.save(kind, tmp_path / kind)), tiny.SENTENCE)
    assert trace.later_logits is None
    assert trace.output_logits is not None


def test_a_short_text_keeps_them(story_gpt: Model) -> None:
    trace = run(story_gpt, tiny.SENTENCE)
    assert trace.later_logits is None
    assert trace.output_logits is not None


def test_what_is_kept_instead_is_counted(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = run(story_gpt, tiny.SENTENCE)
    monkeypatch.setattr(logits, "KEPT_BYTES", 0)
    trace = run(story_gpt, tiny.SENTENCE)
    hidden = len(trace.tokens) * story_gpt.info.width * 4
    assert trace.nbytes == kept.nbytes - len(trace.tokens) * story_gpt.info.vocabulary * 4 + hidden


def test_predictions_loss_and_order_are_the_same(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run(story_gpt, tiny.SENTENCE)
    engine = opened("story-gpt")
    ran = forward(engine, tiny.SENTENCE)
    moved = [engine_shuffle(engine, ran.run)]
    monkeypatch.setattr(logits, "KEPT_BYTES", 0)
    after = run(story_gpt, tiny.SENTENCE)
    moved.append(engine_shuffle(engine, ran.run))
    np.testing.assert_allclose(moved[0], moved[1], atol=1e-4)
    off = log_probabilities_off(story_gpt, after)  # (tokens, vocabulary)
    following = [token.id for token in after.tokens[1:]]
    room = float(off[range(len(following)), following].mean())
    assert room < 1e-4
    assert loss(story_gpt, after) == pytest.approx(loss(story_gpt, before), abs=room)
    for mine, kept in zip(predict(story_gpt, after, [3, 12]), predict(story_gpt, before, [3, 12]), strict=True):
        assert [c.id for c in mine.candidates] == [c.id for c in kept.candidates]
        first, room = mine.candidates[0], float(off[mine.position, mine.candidates[0].id])
        assert first.probability == pytest.approx(kept.candidates[0].probability, rel=room)


def log_probabilities_off(model: Model, trace: Trace) -> torch.Tensor:
    """How far two computations in float32 may part, whatever the order in which a processor adds their products.

    To first order: log p = l - log sum exp l, whose second part moves by the mean of what logits do, weighed with p.
    """
    assert trace.later_logits is not None
    assert model.output_head is not None
    hidden, weight = trace.later_logits.hidden, model.output_head.weight  # (tokens, width), (vocabulary, width)
    off = product_off(hidden.abs() @ weight.abs().T, hidden.shape[-1])
    p = torch.from_numpy(trace.logits).softmax(-1)
    return 2 * (off + (p * off).sum(-1, keepdim=True))


def engine_shuffle(engine: Engine, number: int) -> np.ndarray:
    view = ask(engine, ShuffleRequest(run=number))
    assert isinstance(view, ShuffleView)
    return view.on.distances


def test_what_was_wrapped_around_the_body_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logits, "KEPT_BYTES", 0)
    model = open_checkpoint(tiny.save("llama", tmp_path / "llama"))
    body: Any = model.module.base_model
    passes = []
    own_forward = body.forward

    def wrapped(*args: Any, **named: Any) -> Any:
        passes.append(1)
        return own_forward(*args, **named)

    body.forward = wrapped  # as accelerate does
    trace = run(model, tiny.SENTENCE)
    assert torch.isfinite(trace.logits_at([0, 3])).all()
    assert len(passes) == 1
    assert body.forward is wrapped


def test_the_body_is_back_after_a_fault(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logits, "KEPT_BYTES", 0)
    trace = run(story_gpt, tiny.SENTENCE)
    with pytest.raises(IndexError):
        trace.logits_at([10_000])
    assert "forward" not in vars(story_gpt.module.base_model)
    assert torch.isfinite(trace.logits_at([0])).all()


@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "marian"])
def test_writing_needs_the_last_ones_alone(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = open_checkpoint(tiny.save(kind, tmp_path / kind))
    whole = CachedRun(model, model.encode(tiny.SENTENCE)).logits()
    monkeypatch.setattr(logits, "KEPT_BYTES", 0)
    assert logits.last_only(model, 5) == ({} if kind == "marian" else {"logits_to_keep": 1})
    torch.testing.assert_close(CachedRun(model, model.encode(tiny.SENTENCE)).logits(), whole, atol=1e-5, rtol=1e-5)
