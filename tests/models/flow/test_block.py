"""One block, box by box: against hooks on transformers' own modules, of every family."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attention_models.flow.block import answer
from attention_models.protocol.flow import (
    BlockView,
    FeedForwardBox,
    HeadsBox,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)
from tests.models import tiny
from tests.models.flow.blocks import assert_adds_up, close, context_of, request
from tests.models.flow.families import FAMILIES
from tests.models.flow.hooked import Seen, hooked, of

POSITION = 2


def _view(context, stack: str, layer: int) -> BlockView:
    return answer(request(stack, layer, POSITION), context)


@pytest.mark.short("gpt2", "gemma2", "gpt_oss", "bert", "modernbert", "t5", "bart")
@pytest.mark.parametrize("kind", FAMILIES)
def test_every_box_is_what_hooks_saw(tiny_model, kind):
    model = tiny_model(kind)
    seen, context = hooked(model), context_of(model)
    for stack, blocks in FAMILIES[kind].items():
        for layer in (1, 0):
            view = _view(context, stack, layer)
            assert (view.placement, view.parallel) == (blocks.placement, blocks.parallel)
            assert_adds_up(view)
            _compare(view, layer, seen)
            kinds = [type(box) for box in view.boxes]
            attends = 2 if blocks.cross else 1
            assert kinds.count(HeadsBox) == kinds.count(OutputBox) == attends
            assert kinds.count(FeedForwardBox) == 1
            assert kinds.count(SumBox) == (1 if blocks.parallel else attends + 1)
            made = [box.makes for box in view.boxes if isinstance(box, ProjectionBox)]
            assert sorted("".join(made)) == sorted("qkv" * attends)
            for network in (box for box in view.boxes if isinstance(box, FeedForwardBox)):
                assert (network.activation, network.gated) == (blocks.activation, blocks.gated)
                if not blocks.last:
                    assert network.expert_count == len(network.experts) + 1 == 2
                    continue
                _compare_neurons(network, model, f"{blocks.block.format(layer)}.{blocks.last}", layer, seen)


def _compare(view: BlockView, layer: int, seen: Seen) -> None:
    """What went into each module and what came out of it, at the position."""
    _, gave = of(seen, view.module, layer)
    close(view.after, gave[0, POSITION].numpy())
    tokens, compared = gave.shape[1], 0
    for box in view.boxes:
        if box.module not in seen or isinstance(box, HeadsBox):
            continue
        given, gave = of(seen, box.module, layer)
        if isinstance(box, FeedForwardBox):  # it may be called by its last matrix, which reads the hidden units
            given = None
        for ours, theirs in ((box.before, given), (box.after, gave)):
            if ours is None or theirs is None or theirs.dim() > 3 or not len(ours):
                continue
            row = theirs.reshape(tokens, -1)[POSITION] if theirs.numel() == tokens * len(ours) else theirs[0, POSITION]
            close(ours, row.numpy())
            compared += 1
    assert compared >= 7


def _compare_neurons(network: FeedForwardBox, model, last: str, layer: int, seen: Seen) -> None:
    given, gave = of(seen, last, layer)
    assert given is not None
    hidden = given.reshape(gave.shape[1] if gave.dim() == 3 else len(gave), -1)[POSITION].double().numpy()
    module = model.module.get_submodule(last)
    columns = module.weight.double().numpy()
    columns = columns.T if type(module).__name__ != "Conv1D" else columns  # (hidden, width)
    assert network.hidden == len(hidden)
    assert network.positive == (hidden > 0).sum()
    writes = np.linalg.norm(hidden[:, None] * columns, axis=1)
    assert len(network.neurons) == min(32, len(hidden))
    close(np.array([n.write_norm for n in network.neurons]), np.sort(writes)[::-1][: len(network.neurons)])
    for neuron in network.neurons:
        close(neuron.activation, hidden[neuron.number])


def test_story_gpt_box_by_box(story_gpt):
    view = answer(request("decoder", 5, 13), context_of(story_gpt))
    assert [(type(box).__name__, box.module, box.reads) for box in view.boxes] == [
        ("NormBox", "transformer.h.5.ln_1", (-1,)),
        ("ProjectionBox", "transformer.h.5.attn.c_attn", (0,)),
        ("HeadsBox", "transformer.h.5.attn", (1,)),
        ("OutputBox", "transformer.h.5.attn.c_proj", (2,)),
        ("SumBox", "", (-1, 3)),
        ("NormBox", "transformer.h.5.ln_2", (4,)),
        ("FeedForwardBox", "transformer.h.5.mlp", (5,)),
        ("SumBox", "", (4, 6)),
    ]
    assert_adds_up(view)
    network = view.boxes[6]
    assert isinstance(network, FeedForwardBox)
    assert (network.hidden, network.activation, network.gated) == (1024, "GELU (tanh)", False)
    assert view.target_label == "␣Tom"


def test_neurons_and_the_bias_make_what_the_network_changes_of_the_logit(story_gpt):
    """All effects of the network's hidden units and its bias are the effect of what it writes."""
    context = context_of(story_gpt)
    view = answer(request("decoder", 5, 13), context)
    network = view.boxes[6]
    assert isinstance(network, FeedForwardBox)
    direction = _direction(story_gpt, context, view)
    module = story_gpt.module.transformer.h[5].mlp.c_proj
    columns = module.weight.double().numpy()
    for neuron in network.neurons:
        close(neuron.effect or 0.0, neuron.activation * columns[neuron.number] @ direction)
    assert view.effect_note == ""


def _direction(model, context, view: BlockView) -> np.ndarray:
    final = context.run(1).trace.residual["decoder"][-1][13].double().numpy()
    norm = model.module.transformer.ln_f
    row = model.output_head.weight[view.target].double().numpy() * norm.weight.double().numpy()
    direction: np.ndarray = (row - row.mean()) / np.sqrt(final.var() + norm.eps)
    return direction


def test_a_gain_that_is_left_out_is_caught(story_gpt):
    view = answer(request("decoder", 5, 13), context_of(story_gpt))
    assert_adds_up(view)
    norm = view.boxes[0]
    assert isinstance(norm, NormBox)
    with pytest.raises(AssertionError):
        assert_adds_up(replace(view, boxes=(replace(norm, gain=None), *view.boxes[1:])))


def test_only_blocks_and_positions_of_the_run(story_gpt):
    context = context_of(story_gpt, tiny.SENTENCE)
    for wrong in (request("decoder", 8, 0), request("encoder", 0, 0), request("decoder", 0, 14)):
        with pytest.raises(IndexError):
            answer(wrong, context)
