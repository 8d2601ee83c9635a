"""The comparison with transformers' eager attention: it holds where it should, and sees what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from attention_models import open_checkpoint, run
from attention_models.attention import attention
from attention_models.attention.inputs import WHOLE, AttentionInputs, Part
from attention_models.engine.engine import Engine
from attention_models.forward.capture import IMPLEMENTATION
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol import values
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Cancelled
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.trust import layers as trust_layers
from attention_models.trust.check import Comparison, compare_with_eager
from tests.models import tiny
from tests.models.room import room_of_recomputing
from tests.models.tiny import TinyFolder, TinyModel

Compare = Callable[..., Comparison]

KINDS = ["gpt2", "llama", "gemma2", "gpt_oss", "bert", "distilbert", "albert", "roberta", "bert_bare", "t5", "marian"]
TARGET = "La casa tiene tres"


def compared(model: Model, text: str, change: Callable[[Trace], Trace] = lambda trace: trace) -> Comparison:
    """`model` run on `text`, changed as said, and held against eager attention."""
    target = TARGET if model.seq2seq else None
    return compare_with_eager(model, model.encode(text, target), change(run(model, text, target=target)))


@pytest.mark.short("llama", "gpt_oss", "distilbert", "roberta", "t5")
@pytest.mark.parametrize("kind", KINDS)
def test_every_family_is_exact(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace = run(model, tiny.SENTENCE, target=TARGET if model.seq2seq else None)
    found = compare_with_eager(model, model.encode(tiny.SENTENCE, TARGET if model.seq2seq else None), trace)
    assert found.logit_difference == 0.0  # so the weights that were mixed are the same; those seen are computed again
    assert found.weight_difference <= min(room_of_recomputing(trace), 1e-6)
    assert found.tolerance == 1e-5


@pytest.mark.parametrize("tokens", [14, 300, 512])
def test_story_gpt_is_exact(story_gpt: Model, tokens: int) -> None:
    found = compared(story_gpt, tiny.text_of(story_gpt, tokens))
    assert found.logit_difference == 0.0
    assert found.weight_difference < 1e-6


@pytest.mark.parametrize("tokens", [14, 256])
def test_story_bert_is_exact(story_bert: Model, tokens: int) -> None:
    found = compared(story_bert, tiny.text_of(story_bert, tokens))
    assert found.logit_difference == 0.0
    assert found.weight_difference < 1e-6


def test_fused_kernel_agrees_to_rounding(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "EXACT_KEYS", 100)
    found = compared(story_gpt, tiny.text_of(story_gpt, 300))
    assert 0 < found.logit_difference < 1e-5
    assert 0 < found.weight_difference < 1e-5


# --------------------------------------------------------------------------- what it has to see


@pytest.fixture
def engine(tiny_folder: TinyFolder) -> Engine:
    engine = Engine()
    engine.run(LoadRequest(reference=str(tiny_folder("gpt2"))), lambda: False, lambda *_: None)
    return engine


def report_of(engine: Engine) -> TrustReport:
    ran = engine.run(ForwardRequest(inputs=RunInputs(tiny.SENTENCE), ticket=3), lambda: False, lambda *_: None)
    assert isinstance(ran, Ran)
    report = engine.run(TrustRequest(run=3), lambda: False, lambda *_: None)
    assert isinstance(report, TrustReport)
    return report


def off_by(amount: float) -> Callable[..., Tensor]:
    real = attention.weights

    def broken(x: AttentionInputs, part: Part = WHOLE, out: Tensor | None = None) -> Tensor:
        return real(x, part, out).add_(amount)

    return broken


def test_holds(engine: Engine) -> None:
    assert report_of(engine).holds


@pytest.mark.parametrize("amount", [1e-3, 3e-5])
def test_broken_weight_is_caught(engine: Engine, monkeypatch: pytest.MonkeyPatch, amount: float) -> None:
    monkeypatch.setattr(attention, "weights", off_by(amount))
    report = report_of(engine)
    assert not report.holds
    assert report.weight_difference > report.tolerance
    assert report.logit_difference > 0  # the broken weights mixed the values


def test_weight_broken_only_where_it_is_shown(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = run(story_gpt, tiny.SENTENCE)
    monkeypatch.setattr(attention, "weights", off_by(1e-3))
    found = compare_with_eager(story_gpt, story_gpt.encode(tiny.SENTENCE), trace)
    assert found.weight_difference == pytest.approx(1e-3, rel=1e-2)
    assert found.logit_difference == 0.0


@pytest.mark.parametrize("site", [0, 5, 7])
def test_one_wrong_number_in_any_layer_is_caught(story_gpt: Model, site: int) -> None:
    def nudged(trace: Trace) -> Trace:
        query = trace.inputs[site].query.clone()
        query[0, 6, 9] += 0.1
        inputs = list(trace.inputs)
        inputs[site] = replace(inputs[site], query=query)
        return replace(trace, inputs=tuple(inputs))

    found = compared(story_gpt, tiny.SENTENCE, nudged)
    assert found.weight_difference > 1e-4
    assert found.logit_difference == 0.0


def with_nan_logits(trace: Trace) -> Trace:
    assert trace.output_logits is not None
    logits = trace.output_logits.clone()
    logits[3, 17] = torch.nan
    return replace(trace, output_logits=logits)


def with_nan_key(trace: Trace) -> Trace:
    key = trace.inputs[2].key.clone()
    key[0, 1, 4, 0] = torch.nan
    inputs = (*trace.inputs[:2], replace(trace.inputs[2], key=key), *trace.inputs[3:])
    return replace(trace, inputs=inputs)


def test_no_number_is_infinitely_far(story_gpt: Model) -> None:
    assert compared(story_gpt, tiny.SENTENCE, with_nan_logits).logit_difference == math.inf
    assert compared(story_gpt, tiny.SENTENCE, with_nan_key).weight_difference == math.inf


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_module_that_gives_no_numbers_vouches_for_nothing(tiny_folder: TinyFolder, bad: float) -> None:
    model = open_checkpoint(tiny_folder("gpt2"))

    def broken_since(trace: Trace) -> Trace:  # a run of such a module would be refused
        module: Any = model.module
        module.transformer.h[1].attn.c_attn.weight[0, 0] = bad
        return trace

    found = compared(model, tiny.SENTENCE, broken_since)
    assert found.logit_difference == math.inf
    assert found.weight_difference == math.inf


def test_site_that_was_not_seen_is_not_vouched_for(story_gpt: Model) -> None:
    def renamed(trace: Trace) -> Trace:
        return replace(trace, sites=(*trace.sites[:-1], replace(trace.sites[-1], module="elsewhere")))

    found = compared(story_gpt, tiny.SENTENCE, renamed)
    assert found.weight_difference == math.inf
    assert found.logit_difference == 0.0


@pytest.mark.parametrize(
    ("logits", "weights", "holds"),
    [
        (0.0, 0.0, True),
        (1e-5, 1e-5, True),
        (2e-5, 0.0, False),
        (0.0, 2e-5, False),
        (math.inf, 0.0, False),
        (math.nan, 0.0, False),
        (0.0, math.nan, False),
    ],
)
def test_report_holds(logits: float, weights: float, holds: bool) -> None:
    report = TrustReport(
        request=TrustRequest(run=1),
        logit_difference=logits,
        weight_difference=weights,
        tolerance=1e-5,
        seconds=0.0,
    )
    assert report.holds is holds


@pytest.mark.parametrize(
    ("rounding", "logits", "holds"),
    [(0.0, 0.0, True), (1.0, 1e-2, True), (1.1, 0.0, False), (0.5, 2e-2, False), (math.nan, 0.0, False)],
)
def test_report_of_half_precision_holds(rounding: float, logits: float, holds: bool) -> None:
    report = TrustReport(
        request=TrustRequest(run=1),
        logit_difference=logits,
        weight_difference=0.0,
        tolerance=1e-5,
        logit_tolerance=1e-2,
        rounding=rounding,
        seconds=0.0,
    )
    assert report.holds is holds


# --------------------------------------------------------------------------- leaves the model as it was


def assert_as_it_was(model: Model, trace: Trace) -> None:
    assert model.config._attn_implementation == IMPLEMENTATION
    again = run(model, tiny.SENTENCE)
    assert len(again.sites) == len(trace.sites)
    assert (again.logits == trace.logits).all()


def test_model_is_left_as_it_was(story_gpt: Model) -> None:
    trace = run(story_gpt, tiny.SENTENCE)
    hooks = [len(module._forward_hooks) for module in story_gpt.module.modules()]
    compare_with_eager(story_gpt, story_gpt.encode(tiny.SENTENCE), trace)
    assert [len(module._forward_hooks) for module in story_gpt.module.modules()] == hooks
    assert_as_it_was(story_gpt, trace)


@pytest.mark.parametrize("polls", [1, 4])
def test_model_is_left_as_it_was_when_called_off(story_gpt: Model, polls: int) -> None:
    trace = run(story_gpt, tiny.SENTENCE)
    hooks = [len(module._forward_hooks) for module in story_gpt.module.modules()]
    answers = iter([False] * (polls - 1) + [True])
    with pytest.raises(Cancelled):
        compare_with_eager(story_gpt, story_gpt.encode(tiny.SENTENCE), trace, lambda: next(answers))
    assert next(answers, None) is None
    assert [len(module._forward_hooks) for module in story_gpt.module.modules()] == hooks
    assert_as_it_was(story_gpt, trace)


# --------------------------------------------------------------------------- long texts, on some of their rows


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text counts as a long one, and a few rows are compared."""
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    monkeypatch.setattr(trust_layers, "ROWS", 5)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2", "gpt_oss", "bert", "roberta", "t5", "marian"])
def test_some_rows_of_a_long_text_hold(tiny_model: TinyModel, kind: str) -> None:
    found = compared(tiny_model(kind), tiny.SENTENCE)
    assert found.rows == 5
    assert found.weight_difference < found.tolerance
    assert found.logit_difference < found.tolerance


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "marian"])
def test_a_fused_kernel_that_is_not_trusted_is_no_reference_either(
    tiny_model: TinyModel, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise AssertionError("the fused kernel was called")

    model = tiny_model(kind)
    monkeypatch.setattr(attention, "UNTRUSTED", {"cpu"})
    for name in ("attention_models.attention.output._fused", "attention_models.trust.layers.sdpa_attention_forward"):
        monkeypatch.setattr(name, broken)
    found = compared(model, tiny.SENTENCE)
    assert found.rows == 5
    assert found.weight_difference < found.tolerance
    assert found.logit_difference < found.tolerance


@pytest.mark.usefixtures("long")
def test_some_rows_are_the_first_the_last_and_some_between(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = attention.weights

    def watched(x: AttentionInputs, part: Part = WHOLE, out: Tensor | None = None) -> Tensor:
        seen.append(part.rows)
        return real(x, part, out)

    trace = run(story_gpt, tiny.SENTENCE)
    monkeypatch.setattr(attention, "weights", watched)
    compare_with_eager(story_gpt, story_gpt.encode(tiny.SENTENCE), trace)
    last = len(trace.tokens) - 1
    assert seen == [[0, 3, 6, 10, last]] * 64


@pytest.mark.usefixtures("long")
def test_a_wrong_number_in_a_compared_row_is_caught(story_gpt: Model) -> None:
    def nudged(trace: Trace) -> Trace:
        query = trace.inputs[5].query.clone()
        query[0, 6, -1] += 0.1
        return replace(trace, inputs=(*trace.inputs[:5], replace(trace.inputs[5], query=query), *trace.inputs[6:]))

    assert compared(story_gpt, tiny.SENTENCE, nudged).weight_difference > 1e-4
    assert compared(story_gpt, tiny.SENTENCE, with_nan_key).weight_difference == math.inf


@pytest.mark.usefixtures("long")
def test_the_model_is_itself_again_after_some_rows(story_gpt: Model) -> None:
    trace = run(story_gpt, tiny.SENTENCE)
    with pytest.raises(Cancelled):
        compare_with_eager(story_gpt, story_gpt.encode(tiny.SENTENCE), trace, lambda: True)
    assert story_gpt.config._attn_implementation == IMPLEMENTATION
    assert (run(story_gpt, tiny.SENTENCE).logits == trace.logits).all()
