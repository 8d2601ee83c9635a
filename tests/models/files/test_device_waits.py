"""How often the CPU waits for a device: a number asked of it is answered once all that it was given is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from attention_models import open_checkpoint, run
from attention_models.attention import attention
from attention_models.attention.inputs import Part
from attention_models.engine.engine import Engine
from attention_models.forward.capture import IMPLEMENTATION
from attention_models.protocol import values
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.decoding import DecodeSamplesRequest, DecodeSettings, DecodeStepRequest
from attention_models.protocol.head import HeadRequest, RowRequest, TilesRequest
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.prediction import PredictionRequest
from attention_models.protocol.request import Failure, Request
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import Placement, SiteRef, Tile
from attention_models.views.alignment import likelihoods
from tests import pretend_device
from tests.models import inputs, tiny
from tests.models.asking import ask, forward
from tests.models.everything import EVERY_FILTER, TEXTS, open_in, text_of
from tests.pretend_device import DEVICE

pytestmark = pytest.mark.usefixtures("pretended")

SITE = SiteRef("decoder", 1)


@pytest.mark.short("float32-gpt2", "float32-modernbert", "bfloat16-bart")
@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "modernbert", "t5", "bart"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_captured_run_waits_once_more_than_one_by_torchs_own_attention(tiny_folder, kind, dtype):
    """Once, to see that all of it are numbers."""
    model = open_checkpoint(tiny_folder(kind), device=DEVICE, dtype=dtype)
    text = text_of(kind)
    with pretend_device.counted() as ours:
        run(model, text)
    edits: list[Intervention] = [Scale(0.5), Mask("window", window=3), Mask("painted", cells=((3, 1, False),))]
    with pretend_device.counted() as edited:
        run(model, text, interventions=edits)
    module: Any = model.module
    module.set_attn_implementation("sdpa")
    with torch.no_grad(), pretend_device.counted() as plain:
        module(**model.encode(text).inputs, **model.forward_options)
    assert ours.to_host == edited.to_host == plain.to_host + 1
    assert ours.to_device == plain.to_device


@pytest.mark.parametrize(("kind", "more"), [("mistral", 2), ("gemma3", 2), ("modernbert", 1), ("llama", 0)])
def test_a_long_run_waits_for_each_kind_of_mask_not_for_each_layer(tiny_folder, monkeypatch, kind, more):
    """Once for the table of what its rows reach, and once, where transformers did not, to see that none is padded.

    Each run waits once more, to see that all of it are numbers.
    """
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    monkeypatch.setattr(attention, "EXACT_KEYS", 1)
    model = open_checkpoint(tiny_folder(kind), device=DEVICE)
    text = text_of(kind)
    edits: list[Intervention] = [Mask("window", window=3), Mask("painted", cells=((3, 1, False),), head=1)]
    module: Any = model.module
    module.set_attn_implementation("sdpa")
    with torch.no_grad(), pretend_device.counted() as plain:
        module(**model.encode(text).inputs, **model.forward_options)
    module.set_attn_implementation(IMPLEMENTATION)
    with pretend_device.counted() as ours:
        trace = run(model, text)
    assert ours.to_host == plain.to_host + more + 1
    with pretend_device.counted() as edited:
        run(model, text, interventions=edits)
    kinds = len({None if x.mask is None else id(x.mask) for x in trace.inputs})
    # window, and window with a cell; of each mask as trained, whose own table is not made
    assert edited.to_host == plain.to_host + (more == 2) + 2 * kinds + 1


def waits(engine: Engine, request: Request) -> int:
    with pretend_device.counted() as counts:
        answer = ask(engine, request)
    assert not isinstance(answer, Failure)
    return counts.to_host


def test_what_is_looked_at_comes_in_few_copies():
    """Each number asked of a device by itself is a wait for all that it was given to do."""
    engine = open_in("story-gpt", Placement(DEVICE))
    ran = forward(engine, tiny.SENTENCE)
    cell: dict[str, Any] = {"run": 2, "site": SITE, "head": 0}
    last = len(ran.tokens) - 1
    assert waits(engine, PredictionRequest(run=2, positions=(0, last))) == 2  # a copy each
    assert waits(engine, HeadRequest(**cell)) <= 3  # the weights, and where they rest on the first token its value
    assert waits(engine, RowRequest(**cell, query=last)) <= 3
    assert waits(engine, TilesRequest(**cell, tiles=(Tile(0, 0, 0),))) == 1
    assert waits(engine, AtlasRequest(run=2, size=64)) <= 4 * len(ran.sites)  # blocks: two pictures, a mask, a sum
    ask(engine, CellRequest(**cell, query=last, key=0))  # the first also finds out how the model is put together
    assert waits(engine, CellRequest(**cell, query=last, key=1)) <= 26
    told: dict[str, Any] = {"inputs": RunInputs(tiny.SENTENCE), "steps": 3, "number": 1}
    for settings in (DecodeSettings(), EVERY_FILTER, DecodeSettings(strategy="beam", beams=3)):
        assert waits(engine, DecodeStepRequest(**told, settings=settings)) <= 5  # one to see that all are numbers
    samples = DecodeSamplesRequest(**told, settings=EVERY_FILTER, samples=(0, 1, 2), ids=((), (), ()))
    assert waits(engine, samples) <= 4


@pytest.mark.parametrize("case", ["bool mask", "float mask", "causal"])
def test_a_block_of_rows_is_found_in_one_copy(case):
    x = inputs.make(case)
    mask = None if x.mask is None else x.mask.to(DEVICE)
    there = replace(x, query=x.query.to(DEVICE), key=x.key.to(DEVICE), mask=mask)
    with pretend_device.counted() as counts:
        assert attention.reach(there, Part([0], slice(2, 5))) == attention.reach(x, Part([0], slice(2, 5)))
    assert counts.to_host == (0 if case == "causal" else 1)


def test_how_likely_each_word_was_comes_in_one_copy():
    model = open_checkpoint("en-es", device=DEVICE)
    trace = run(model, TEXTS["en-es"], target="Buenos días, ¿cómo estás?")
    with pretend_device.counted() as counts:
        likelihoods(trace)
    assert counts.to_host == 1
