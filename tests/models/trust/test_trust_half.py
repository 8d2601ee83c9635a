"""The comparison with eager attention in half precision: no format's rounding turns it red, and every error does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attention_models import open_checkpoint, run
from attention_models.attention import attention
from attention_models.attention import output as mixing
from attention_models.attention.inputs import AttentionInputs
from attention_models.engine.engine import Engine
from attention_models.forward.capture import IMPLEMENTATION, Recorder
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol import values
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Cancelled
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import Placement
from attention_models.trust import check as trust
from attention_models.trust import layers as trust_layers
from attention_models.trust.check import Comparison, compare_with_eager
from tests.models import tiny
from tests.models.asking import ask
from tests.models.eager import target_for
from tests.models.opening.test_families import ALL
from tests.models.tiny import TinyFolder

Opened = Callable[..., Model]
Change = Callable[[AttentionInputs], AttentionInputs]

HALF = ["bfloat16", "float16"]
EVERY = ["float32", *HALF]
KINDS = [*(kind for _, kind in ALL), "jamba"]
TEXTS = [tiny.SENTENCE, "The black cat is sleeping on the table, and the dog is playing.", "She"]


@pytest.fixture(scope="module")
def opened(tiny_folder: TinyFolder) -> Opened:
    """A tiny checkpoint in a number format. Tests may give it other weights."""
    return cache(lambda kind, dtype: open_checkpoint(tiny_folder(kind), dtype=dtype))


def reseeded(model: Model, seed: int, size: float) -> Model:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.module.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * size)
    return model


def compared(model: Model, text: str, change: Callable[[Trace], Trace] = lambda trace: trace) -> Comparison:
    target = target_for(model)
    trace = run(model, text, target=target)
    return compare_with_eager(model, model.encode(text, target), change(trace))


def holds(found: Comparison) -> bool:
    """As `TrustReport.holds`, which has its own tests."""
    report = TrustReport(
        request=TrustRequest(run=1),
        seconds=0.0,
        logit_difference=found.logit_difference,
        weight_difference=found.weight_difference,
        tolerance=found.tolerance,
        logit_tolerance=found.logit_tolerance,
        rounding=found.rounding,
    )
    return report.holds


def treat_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "LARGEST_WHOLE", 0)
    monkeypatch.setattr(trust_layers, "ROWS", 6)


# --------------------------------------------------------------------------- what is right stays green


@pytest.mark.short(
    "gpt2-bfloat16-short",
    "mistral-float16-long",
    "gemma2-bfloat16-long",
    "gpt_oss-float16-short",
    "bert-bfloat16-long",
    "t5-float16-short",
    "t5-bfloat16-long",
    "bart-bfloat16-short",
)
@pytest.mark.parametrize("length", ["short", "long"])
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("kind", KINDS)
def test_every_family_holds(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, kind: str, dtype: str, length: str
) -> None:
    model = opened(kind, dtype)
    for seed, size in ((0, 0.3), (1, 0.3), (2, 0.6)):  # the larger ones make scores of up to a hundred
        reseeded(model, seed, size)
        for text in TEXTS:
            with monkeypatch.context() as patch:
                if length == "long":
                    treat_as_long(patch)
                found = compared(model, text)
            assert 1e-5 <= found.tolerance < 3e-4
            assert found.weight_difference < found.tolerance
            assert found.logit_difference == 0.0
            assert found.rounding is not None
            assert found.rounding < 1
            assert (found.rows > 0) == (length == "long")
            assert holds(found)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, int], Model]:
    """A T5 with heads as wide as the real ones, whose scores are not scaled: the largest are beyond 50."""

    @cache
    def folder(kind: str) -> Path:
        place = tmp_path_factory.mktemp("wide") / kind
        known = tiny.KINDS[kind]
        with pytest.MonkeyPatch.context() as patch:
            settings = {**known.settings, "d_model": 128, "d_kv": 64, "d_ff": 128}
            patch.setitem(tiny.KINDS, kind, replace(known, settings=settings))
            tiny.save(kind, place)
        file = place / "tokenizer_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "model_max_length": 1000}))
        return place

    def made(kind: str, dtype: str, seed: int) -> Model:
        model = open_checkpoint(folder(kind), dtype=dtype)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in model.module.named_parameters():
                if parameter.dim() > 1:
                    size = 3.0 if "relative" in name else 128**-0.5 * (2.0 if name.endswith("q.weight") else 1.0)
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * size)
        return model

    return made


@pytest.mark.short("t5-bfloat16-0-8-512", "t5-float16-1-8-50", "mt5-bfloat16-2-1-512")
@pytest.mark.parametrize(("words", "exact_keys"), [(1, 512), (8, 512), (8, 50)])  # products in either order
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("kind", ["t5", "mt5"])
def test_scores_that_are_not_scaled_hold(
    wide: Callable[[str, str, int], Model],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    dtype: str,
    seed: int,
    words: int,
    exact_keys: int,
) -> None:
    monkeypatch.setattr(attention, "EXACT_KEYS", exact_keys)
    model = wide(kind, dtype, seed)
    text = " ".join([tiny.SENTENCE] * words)
    trace = run(model, text, target=target_for(model))
    largest = max(float(attention.scores(x).abs().max()) for x in trace.inputs)
    assert largest > 50
    found = compare_with_eager(model, model.encode(text, target_for(model)), trace)
    assert found.tolerance == pytest.approx(max(1e-5, 2 * 2**-24 * largest), rel=0.3)
    assert found.weight_difference < found.tolerance
    assert found.rounding is not None
    assert 0.2 < found.rounding < 1
    assert holds(found)


@pytest.mark.short("0-short", "0-long")
@pytest.mark.parametrize("length", ["short", "long"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_large_scores_of_a_long_text_hold_in_float32(
    wide: Callable[[str, str, int], Model], monkeypatch: pytest.MonkeyPatch, seed: int, length: str
) -> None:
    """Of which the fused kernel makes outputs, and rounding more than is allowed from end to end."""
    monkeypatch.setattr(attention, "EXACT_KEYS", 50)
    if length == "long":
        treat_as_long(monkeypatch)
    model = wide("t5", "float32", seed)
    found = compared(model, " ".join([tiny.SENTENCE] * 8))
    assert found.tolerance < 3e-5
    assert found.weight_difference < found.tolerance
    assert found.end_to_end is not None
    assert 1e-5 < found.end_to_end < 1e-3
    assert found.rounding is not None
    assert 0 < found.rounding < 1
    assert holds(found)


@pytest.mark.parametrize("error", ["a scale a tenth too large", "keys a token on", "no bias", "no mask"])
def test_an_error_is_no_rounding_in_float32(
    wide: Callable[[str, str, int], Model], monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    monkeypatch.setattr(attention, "EXACT_KEYS", 50)
    model, change, output = wide("t5", "float32", 0), ERRORS[error][0], mixing.output
    text = " ".join([tiny.SENTENCE] * 8)
    monkeypatch.setattr(mixing, "output", lambda x: output(change(x)))
    assert not holds(compared(model, text))
    monkeypatch.setattr(trust, "_ADDED_UP", math.inf)
    found = compared(model, text)  # by the layers alone
    assert found.rounding is not None
    assert found.rounding > 1e3


@pytest.mark.full
@pytest.mark.parametrize("exact_keys", [512, 100])
@pytest.mark.parametrize("dtype", HALF)
def test_a_text_of_many_tokens_holds(monkeypatch: pytest.MonkeyPatch, dtype: str, exact_keys: int) -> None:
    monkeypatch.setattr(attention, "EXACT_KEYS", exact_keys)
    model = open_checkpoint("story-gpt", dtype=dtype)
    # the CPU multiplies matrices of float16 slowly
    found = compared(model, tiny.text_of(model, 500 if dtype == "bfloat16" else 200))
    assert found.weight_difference < (1e-6 if exact_keys == 512 else 5e-6)
    assert found.rounding is not None
    assert found.rounding < 1
    assert found.logit_difference == 0.0


@pytest.mark.short("story-bert-float16", "vit-cifar10-bfloat16")
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("reference", ["story-bert", "en-es", "vit-cifar10"])
def test_shipped_models_hold(reference: str, dtype: str) -> None:
    engine = Engine()
    ask(engine, LoadRequest(ticket=1, reference=reference, placement=Placement("cpu", dtype)))
    picture = "sample:coffee" if reference == "vit-cifar10" else ""
    target = "Tom y Ana" if reference == "en-es" else None
    ask(
        engine,
        ForwardRequest(inputs=RunInputs("" if picture else tiny.SENTENCE, target=target, picture=picture), ticket=2),
    )
    report = ask(engine, TrustRequest(run=2))
    assert isinstance(report, TrustReport)
    assert report.weight_difference < 1e-6
    assert report.holds


# --------------------------------------------------------------------------- what is wrong is red, in each format


def wider(x: AttentionInputs) -> AttentionInputs:
    """One key more for each query than it may look at."""
    assert x.mask is not None
    return replace(x, mask=x.mask | x.mask.roll(1, dims=-1))


ERRORS: dict[str, tuple[Change, list[str]]] = {
    "no mask": (lambda x: replace(x, causal=False, mask=None), ["gpt2", "llama"]),
    "a wider mask": (wider, ["mistral"]),
    "another scale": (lambda x: replace(x, scale=x.scale * 8**-0.5), ["llama", "bert", "t5"]),
    "a scale a tenth too large": (lambda x: replace(x, scale=x.scale * 1.1), ["llama", "bert", "t5"]),
    "heads in another order": (lambda x: replace(x, query=x.query.roll(1, dims=1)), ["llama", "t5"]),
    "key heads in another order": (lambda x: replace(x, key=x.key.roll(1, dims=1)), ["llama", "t5"]),
    "queries a token on": (lambda x: replace(x, query=x.query.roll(1, dims=2)), ["bert", "t5"]),
    "keys a token on": (lambda x: replace(x, key=x.key.roll(1, dims=2)), ["llama", "t5"]),
    "no bias": (lambda x: replace(x, bias=None), ["t5", "mt5"]),
    "no sinks": (lambda x: replace(x, sinks=None), ["gpt_oss"]),
    "no soft cap": (lambda x: replace(x, softcap=None), ["gemma2"]),
}
PLANTED = [(name, kind) for name, (_, kinds) in ERRORS.items() for kind in kinds]


@pytest.mark.short("*-bfloat16-long", "*-t5-float32-short")
@pytest.mark.parametrize("length", ["short", "long"])
@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize(("error", "kind"), PLANTED)
def test_an_error_is_seen_wherever_it_is_made(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, error: str, kind: str, dtype: str, length: str
) -> None:
    model, change = reseeded(opened(kind, dtype), 0, 0.3), ERRORS[error][0]
    if length == "long":
        treat_as_long(monkeypatch)
    assert holds(compared(model, tiny.SENTENCE))

    # in the figures alone
    def changed(trace: Trace) -> Trace:
        return replace(trace, inputs=tuple(change(x) for x in trace.inputs))

    assert not holds(compared(model, tiny.SENTENCE, changed))

    # in what the run goes on with alone
    output = mixing.output
    with monkeypatch.context() as patch:
        patch.setattr(mixing, "output", lambda x: output(change(x)))
        assert not holds(compared(model, tiny.SENTENCE))

    # in both, as where the model was misunderstood
    keep = Recorder.keep

    def misunderstood(self: Recorder, module: nn.Module, x: AttentionInputs, stack: str = "") -> AttentionInputs:
        return keep(self, module, change(x), stack)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "keep", misunderstood)
        assert not holds(compared(model, tiny.SENTENCE))


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("error", ["a scale a tenth too large", "keys a token on", "no bias"])
def test_an_error_is_seen_among_large_scores(
    wide: Callable[[str, str, int], Model], monkeypatch: pytest.MonkeyPatch, error: str, dtype: str
) -> None:
    """Where rounding explains most: in the outputs alone, which no float32 stands beside."""
    model, change, output = wide("t5", dtype, 0), ERRORS[error][0], mixing.output
    monkeypatch.setattr(mixing, "output", lambda x: output(change(x)))
    found = compared(model, tiny.SENTENCE)
    assert found.weight_difference < found.tolerance < 3e-5
    assert found.rounding is not None
    assert found.rounding > 1.5


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("amount", [1e-3, 3e-5])
def test_a_weight_that_is_off_in_the_window_is_seen(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, dtype: str, amount: float
) -> None:
    real = attention.weights

    def broken(*args: Any, **options: Any) -> Tensor:
        return real(*args, **options).add_(amount)

    model = opened("llama", dtype)
    assert holds(compared(model, tiny.SENTENCE))
    monkeypatch.setattr(attention, "weights", broken)
    found = compared(model, tiny.SENTENCE)
    assert found.weight_difference == pytest.approx(amount, rel=0.1)
    assert not holds(found)


@pytest.mark.parametrize("dtype", HALF)
def test_figures_of_another_layer_are_seen(opened: Opened, dtype: str) -> None:
    def crossed(trace: Trace) -> Trace:
        first, second, *others = trace.inputs
        return replace(trace, inputs=(second, first, *others))

    found = compared(reseeded(opened("llama", dtype), 0, 0.3), tiny.SENTENCE, crossed)
    assert found.rounding is not None
    assert found.rounding > 10


@pytest.mark.parametrize("dtype", HALF)
def test_logits_of_another_run_are_seen(opened: Opened, dtype: str) -> None:
    def other(trace: Trace) -> Trace:
        assert trace.output_logits is not None
        return replace(trace, output_logits=trace.output_logits.roll(1, dims=0))

    found = compared(reseeded(opened("gpt2", dtype), 0, 0.3), tiny.SENTENCE, other)
    assert found.logit_difference > found.logit_tolerance
    assert found.weight_difference < 1e-6


def test_no_number_is_infinitely_far(opened: Opened) -> None:
    def with_nan(trace: Trace) -> Trace:
        key = trace.inputs[1].key.clone()
        key[0, 1, 4, 0] = torch.nan
        return replace(trace, inputs=(trace.inputs[0], replace(trace.inputs[1], key=key), *trace.inputs[2:]))

    found = compared(reseeded(opened("gpt2", "bfloat16"), 0, 0.3), tiny.SENTENCE, with_nan)
    assert found.weight_difference == math.inf
    assert found.rounding == math.inf


@pytest.mark.parametrize("polls", [1, 6])
def test_the_model_is_as_it_was_when_called_off(opened: Opened, polls: int) -> None:
    model = reseeded(opened("gpt2", "bfloat16"), 0, 0.3)
    trace = run(model, tiny.SENTENCE)
    answers = iter([False] * (polls - 1) + [True])
    with pytest.raises(Cancelled):
        compare_with_eager(model, model.encode(tiny.SENTENCE), trace, lambda: next(answers))
    assert model.config._attn_implementation == IMPLEMENTATION
    assert (run(model, tiny.SENTENCE).logits == trace.logits).all()
