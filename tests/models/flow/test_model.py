"""What every block writes: against hooks on transformers' own modules, of every family."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attention_models import open_checkpoint, run
from attention_models.flow.model import Watched, watch
from attention_models.forward.model import Model
from attention_models.protocol.batch import Batch
from attention_models.protocol.flow import BlockFlow
from attention_models.protocol.request import Cancelled, never
from tests.models import tiny
from tests.models.eager import target_for
from tests.models.flow.families import FAMILIES, Blocks
from tests.models.flow.hooked import hooked, of
from tests.models.textbook_folders import TEXT, write_folder


def silent(_label: str, _fraction: float | None) -> None: ...


def flow_of(model: Model, text: str = tiny.SENTENCE) -> Watched:
    target = target_for(model)
    return watch(model, run(model, text, target=target), text, target, never, silent)


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(wanted).max())))


def modules_of(blocks: Blocks, layer: int) -> dict[str, str]:
    """By part: the module of a block whose output is added to the stream."""
    block = blocks.block.format(layer)
    parts = {"attention": blocks.attention, "cross": blocks.cross, "feed_forward": blocks.network}
    return {part: f"{block}.{name}" for part, name in parts.items() if name}


@pytest.mark.short("gpt2", "gemma2", "gpt_oss", "bert", "modernbert", "t5", "bart")
@pytest.mark.parametrize("kind", FAMILIES)
def test_what_each_block_writes_is_what_hooks_saw(tiny_model, kind):
    model = tiny_model(kind)
    seen, found = hooked(model), flow_of(model)
    assert found.deviation == 0.0
    assert [stack.stack for stack in found.stacks] == list(FAMILIES[kind])
    for stack in found.stacks:
        blocks = FAMILIES[kind][stack.stack]
        assert len(stack.blocks) >= 2
        assert stack.last_norm == blocks.norm
        for layer, block in enumerate(stack.blocks):
            assert (block.placement, block.parallel) == (blocks.placement, blocks.parallel)
            _check(block, blocks, layer, seen)
            before = stack.norms if layer == 0 else stack.blocks[layer - 1].norms
            given, _ = of(seen, blocks.block.format(layer), layer)
            if given is not None:
                close(before, given[0].norm(dim=-1).numpy())


def _check(block: BlockFlow, blocks: Blocks, layer: int, seen) -> None:
    modules = modules_of(blocks, layer)
    assert block.module == blocks.block.format(layer)
    assert [written.part for written in block.written] == list(modules)
    given, gave = of(seen, block.module, layer)
    close(block.norms, gave[0].norm(dim=-1).numpy())
    total = torch.zeros(gave.shape[1:], dtype=torch.float64)
    for written in block.written:
        _, wrote = of(seen, modules[written.part], layer)
        wrote = wrote.reshape(gave.shape)[0].double()
        close(written.norms, wrote.norm(dim=-1).numpy())
        total = total + wrote
    if given is not None:
        left = gave[0].double() - given[0].double() - total
        np.testing.assert_allclose(block.remainder, left.norm(dim=-1).numpy(), atol=1e-4)
    if blocks.placement in ("pre", "both"):  # all that is added: nothing is left but rounding
        assert block.remainder.max() < 1e-5 * max(1.0, block.norms.max())
    else:
        assert block.remainder.max() > 0.1


def test_a_run_is_called_off_between_blocks(story_gpt):
    trace = run(story_gpt, tiny.SENTENCE)
    polls = iter([False, False, True])
    with pytest.raises(Cancelled):
        watch(story_gpt, trace, tiny.SENTENCE, None, lambda: next(polls), silent)


def test_what_is_embedded(tiny_model, story_bert, en_es):
    def parts(model: Model) -> list[list[tuple[str, str]]]:
        return [[(part.part, part.module) for part in stack.embedding] for stack in flow_of(model).stacks]

    root = "bert.embeddings."
    assert parts(story_bert) == [
        [
            ("tokens", f"{root}word_embeddings"),
            ("segments", f"{root}token_type_embeddings"),
            ("positions", f"{root}position_embeddings"),
        ]
    ]
    assert parts(en_es) == [
        [("tokens", f"model.{stack}.embed_tokens"), ("positions", f"model.{stack}.embed_positions")]
        for stack in ("encoder", "decoder")
    ]
    assert parts(tiny_model("llama")) == [[("tokens", "model.embed_tokens")]]
    assert parts(tiny_model("opt"))[0][1] == ("positions", "model.decoder.embed_positions")


def test_embeddings_are_those_of_the_tables(story_gpt):
    (stack,) = flow_of(story_gpt).stacks
    ids = [token.id for token in run(story_gpt, tiny.SENTENCE).tokens]
    tokens, positions = stack.embedding
    body = story_gpt.module.transformer
    close(tokens.norms, body.wte.weight[ids].norm(dim=-1).numpy())
    close(positions.norms, body.wpe.weight[: len(ids)].norm(dim=-1).numpy())
    close(stack.norms, (body.wte.weight[ids] + body.wpe.weight[: len(ids)]).norm(dim=-1).numpy())


@pytest.mark.parametrize("positions", ["appended", "concatenated"])
@pytest.mark.parametrize("text", [TEXT, Batch((TEXT, "abc>"), "right")], ids=["one", "two"])
def test_what_is_concatenated_is_told_apart(tmp_path, positions, text):
    model = open_checkpoint(write_folder(tmp_path, shape="decoder", positions=positions))
    trace = run(model, text)
    (stack,) = watch(model, trace, text, None, never, silent).stacks
    module: Any = model.module
    body = module.model.decoder
    tokens, places = stack.embedding
    assert (tokens.part, tokens.module) == ("tokens", "model.decoder.embedding")
    assert (places.part, places.module) == ("positions", "model.decoder.position_embedding")
    ids = [token.id for token in trace.tokens]
    close(tokens.norms, body.embedding.weight[ids].norm(dim=-1).numpy() * 32**0.5)
    close(places.norms, body.position_embedding.weight[: len(ids)].norm(dim=-1).numpy())


def test_layers_of_shared_weights_say_so(tiny_model):
    (stack,) = flow_of(tiny_model("albert")).stacks
    assert [block.shared_with for block in stack.blocks] == [None, 0, 0]
    (own,) = flow_of(tiny_model("bert")).stacks
    assert [block.shared_with for block in own.blocks] == [None, None, None]


@pytest.mark.parametrize("kind", ["marian", "gpt2"])
def test_positions_of_a_text_padded_on_the_left_are_named_by_their_table(tiny_model, kind):
    model = tiny_model(kind)
    batch = Batch(("She was singing", "Tom and Anna went to the park. Anna"), "left")
    target = ["La casa", "El"] if model.seq2seq else None
    found = watch(model, run(model, batch, target=target), batch, target, lambda: False, silent)
    for stack in found.stacks:
        part = stack.embedding[1]
        assert part.part == "positions"
        assert part.module == ("transformer.wpe" if kind == "gpt2" else f"model.{stack.stack}.embed_positions")
