"""Vision models, families with attention of their own, and the included models, against hooks on transformers' own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_models import open_checkpoint
from attention_models.flow.block import answer
from attention_models.flow.model import answer as flow_answer
from attention_models.forward.context import Context
from attention_models.protocol.flow import (
    BlockView,
    FlowRequest,
    HeadsBox,
    ModuleBox,
    NormBox,
    OutputBox,
    ProjectionBox,
)
from tests.models import tiny, tiny_vision
from tests.models.flow.blocks import assert_adds_up, close, context_of, request
from tests.models.flow.families import Blocks, bart, bert, gpt2
from tests.models.flow.hooked import Seen, of, seen_in

PICTURE = "sample:chelsea"
POSITION = 3

_VIT = Blocks("vit.layers.{}", "attention.o_proj", "mlp.fc2", "mlp.fc2", "pre", norm="vit.layernorm")
INCLUDED = {
    "story-gpt": {"decoder": gpt2()},
    "story-bert": {"encoder": bert()},
    "story-next": {"encoder": bert()},
    "en-es": {"encoder": bart("encoder"), "decoder": bart("decoder", "encoder_attn")},
    "vit-cifar10": {"encoder": _VIT},
    "vit-quickdraw": {"encoder": _VIT},
}


def _text(name: str) -> str:
    return {"vit-cifar10": PICTURE, "vit-quickdraw": "sample:fish-1", "en-es": "Good morning."}.get(name, tiny.SENTENCE)


@pytest.mark.short("story-bert", "vit-cifar10")
@pytest.mark.parametrize("name", INCLUDED)
def test_an_included_model_is_what_hooks_saw(name):
    model = open_checkpoint(name)
    context = context_of(model, _text(name))
    seen = seen_in(model, context.run(1).text)
    flow = flow_answer(FlowRequest(run=1), context)
    assert flow.deviation == 0.0
    assert [stack.stack for stack in flow.stacks] == list(INCLUDED[name])
    for stack in flow.stacks:
        blocks = INCLUDED[name][stack.stack]
        assert stack.last_norm == blocks.norm
        for layer, block in enumerate(stack.blocks):
            assert (block.placement, block.parallel) == (blocks.placement, False)
            _check(block, blocks, layer, seen)
        for layer in (len(stack.blocks) - 1, 0):
            view = answer(request(stack.stack, layer, POSITION), context)
            assert_adds_up(view)
            _, gave = of(seen, view.module, layer)
            close(view.after, gave[0, POSITION].numpy())
            for box in view.boxes:
                if isinstance(box, NormBox):
                    given, normed = of(seen, box.module, layer)
                    assert given is not None
                    assert box.before is not None
                    close(box.before, given[0, POSITION].numpy())
                    close(box.after, normed[0, POSITION].numpy())


def _check(block: Any, blocks: Blocks, layer: int, seen: Seen) -> None:
    root = blocks.block.format(layer)
    wrote = {"attention": blocks.attention, "cross": blocks.cross, "feed_forward": blocks.network}
    for written in block.written:
        _, gave = of(seen, f"{root}.{wrote[written.part]}", layer)
        close(written.norms, gave[0].norm(dim=-1).numpy())
    _, after = of(seen, root, layer)
    close(block.norms, after[0].norm(dim=-1).numpy())


@pytest.mark.short("deit", "siglip_vision")
@pytest.mark.parametrize(
    "kind", ["vit", "deit", "dinov2", "dinov2_registers", "clip_vision", "siglip_vision", "data2vec"]
)
def test_a_vision_model_adds_up(tmp_path, kind):
    """Position after position, patches and what stands before them."""
    model = open_checkpoint(tiny_vision.save(kind, tmp_path / kind))
    context = context_of(model, PICTURE)
    trace, flow = context.run(1).trace, flow_answer(FlowRequest(run=1), context)
    assert flow.deviation == 0.0
    (stack,) = flow.stacks
    assert {part.part for part in stack.embedding} <= {"tokens", "positions"}
    for block in stack.blocks:
        assert block.placement == "pre"
        assert block.remainder.max() < 1e-5 * block.norms.max()
    for position in (0, len(trace.tokens) - 1):
        view = answer(request("encoder", 1, position), context)
        assert_adds_up(view)
        close(view.after, trace.residual["encoder"][2][position].numpy())


def test_a_learned_scale_is_a_box(tmp_path):
    """LayerScale: a module of its own in DINOv2, parameters of the block in Data2Vec."""
    for kind, names in (("dinov2", ("layer_scale1", "layer_scale2")), ("data2vec", ("lambda_1", "lambda_2"))):
        model = open_checkpoint(tiny_vision.save(kind, tmp_path / kind))
        view = answer(request("encoder", 1, 2), context_of(model, PICTURE))
        scales = [box for box in view.boxes if isinstance(box, ModuleBox) and box.module.endswith(names)]
        assert [box.module.rpartition(".")[2] for box in scales] == list(names)
        for box in scales:
            learned = model.module.get_parameter(f"{box.module}.lambda1" if kind == "dinov2" else box.module)
            assert box.before is not None
            close(box.after, box.before * learned.detach().numpy())


@pytest.mark.parametrize("kind", ["bloom", "mpt", "gpt_neo", "deberta_v2"])
def test_attention_of_a_family_s_own(tiny_model, kind):
    """Heads are found by the softmax of their weights; what they give is what the output projection read."""
    model = tiny_model(kind)
    context = context_of(model)
    trace = context.run(1).trace
    (stack,) = flow_answer(FlowRequest(run=1), context).stacks
    assert all(len(block.sites) == 1 for block in stack.blocks)
    view = answer(request(stack.stack, 1, POSITION), context)
    assert_adds_up(view)
    (heads,) = (box for box in view.boxes if isinstance(box, HeadsBox))
    weights = np.stack([trace.weights(heads.site, head, [POSITION])[0] for head in range(heads.heads)])
    close(heads.weights, weights)
    close(heads.after, _mixed(model, view, heads, weights))


def _mixed(model: Any, view: BlockView, heads: HeadsBox, weights: np.ndarray) -> np.ndarray:
    """Weights times values, from what a hook saw on the module that makes them."""
    seen = seen_in(model, tiny.SENTENCE)
    made = {"bloom": "query_key_value", "mpt": "Wqkv", "gpt_neo": "v_proj", "deberta": "value_proj"}
    (name,) = (name for name in seen if name.startswith(view.module) and name.endswith(tuple(made.values())))
    values = seen[name][0][1][0].double()  # (tokens, ...)
    count, size = heads.heads, len(heads.after) // heads.heads
    if name.endswith("query_key_value"):  # by head, then query, key, value
        values = values.reshape(-1, count, 3, size)[:, :, 2]
    else:
        values = values[:, -count * size :].reshape(-1, count, size)
    return torch.einsum("hk,khd->hd", torch.tensor(weights).double(), values).reshape(-1).numpy()


@torch.no_grad()
def test_attention_that_is_written_as_einsums_is_read_box_by_box(tiny_model):
    """XLNet multiplies by parameters of three axes, no module; what W_O reads has the heads' numbers in turn."""
    model = tiny_model("xlnet")
    context = context_of(model)
    trace = context.run(1).trace
    view = answer(request("encoder", 1, POSITION), context)
    assert_adds_up(view)
    module: Any = model.module
    own = module.layer[1].rel_attn
    x = trace.residual["encoder"][1].double()  # (tokens, width)
    made = {box.makes: box for box in view.boxes if isinstance(box, ProjectionBox)}
    assert sorted(made) == ["k", "q", "v"]
    for name, box in made.items():
        learned = getattr(own, name).double()  # (width, heads, head_dim)
        assert (box.module, box.parameters) == (f"layer.1.rel_attn.{name}", learned.numel())
        close(box.after, torch.einsum("h,hnd->nd", x[POSITION], learned).reshape(-1).numpy())
    (heads,) = (box for box in view.boxes if isinstance(box, HeadsBox))
    weights = np.stack([trace.weights(heads.site, head, [POSITION])[0] for head in range(heads.heads)])
    values = torch.einsum("th,hnd->ntd", x, own.v.double()).numpy()
    joined = np.einsum("nt,ntd->nd", weights, values)
    close(heads.after, joined.reshape(-1))
    close(heads.norms, np.linalg.norm(joined, axis=1))
    (output,) = (box for box in view.boxes if isinstance(box, OutputBox))
    writes = np.einsum("nd,hnd->nh", joined, own.o.double().numpy())
    close(output.after, writes.sum(axis=0))
    assert output.norms is not None
    close(output.norms, np.linalg.norm(writes, axis=1))


def _context(kind: str, tmp_path: Any) -> tuple[Any, Context]:
    model = open_checkpoint(tiny_vision.save(kind, tmp_path / kind))
    return model, context_of(model, PICTURE)


def test_what_a_pre_norm_vision_model_writes_at_its_class_token_reaches_a_class(tmp_path):
    """Every part of the residual stream there, and the bias of what reads it, are the logit."""
    model, context = _context("vit", tmp_path)
    trace = context.run(1).trace
    view = answer(request("encoder", 2, 0), context)
    assert view.effect_note == ""
    assert view.target_label == model.piece_label(view.target)
    module: Any = model.module
    final = trace.residual["encoder"][-1][0].double()
    row = module.classifier.weight[view.target].double()
    gained = row * module.vit.layernorm.weight.double()
    direction = (gained - gained.mean()) / (final.var(unbiased=False) + module.vit.layernorm.eps).sqrt()
    bias = float(row @ module.vit.layernorm.bias.double() + module.classifier.bias[view.target])
    assert float(final @ direction) + bias == pytest.approx(float(trace.logits[0, view.target]), abs=1e-4)
    network: Any = view.boxes[-2]
    columns: Tensor = module.vit.layers[2].mlp.fc2.weight.double()
    for neuron in network.neurons:
        close(neuron.effect, float(neuron.activation * columns[:, neuron.number] @ direction))
    elsewhere = answer(request("encoder", 2, 4), context)
    assert "read off at “CLS”, position 0" in elsewhere.effect_note


@pytest.mark.parametrize("kind", ["mpt", "mbart", "bloom"])
def test_a_pre_norm_decoder_has_effects_whatever_its_norms_are_called(tiny_model, kind):
    model = tiny_model(kind)
    view = answer(request("decoder", 1, 2), context_of(model))
    assert view.effect_note == ""
    assert all(neuron.effect is not None for box in view.boxes for neuron in getattr(box, "neurons", ()))
