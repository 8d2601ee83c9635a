"""The neurons of experts: each chosen expert's network by hand, on what hooks saw the mixture read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_models import open_checkpoint
from attention_models.flow.block import answer
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.protocol.flow import FeedForwardBox
from tests.models import tiny
from tests.models.flow.blocks import close, context_of, request
from tests.models.flow.hooked import hooked
from tests.models.flow.test_more_families import MORE

POSITION, LAYER = 5, 1


@pytest.fixture
def opened(tmp_path_factory, monkeypatch):
    def open_(kind: str) -> Model:
        for name, made in MORE.items():
            monkeypatch.setitem(tiny.KINDS, name, made)
        folder: Path = tmp_path_factory.mktemp(kind)
        return open_checkpoint(tiny.save(kind, folder / kind))

    return open_


def _gated(gate_up: Tensor) -> Tensor:
    gate, up = gate_up.chunk(2)
    return torch.nn.functional.silu(gate) * up


def _clamped(gate_up: Tensor) -> Tensor:
    """gpt-oss: gate and up lie number by number, and are clamped at 7."""
    gate, up = gate_up[::2].clamp(max=7.0), gate_up[1::2].clamp(-7.0, 7.0)
    return (up + 1) * gate * torch.sigmoid(1.702 * gate)


def _hidden(kind: str, experts: Any, expert: int, share: float, x: Tensor) -> tuple[Tensor, Tensor, float]:
    """The hidden layer of one expert, its last matrix (hidden, width), and what its write is multiplied by."""
    first, last = experts.gate_up_proj[expert].double(), experts.down_proj[expert].double()
    if kind == "gpt_oss":
        return _clamped(x @ first + experts.gate_up_proj_bias[expert].double()), last, share
    if kind == "llama4":  # what an expert reads is multiplied, not what it writes
        return _gated(share * x @ first), last, 1.0
    return _gated(first @ x), last.T, share


def _named(box: FeedForwardBox) -> dict[tuple[int | None, int], Any]:
    return {(neuron.expert, neuron.number): neuron for neuron in box.neurons}


@pytest.mark.short("mixtral-eager", "gpt_oss-eager")
@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *((kind, way) for kind in ("mixtral", "qwen3_moe", "gpt_oss") for way in ("grouped_mm", "eager")),
        ("llama4", "its own"),
    ],
)
@torch.no_grad()
def test_the_neurons_of_chosen_experts_are_those_of_their_networks(opened, kind, way):
    model = opened(kind)
    module: Any = model.module
    block = module.model.layers[LAYER]
    mixture = block.feed_forward if kind == "llama4" else block.mlp
    if way != "its own":
        mixture.experts.config._experts_implementation = way
    context = context_of(model)
    view = answer(request("decoder", LAYER, POSITION), context)
    (box,) = (box for box in view.boxes if isinstance(box, FeedForwardBox))
    name = next(name for name, one in module.named_modules() if one is mixture)
    given, _ = hooked(model)[name][0]
    assert given is not None
    x = given.reshape(-1, given.shape[-1])[POSITION].double()
    writes: dict[tuple[int | None, int], Tensor] = {}
    activations: dict[tuple[int | None, int], float] = {}
    for chosen in box.experts:
        hidden, last, factor = _hidden(kind, mixture.experts, chosen.index, chosen.share, x)
        writes |= {(chosen.index, i): factor * hidden[i] * last[i] for i in range(len(hidden))}
        activations |= {(chosen.index, i): float(hidden[i]) for i in range(len(hidden))}
    if kind == "llama4":
        shared = mixture.shared_expert
        hidden = torch.nn.functional.silu(shared.gate_proj.weight.double() @ x) * (shared.up_proj.weight.double() @ x)
        writes |= {(None, i): hidden[i] * shared.down_proj.weight[:, i].double() for i in range(len(hidden))}
        activations |= {(None, i): float(hidden[i]) for i in range(len(hidden))}
    lengths = {key: float(write.norm()) for key, write in writes.items()}
    assert len(box.neurons) == 32
    close(np.array([n.write_norm for n in box.neurons]), np.sort(list(lengths.values()))[::-1][:32])
    assert box.positive == sum(activation > 0 for activation in activations.values())
    direction = _direction(model, context, view.target)
    assert view.effect_note == ""
    for key, neuron in _named(box).items():
        close(neuron.activation, activations[key])
        close(neuron.write_norm, lengths[key])
        assert neuron.effect is not None
        close(neuron.effect, float(writes[key] @ direction))


def _direction(model: Model, context: Context, target: int | None) -> Tensor:
    """Along which the stream at the position moves the logit of `target`."""
    module: Any = model.module
    final, norm = context.run(1).trace.residual["decoder"][-1][POSITION].double(), module.model.norm
    eps = getattr(norm, "variance_epsilon", None) or norm.eps
    row: Tensor = module.lm_head.weight[target].double()
    gain: Tensor = norm.weight.double()
    divisor: Tensor = (final.square().mean() + eps).sqrt()
    return row * gain / divisor


def test_rows_that_are_not_what_the_model_added_up_are_not_listed(opened):
    """A factor that is planted after the sum is not passed over."""
    model = opened("mixtral")
    context = context_of(model)
    view = answer(request("decoder", LAYER, POSITION), context)
    assert any(isinstance(box, FeedForwardBox) and box.neurons for box in view.boxes)
    module: Any = model.module
    experts = module.model.layers[LAYER].mlp.experts
    own = experts.forward
    experts.forward = lambda *args, **kwargs: own(*args, **kwargs) * torch.linspace(0.5, 2.0, 32)
    view = answer(request("decoder", LAYER, POSITION), context_of(model))
    (box,) = (box for box in view.boxes if isinstance(box, FeedForwardBox))
    assert len(box.experts) == 2
    assert box.neurons == ()
    assert box.positive is None
