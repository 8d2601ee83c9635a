"""Positions off and shifted, against models that were changed by hand."""

from __future__ import annotations

import copy

import pytest
import torch

from attention_models import run
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Positions
from tests.models import tiny

TEXT = "Tom and Anna went to the park."
OFF = [Positions("off")]


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("story_gpt", ["transformer.wpe"]),
        ("story_bert", ["bert.embeddings.position_embeddings"]),
        ("en_es", ["model.encoder.embed_positions", "model.decoder.embed_positions"]),
    ],
)
def test_off_is_a_table_of_zeros(request, name, tables):
    model = request.getfixturevalue(name)
    changed = copy.deepcopy(model.module)
    for table in tables:
        torch.nn.init.zeros_(changed.get_submodule(table).weight)
    with torch.no_grad():
        expected = changed(**model.encode(TEXT).inputs).logits[0].numpy()
    assert run(model, TEXT, interventions=OFF).logits == pytest.approx(expected, abs=1e-6)
    assert run(model, TEXT).logits != pytest.approx(expected, abs=1e-2)


def test_off_leaves_the_model_as_it_was(story_gpt):
    before = run(story_gpt, TEXT).logits
    run(story_gpt, TEXT, interventions=OFF)
    assert (run(story_gpt, TEXT).logits == before).all()


def test_off_in_a_rotary_model_turns_nothing(tiny_model):
    model = tiny_model("llama")
    inputs = model.encode(TEXT).inputs
    with torch.no_grad():
        expected = model.module(**inputs, position_ids=torch.zeros_like(inputs["input_ids"])).logits[0].numpy()
    assert run(model, TEXT, interventions=OFF).logits == pytest.approx(expected, abs=1e-6)


def test_off_in_t5_is_a_bias_of_zeros(tiny_model):
    model = tiny_model("t5")
    changed = tiny.eager(model)
    for stack in (changed.encoder, changed.decoder):
        torch.nn.init.zeros_(stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight)
    with torch.no_grad():
        expected = changed(**model.encode(TEXT).inputs).logits[0].numpy()
    assert run(model, TEXT, interventions=OFF).logits == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["story_gpt", "story_bert"])
def test_a_shift_is_other_position_ids(request, name):
    model = request.getfixturevalue(name)
    inputs = model.encode(TEXT).inputs
    ids = torch.arange(40, 40 + inputs["input_ids"].shape[1])[None]
    with torch.no_grad():
        expected = tiny.eager(model)(**inputs, position_ids=ids).logits[0].numpy()
    shifted = run(model, TEXT, interventions=[Positions("shift", 40)]).logits
    assert shifted == pytest.approx(expected, abs=1e-4)
    assert run(model, TEXT).logits != pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "roberta", "distilbert"])
def test_a_shift_by_nothing_is_the_model_as_it_is(tiny_model, kind):
    model = tiny_model(kind)
    shifted = run(model, TEXT, interventions=[Positions("shift", 0)]).logits
    assert shifted == pytest.approx(run(model, TEXT).logits, abs=1e-6)


def test_rotations_do_not_feel_a_shift(tiny_model):
    model = tiny_model("llama")
    shifted = run(model, TEXT, interventions=[Positions("shift", 30)]).logits
    assert shifted == pytest.approx(run(model, TEXT).logits, abs=1e-4)


@pytest.mark.parametrize("kind", ["gpt2", "roberta"])
def test_the_last_position_of_the_table_is_the_last(tiny_model, kind):
    model = tiny_model(kind)
    count = len(run(model, TEXT).tokens)
    room = (64 if kind == "gpt2" else 62) - count
    run(model, TEXT, interventions=[Positions("shift", room)])
    with pytest.raises(InputError, match=f"shifted by up to {room}"):
        run(model, TEXT, interventions=[Positions("shift", room + 1)])


@pytest.mark.parametrize(("kind", "sentence"), [("t5", "distances only"), ("marian", "always counts")])
def test_models_that_can_not_be_shifted_say_so(tiny_model, kind, sentence):
    with pytest.raises(InputError, match=sentence):
        run(tiny_model(kind), TEXT, interventions=[Positions("shift", 3)])
