"""Families beyond those of `tests.models.tiny`: what their code in transformers does is found without their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_models import open_checkpoint
from attention_models.flow.block import answer
from attention_models.flow.model import answer as flow_answer
from attention_models.forward.model import Model
from attention_models.protocol.flow import FeedForwardBox, FlowRequest, NormBox, SumBox
from tests.models import tiny
from tests.models.flow.blocks import assert_adds_up, close, context_of, request
from tests.models.tiny import _LLAMA, Kind, byte_level

_GPTJ = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4, "bos_token_id": 0}
_PLAIN = {**_LLAMA, "num_hidden_layers": 2, "pad_token_id": 0}
_NO_GROUPS = {name: value for name, value in _PLAIN.items() if name not in ("num_key_value_heads", "head_dim")}
_FALCON = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "bos_token_id": 0, "eos_token_id": 0}
_EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}

MORE = {
    "mixtral": Kind("MixtralForCausalLM", "MixtralConfig", {**_PLAIN, **_EXPERTS}, byte_level),
    "qwen3_moe": Kind(
        "Qwen3MoeForCausalLM", "Qwen3MoeConfig", {**_PLAIN, **_EXPERTS, "moe_intermediate_size": 24}, byte_level
    ),
    "olmo2": Kind("Olmo2ForCausalLM", "Olmo2Config", _PLAIN, byte_level),
    "gptj": Kind("GPTJForCausalLM", "GPTJConfig", _GPTJ, byte_level),
    "falcon": Kind("FalconForCausalLM", "FalconConfig", _FALCON, byte_level),
    "cohere": Kind("CohereForCausalLM", "CohereConfig", _PLAIN, byte_level),
    "phi": Kind("PhiForCausalLM", "PhiConfig", _NO_GROUPS, byte_level),
    "granite": Kind("GraniteForCausalLM", "GraniteConfig", {**_PLAIN, "residual_multiplier": 0.25}, byte_level),
    "starcoder2": Kind("Starcoder2ForCausalLM", "Starcoder2Config", _PLAIN, byte_level),
    "stablelm": Kind("StableLmForCausalLM", "StableLmConfig", _PLAIN, byte_level),
}

PLACED = {  # where norms stand, and whether attention and network read the same stream
    "mixtral": ("pre", False),
    "qwen3_moe": ("pre", False),
    "olmo2": ("write", False),
    "gptj": ("pre", True),
    "falcon": ("pre", True),
    "cohere": ("pre", True),
    "phi": ("pre", True),
    "granite": ("pre", False),
    "starcoder2": ("pre", False),
    "stablelm": ("pre", False),
}


@pytest.fixture
def opened(tmp_path_factory, monkeypatch):
    def open_(kind: str) -> Model:
        monkeypatch.setitem(tiny.KINDS, kind, MORE[kind])
        folder: Path = tmp_path_factory.mktemp(kind)
        return open_checkpoint(tiny.save(kind, folder / kind))

    return open_


@pytest.mark.short("qwen3_moe", "falcon", "starcoder2")
@pytest.mark.parametrize("kind", MORE)
def test_a_block_is_read_and_adds_up(opened, kind):
    context = context_of(opened(kind))
    trace = context.run(1).trace
    flow = flow_answer(FlowRequest(run=1), context)
    assert flow.deviation == 0.0
    for block in flow.stacks[0].blocks:
        assert (block.placement, block.parallel) == PLACED[kind]
        assert [written.part for written in block.written] == ["attention", "feed_forward"]
        assert block.remainder.max() < 1e-5 * block.norms.max()
    for layer in (0, 1):
        view = answer(request("decoder", layer, 5), context)
        assert_adds_up(view)
        close(view.after, trace.residual["decoder"][layer + 1][5].numpy())
        assert sum(isinstance(box, FeedForwardBox) for box in view.boxes) == 1


def test_what_granite_multiplies_its_writes_by_stands_at_its_sums(opened):
    view = answer(request("decoder", 1, 5), context_of(opened("granite")))
    sums = [box for box in view.boxes if isinstance(box, SumBox)]
    assert [box.factors for box in sums] == [(1.0, 0.25), (1.0, 0.25)]
    assert "scaled" in view.effect_note


@torch.no_grad()
def test_shares_and_experts_make_what_the_mixture_gives(opened):
    """Each chosen expert's network by hand, times its share."""
    model = opened("mixtral")
    view = answer(request("decoder", 1, 5), context_of(model))
    (network,) = (box for box in view.boxes if isinstance(box, FeedForwardBox))
    assert (network.expert_count, network.hidden, network.activation, network.gated) == (4, 48, "SiLU", True)
    assert len(network.experts) == 2
    assert network.experts[0].share > network.experts[1].share
    assert sum(expert.share for expert in network.experts) == pytest.approx(1.0, abs=1e-6)
    experts: Any = model.module.model.layers[1].mlp.experts
    x = torch.tensor(network.before)
    total = torch.zeros(32)
    for expert in network.experts:
        gate, up = (experts.gate_up_proj[expert.index] @ x).chunk(2)
        total += expert.share * (experts.down_proj[expert.index] @ (torch.nn.functional.silu(gate) * up))
    close(network.after, total.numpy())


def test_a_norm_that_ignores_its_gain_is_not_taken_for_one_that_has_it(opened):
    """The module's numbers are read only where they do what their names say."""
    model = opened("starcoder2")
    norm: Any = model.module.model.layers[1].input_layernorm
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(0.5, 2.0, 32))

    def without_gain(x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, (32,), eps=norm.eps)

    norm.forward = without_gain
    view = answer(request("decoder", 1, 5), context_of(model))
    box = view.boxes[0]
    assert isinstance(box, NormBox)
    assert box.gain is None
    assert_adds_up(view)
    norm.forward = lambda x: torch.nn.functional.layer_norm(x, (32,), norm.weight.square(), norm.bias, norm.eps)
    view = answer(request("decoder", 1, 5), context_of(model))
    assert not any(isinstance(box, NormBox) and box.module.endswith("input_layernorm") for box in view.boxes)
    assert view.remainder < 1e-5 * float(np.linalg.norm(view.after))


def test_a_block_that_was_made_post_norm_is_not_taken_for_pre_norm(opened):
    """The same modules under the same names, called in another order."""
    model = opened("starcoder2")
    blocks: Any = model.module.model.layers

    def post(block: Any) -> Any:
        def forward(hidden_states: Tensor, **kwargs: Any) -> Tensor:
            attended, _ = block.self_attn(hidden_states=hidden_states, **kwargs)
            hidden_states = block.input_layernorm(hidden_states + attended)
            out: Tensor = block.post_attention_layernorm(hidden_states + block.mlp(hidden_states))
            return out

        return forward

    assert answer(request("decoder", 1, 5), context_of(opened("starcoder2"))).placement == "pre"
    for block in blocks:
        block.forward = post(block)
    view = answer(request("decoder", 1, 5), context_of(model))
    assert view.placement == "post"
    assert_adds_up(view)
    assert [box.module.rpartition(".")[2] for box in view.boxes if isinstance(box, NormBox)] == [
        "input_layernorm",
        "post_attention_layernorm",
    ]
    assert "rescales" in view.effect_note
