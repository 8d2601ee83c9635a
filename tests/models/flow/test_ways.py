"""The ways in which a model is run: changed, in a batch, on a long text, by modules of a person's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_models import adopt, open_checkpoint, run
from attention_models.flow.block import answer
from attention_models.flow.block_rerun import BlockRerun
from attention_models.flow.model import answer as flow_answer
from attention_models.forward.context import Context, Workspace
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.batch import Batch
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.flow import (
    BlockView,
    FeedForwardBox,
    FlowRequest,
    FlowView,
    HeadsBox,
    NormBox,
    OutputBox,
    ProjectionBox,
)
from attention_models.protocol.interventions import Intervention, Mask, Positions, Scale
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import SiteRef
from attention_models.views.cell import cell_view
from attention_models.views.residual import logit_direction
from tests.models import own_modules, tiny
from tests.models.flow.blocks import assert_adds_up, close, context_of, request

CHANGES: list[tuple[str, tuple[Intervention, ...]]] = [
    ("story-gpt", (Mask("window", window=3), Scale(0.5))),
    ("story-gpt", (Mask("painted", cells=((5, 2, False), (6, 1, False)), site=SiteRef("decoder", 1), head=3),)),
    ("story-gpt", (Positions("shift", 3),)),
    ("story-gpt", (Positions("off"),)),
    ("llama", (Positions("off"), Scale(2.0, site=SiteRef("decoder", 1), head=1))),
    ("t5", (Positions("off"),)),
    ("albert", (Scale(0.1, site=SiteRef("encoder", 1)),)),  # no other layer, though they share a module
    ("marian", (Scale(0.1, site=SiteRef("cross", 1)), Mask("window", window=2))),
    ("story-gpt", (Ablation("mlp", SiteRef("decoder", 1)),)),
    ("story-gpt", (Ablation("norm2", SiteRef("decoder", 1)),)),
    ("albert", (Ablation("attention", SiteRef("encoder", 1)),)),
    ("gemma2", (Ablation("norm2", SiteRef("decoder", 1)), Ablation("mlp", SiteRef("decoder", 1)))),
    ("bert", (Ablation("norm1", SiteRef("encoder", 1)),)),
    ("gpt_oss", (Ablation("mlp", SiteRef("decoder", 1)),)),
]


@pytest.fixture
def model_of(tiny_model, story_gpt):
    return lambda name: story_gpt if name == "story-gpt" else tiny_model(name)


def _flow(context: Context) -> FlowView:
    return flow_answer(FlowRequest(run=1), context)


@pytest.mark.short("story-gpt-changes1", "llama-changes4", "albert-changes6", "story-gpt-changes9", "bert-changes12")
@pytest.mark.parametrize(("name", "changes"), CHANGES)
def test_a_changed_run_is_read_as_it_was_changed(model_of, name, changes):
    model = model_of(name)
    context = context_of(model, tiny.SENTENCE, *changes)
    trace, flow = context.run(1).trace, _flow(context)
    assert flow.deviation == 0.0
    for stack in flow.stacks:
        stream = trace.residual[stack.stack]
        close(stack.norms, stream[0].norm(dim=-1).numpy())
        for layer, block in enumerate(stack.blocks):
            close(block.norms, stream[layer + 1].norm(dim=-1).numpy())
        for layer in (0, 1):
            view = answer(request(stack.stack, layer, 4), context)
            assert_adds_up(view)
            close(view.after, stream[layer + 1][4].numpy())
            _compare_weights(view, trace)
            _compare_parts(view, [item for item in changes if isinstance(item, Ablation)], layer)
            for skip in changes:
                if isinstance(skip, Ablation) and skip.norm is None and skip.site.layer == layer:
                    part = "feed_forward" if skip.part == "mlp" else skip.part
                    (written,) = (one for one in stack.blocks[layer].written if one.part == part)
                    assert written.off
                    assert not written.norms.any()


def _compare_weights(view: BlockView, trace) -> None:
    for box in view.boxes:
        if isinstance(box, HeadsBox):
            close(box.weights, np.stack([trace.weights(box.site, head, [4])[0] for head in range(box.heads)]))


def _compare_parts(view: BlockView, skips: list[Ablation], layer: int) -> None:
    off = {skip.part for skip in skips if skip.site.layer == layer}
    norms = [box for box in view.boxes if isinstance(box, NormBox)]
    assert {f"norm{i}" for i, box in enumerate(norms, 1) if box.off} == {part for part in off if "norm" in part}
    (network,) = (box for box in view.boxes if isinstance(box, FeedForwardBox))
    assert network.off == ("mlp" in off)
    assert not (network.off and network.neurons)


@pytest.mark.parametrize(("kind", "side"), [("llama", "right"), ("llama", "left"), ("xlnet", "left")])
def test_a_text_of_a_batch_is_read_as_it_is_alone(tiny_model, kind, side):
    """Also where the tokens come first, then the texts (XLNet)."""
    model = tiny_model(kind)
    texts = ("Tom and Anna", tiny.SENTENCE)
    batch = Batch(texts, side)
    traces = run(model, list(texts), padding=side)
    alone = _flow(context_of(model, texts[0]))
    inputs = RunInputs(batch)
    ran = CurrentRun(model, traces, inputs, None, 1)
    flow = _flow(Context(Workspace(model=model, run=ran), never, lambda _label, _fraction: None))
    assert flow.deviation == 0.0
    real = [i for i, token in enumerate(traces[0].tokens) if not token.padding]
    assert len(real) < len(traces[0].tokens)
    for ours, theirs in zip(flow.stacks[0].blocks, alone.stacks[0].blocks, strict=True):
        close(ours.norms[real], theirs.norms)
        for one, other in zip(ours.written, theirs.written, strict=True):
            close(one.norms[real], other.norms)
    context = Context(Workspace(model=model, run=ran), never, lambda _label, _fraction: None)
    stack = flow.stacks[0].stack
    view = answer(request(stack, 1, real[2]), context)
    assert_adds_up(view)
    by_itself = answer(request(stack, 1, 2), context_of(model, texts[0]))
    for mine, its in zip(view.boxes, by_itself.boxes, strict=True):
        assert mine.after.shape == its.after.shape
        if len(its.after):  # none of what is made of positions, not tokens
            close(mine.after, its.after)


@pytest.mark.parametrize("how", ["sdpa", "attend"])
def test_what_is_added_outside_of_a_block_is_found(how):
    """Blocks without a residual connection of their own: whoever calls them adds what they give."""
    module = own_modules.Writer(how)
    model = adopt(module, own_modules.CHARACTERS)
    try:
        context = context_of(model, "Tom and Anna")
        flow = _flow(context)
        wrote: list[torch.Tensor] = []
        handles = [block.register_forward_hook(lambda _m, _a, out: wrote.append(out)) for block in module.blocks]
        with torch.no_grad():
            ids = torch.tensor([[ord(c) for c in "Tom and Anna"]])
            module(ids)
        for handle in handles:
            handle.remove()
        (stack,) = flow.stacks
        stream = module.wte(ids)[0] + module.wpe(torch.arange(12))
        close(stack.norms, stream.norm(dim=-1).detach().numpy())
        for layer, block in enumerate(stack.blocks):
            stream = stream + wrote[layer][0]
            assert (block.placement, len(block.written)) == ("pre", 1)
            close(block.written[0].norms, wrote[layer][0].norm(dim=-1).numpy())
            close(block.norms, stream.norm(dim=-1).detach().numpy())
            view = answer(request("decoder", layer, 3), context)
            assert_adds_up(view)
            close(view.after, stream[3].detach().numpy())
        last, head = stream[3].detach(), module.head
        assert view.target is not None
        row, bias = head.weight.detach()[view.target], float(head.bias.detach()[view.target])
        assert view.effect_note == ""
        direction, _ = logit_direction(model, context.run(1).trace, "decoder", 3, view.target)
        assert direction is not None
        close(direction.numpy(), row.numpy())
        assert float(last @ direction) + bias == pytest.approx(float(head(last).detach()[view.target]), abs=1e-5)
        request_ = CellRequest(run=1, site=SiteRef("decoder", 1), head=1, query=3, key=2)
        cell = cell_view(request_, model, context.run(1).trace)
        assert cell.stream_norm is not None
        close(cell.stream_norm, float(last.norm()))
        assert cell.write is not None
        assert cell.effect is not None
        assert cell.target == view.target
        close(cell.effect, float(cell.write @ row.numpy()))
    finally:
        model.release()


def test_matrices_without_a_module_of_their_own_are_found():
    """torch's nn.MultiheadAttention multiplies by parameters, and calls no module for it."""
    module = own_modules.Reader()
    model = adopt(module, own_modules.CHARACTERS, family="encoder")
    try:
        view = answer(request("encoder", 1, 3), context_of(model, "Tom and Anna"))
        assert_adds_up(view)
        assert view.placement == "post"
        (made,) = (box for box in view.boxes if isinstance(box, ProjectionBox))
        assert (made.module, made.makes) == ("encoder.layers.1.self_attn.in_proj_weight", "qkv")
        attention = module.encoder.layers[1].self_attn
        weight = attention.in_proj_weight.detach().numpy()
        close(made.after, weight @ view.before + attention.in_proj_bias.detach().numpy())
        (output,) = (box for box in view.boxes if isinstance(box, OutputBox))
        assert output.before is not None
        weight = attention.out_proj.weight.detach().numpy()
        close(output.after, weight @ output.before + attention.out_proj.bias.detach().numpy())
    finally:
        model.release()


@pytest.mark.full
def test_one_block_of_a_long_text_is_held(story_gpt):
    """After every block was looked at, no more is held than after one, and the arguments share the trace's tensors."""
    context = context_of(story_gpt, tiny.text_of(story_gpt, 400))
    layers = range(story_gpt.info.stacks[0].layers)
    for layer in layers:
        answer(request("decoder", layer, 5), context)
    kept = context.run(1).kept.get(BlockRerun)
    assert kept is not None
    assert kept.layer == max(layers)
    held = {t.untyped_storage().data_ptr(): t for t in _tensors() if t.shape[-2:] == (400, 1024)}
    assert len(held) <= 3  # before the function, after it, and a view


def _tensors() -> list[torch.Tensor]:
    import gc

    gc.collect()
    return [one for one in gc.get_objects() if type(one) is torch.Tensor and one.dim() >= 2]


def test_a_block_is_called_off(story_gpt):
    context = context_of(story_gpt)
    _flow(context)
    stopped = Context(context.workspace, lambda: True, context.report)
    with pytest.raises(Cancelled):
        answer(request("decoder", 2, 0), stopped)
    assert isinstance(answer(request("decoder", 2, 0), context), BlockView)


def test_a_text_of_one_token(model_of):
    for name in ("gpt2", "gpt_oss"):
        model: Model = model_of(name)
        view = answer(request("decoder", 0, 0), context_of(model, "T"))
        assert_adds_up(view)


def test_half_precision(tiny_folder):
    model = open_checkpoint(tiny_folder("llama"), dtype="bfloat16")
    context = context_of(model)
    flow = _flow(context)
    assert flow.deviation == 0.0
    assert {block.placement for block in flow.stacks[0].blocks} == {"pre"}
    view = answer(request("decoder", 1, 3), context)
    assert sum(isinstance(box, NormBox) for box in view.boxes) == 2
    assert view.remainder < 0.05 * np.linalg.norm(view.after)
