"""The logit as a sum of what was written: held against logits and against weights read by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import logit_attribution, open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.effects import AttributionRequest, AttributionView, Metric
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention, Scale
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, opened
from tests.models.eager import target_for
from tests.models.tiny import TinyModel

STORY = "Tom and Anna went to the park. Anna gave the ball to"
ADDING = ["gpt2", "llama", "mistral", "qwen2", "gpt_neox", "opt", "marian", "bart", "t5"]
EDITS: list[tuple[Intervention, ...]] = [
    (),
    (Scale(0.5), Ablation("head", SiteRef("decoder", 1), 0)),
    (Ablation("head", SiteRef("decoder", 1), 1, "mean"), Ablation("mlp", SiteRef("decoder", 0), None, "position", 1)),
]


def total(parts: AttributionView) -> float:
    return parts.embedding + parts.constant + sum(s.total for s in parts.sites) + sum(v for _, v in parts.networks)


@pytest.mark.short("gpt2-edits0", "llama-edits2", "opt-edits0")
@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize("kind", ["gpt2", "llama", "gpt_neox", "opt"])
def test_the_parts_sum_to_the_logit_of_transformers(tiny_model: TinyModel, kind: str, edits: Any) -> None:
    model = tiny_model(kind)
    for target, against in ((7, None), (9, 11)):
        parts = logit_attribution(model, tiny.SENTENCE, target=target, against=against, interventions=edits)
        assert parts.why == ""
        trace = run(model, tiny.SENTENCE, interventions=edits)
        said = trace.logits[-1].astype(np.float64)
        expected = said[target] - (0.0 if against is None else said[against])
        assert parts.aim.value == pytest.approx(expected, abs=1e-6)
        assert total(parts) == pytest.approx(expected, abs=1e-4)
        assert parts.remainder == pytest.approx(expected - total(parts), abs=1e-9)


@torch.no_grad()
def test_each_part_is_read_off_transformers_own_modules(story_gpt: Model) -> None:
    """Hooks on c_proj of attention and of the network; the norm's and the head's formula written out in float64."""
    theirs: Any = tiny.eager(story_gpt)
    kept: dict[str, torch.Tensor] = {}
    for layer in (2, 5):
        attention, network = theirs.transformer.h[layer].attn.c_proj, theirs.transformer.h[layer].mlp.c_proj
        attention.register_forward_pre_hook(lambda _, args, layer=layer: kept.update({f"z{layer}": args[0][0, -1]}))
        network.register_forward_hook(lambda _m, _a, out, layer=layer: kept.update({f"mlp{layer}": out[0, -1]}))
    theirs.transformer.ln_f.register_forward_pre_hook(lambda _, args: kept.update(final=args[0][0, -1]))
    ids = story_gpt.encode(STORY).inputs["input_ids"]
    theirs(ids)
    parts = logit_attribution(story_gpt, STORY, target=300)
    final, norm = kept["final"].double(), theirs.transformer.ln_f
    row = theirs.lm_head.weight[300].double() * norm.weight.double()
    direction = (row - row.mean()) / torch.sqrt(final.var(unbiased=False) + norm.eps)
    size = story_gpt.info.width // 8
    networks = dict(parts.networks)
    for layer in (2, 5):
        weight = theirs.transformer.h[layer].attn.c_proj.weight.double()
        heads = parts.sites[layer].heads
        for head in range(8):
            here = slice(head * size, (head + 1) * size)
            expected = float(kept[f"z{layer}"].double()[here] @ weight[here] @ direction)
            assert heads[head] == pytest.approx(expected, abs=1e-5)
        assert networks[SiteRef("decoder", layer)] == pytest.approx(
            float(kept[f"mlp{layer}"].double() @ direction), abs=1e-5
        )
        bias = float(theirs.transformer.h[layer].attn.c_proj.bias.double() @ direction)
        assert parts.sites[layer].bias == pytest.approx(bias, abs=1e-5)
    assert parts.constant == pytest.approx(float(theirs.lm_head.weight[300].double() @ norm.bias.double()), abs=1e-5)


def test_the_encoders_layers_write_to_no_logit(tiny_model: TinyModel) -> None:
    model = tiny_model("t5")
    parts = logit_attribution(model, tiny.SENTENCE, target=7, written=target_for(model))
    assert {part.site.stack for part in parts.sites} == {"decoder", "cross"}
    assert total(parts) == pytest.approx(parts.aim.value, abs=1e-4)


def test_a_vision_models_class() -> None:
    model = open_checkpoint("vit-cifar10")
    parts = logit_attribution(model, "sample:chelsea", position=0)
    trace = run(model, "sample:chelsea")
    assert total(parts) == pytest.approx(float(trace.logits[0].max()), abs=1e-4)
    with pytest.raises(InputError, match=r"The classes are read off at “.*”, position 0"):
        logit_attribution(model, "sample:chelsea", position=3)


@pytest.mark.parametrize(
    ("checkpoint", "text", "written", "position"),
    [("story-bert", "Tom went to the [MASK].", None, 5), ("en-es", "Good morning.", "Buenos", 1)],
)
def test_where_norms_stand_between_they_are_held(
    checkpoint: str, text: str, written: str | None, position: int
) -> None:
    engine = opened(checkpoint)
    ask(engine, ForwardRequest(inputs=RunInputs(text, target=written), ticket=2))
    view = ask(engine, AttributionRequest(run=2, aim=Metric(position=position)))
    assert isinstance(view, AttributionView)
    assert view.why == ""
    assert view.held.startswith("Held at their values in this run: the divisors of ")
    trace = run(open_checkpoint(checkpoint), text, target=written)
    assert total(view) == pytest.approx(float(trace.logits[position].max()), abs=1e-4)


@pytest.mark.short("gemma2-edits0", "bert-edits2", "marian-edits0")
@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize("kind", ["gemma2", "bert", "roberta", "marian"])
def test_parts_sum_to_the_logit_through_norms_and_caps(tiny_model: TinyModel, kind: str, edits: Any) -> None:
    model = tiny_model(kind)
    stack = model.info.predicting_stack
    moved = tuple(replace(e, site=replace(e.site, stack=stack)) if isinstance(e, Ablation) else e for e in edits)
    written = target_for(model) if model.seq2seq else None
    trace = run(model, tiny.SENTENCE, target=written, interventions=moved)
    for target, against in ((7, None), (9, 11)):
        parts = logit_attribution(
            model, tiny.SENTENCE, target=target, against=against, position=2, written=written, interventions=moved
        )
        said = trace.logits[2].astype(np.float64)
        expected = said[target] - (0.0 if against is None else said[against])
        assert total(parts) == pytest.approx(expected, abs=1e-4)
        assert np.ptp(np.concatenate([site.heads for site in parts.sites])) > 1e-3


@torch.no_grad()
def test_each_part_through_norms_is_that_of_the_closed_form(story_bert: Model) -> None:
    """Every norm of BERT, its GELU and its head written out in float64, from the answer back to the embedding."""
    text, position, target = "Tom went to the [MASK].", 5, 300
    theirs: Any = tiny.eager(story_bert)
    given: dict[Any, torch.Tensor] = {}
    gave: dict[Any, torch.Tensor] = {}

    def keep(module: Any, args: Any, out: Any) -> None:
        given[module], gave[module] = args[0][0, position].double(), out[0, position].double()

    transform, head = theirs.cls.predictions.transform, theirs.cls.predictions.decoder
    layers = theirs.bert.encoder.layer
    for layer in layers:
        for module in (layer.attention.output, layer.output):
            module.dense.register_forward_hook(keep)
            module.LayerNorm.register_forward_hook(keep)
    for module in (transform.dense, transform.LayerNorm):
        module.register_forward_hook(keep)
    theirs(**story_bert.encode(text).inputs)
    constant = float(head.bias[target])

    def before(norm: Any, direction: torch.Tensor) -> torch.Tensor:
        nonlocal constant
        constant += float(norm.bias.double() @ direction)
        x, gained = given[norm], direction * norm.weight.double()
        found: torch.Tensor = (gained - gained.mean()) / torch.sqrt(x.var(unbiased=False) + norm.eps)
        return found

    direction = before(transform.LayerNorm, head.weight[target].double())
    direction = direction * given[transform.LayerNorm] / gave[transform.dense]  # what GELU multiplied by
    constant += float(transform.dense.bias.double() @ direction)
    direction = transform.dense.weight.double().mT @ direction
    parts = logit_attribution(story_bert, text, target=target, position=position)
    networks = dict(parts.networks)
    for number in reversed(range(len(layers))):
        layer = layers[number]
        direction = before(layer.output.LayerNorm, direction)
        assert networks[SiteRef("encoder", number)] == pytest.approx(
            float(gave[layer.output.dense] @ direction), abs=1e-5
        )
        direction = before(layer.attention.output.LayerNorm, direction)
        dense = layer.attention.output.dense
        z, weight = given[dense].view(8, -1), dense.weight.double().mT.reshape(8, -1, len(direction))
        expected = torch.einsum("hs,hsw,w->h", z, weight, direction)
        np.testing.assert_allclose(parts.sites[number].heads, expected.numpy(), atol=1e-5)
        assert parts.sites[number].bias == pytest.approx(float(dense.bias.double() @ direction), abs=1e-5)
    assert parts.constant == pytest.approx(constant, abs=1e-5)


def test_a_loss_is_no_sum() -> None:
    engine = opened("story-gpt")
    ask(engine, ForwardRequest(inputs=RunInputs(STORY), ticket=2))
    failure = ask(engine, AttributionRequest(run=2, aim=Metric(measure="loss")))
    assert isinstance(failure, Failure)
    assert "A loss is no sum of what was written" in failure.sentence


def test_in_half_precision_the_remainder_is_shown() -> None:
    model = open_checkpoint("story-gpt", dtype="bfloat16")
    parts = logit_attribution(model, STORY, target=300)
    assert parts.remainder == pytest.approx(parts.aim.value - total(parts), abs=1e-9)
    assert 0 < abs(parts.remainder) < 0.05 * max(abs(parts.aim.value), 10)
