"""What a head does with the first token, against transformers' eager attention and values by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_models import Model, run
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.head import FirstKey, HeadRequest, HeadView, RowRequest, RowView
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from attention_models.views.head import first_key
from tests.models import tiny
from tests.models.asking import ask, forward, opened
from tests.models.eager import attentions

TOM = "Tom and Anna went to the park. Anna gave the ball to"


def of(trace: Trace, site: SiteRef, head: int) -> FirstKey | None:
    return first_key(trace, site, head, trace.weights(site, head))


def rows_of(weights: np.ndarray) -> int:
    """Rows after the first that give key 0 more than any other, counted one by one in float64."""
    return sum(row[0] > np.delete(row, 0).max() for row in weights[1:].astype(np.float64))


@torch.no_grad()
def value_norms(model: Model, text: str, layer: int, head: int) -> np.ndarray:
    """Norms of GPT-2's values, (tokens,) float64, from its own hidden states and matrices."""
    block = tiny.eager(model).transformer.h[layer]
    states = tiny.eager_run(model, text).hidden_states[layer]
    width, size = states.shape[-1], states.shape[-1] // block.attn.num_heads
    matrix, bias = block.attn.c_attn.weight.double(), block.attn.c_attn.bias.double()
    values = block.ln_1(states)[0].double() @ matrix[:, 2 * width :] + bias[2 * width :]
    norms: np.ndarray = values[:, head * size : (head + 1) * size].norm(dim=-1).numpy()
    return norms


@pytest.mark.parametrize(("layer", "head"), [(7, 7), (5, 5), (6, 4)])
def test_rows_and_norms_are_those_of_the_model(story_gpt: Model, layer: int, head: int) -> None:
    site = SiteRef("decoder", layer)
    found = of(run(story_gpt, TOM), site, head)
    assert found is not None
    theirs = attentions(tiny.eager_run(story_gpt, TOM), story_gpt)[site][head]
    norms = value_norms(story_gpt, TOM, layer, head)
    assert (found.key, found.rows, found.of_rows) == (0, rows_of(theirs), len(theirs) - 1)
    assert found.norm == pytest.approx(norms[0], rel=1e-5)
    assert found.others_norm == pytest.approx(norms[1:].mean(), rel=1e-5)


def test_a_head_that_rests_there_and_one_that_does_not(story_gpt: Model) -> None:
    trace = run(story_gpt, TOM)
    rests, works = of(trace, SiteRef("decoder", 7), 7), of(trace, SiteRef("decoder", 6), 4)
    assert rests is not None
    assert works is not None
    assert rests.rows == rests.of_rows == 13
    assert rests.norm < 0.3 * rests.others_norm  # type: ignore[operator]
    assert works.rows == 0


@pytest.mark.full
def test_queries_that_see_nothing_else_are_not_counted(story_bert: Model) -> None:
    text = "Anna lost her ball."
    for layer in range(6):
        site = SiteRef("encoder", layer)
        theirs = attentions(tiny.eager_run(story_bert, text), story_bert)[site]
        for head in range(8):
            found = of(run(story_bert, text), site, head)
            assert found is not None
            assert (found.rows, found.of_rows) == (rows_of(theirs[head]), theirs.shape[1] - 1)


def test_cross_attention_and_a_single_token_have_none(en_es: Model, tiny_model) -> None:
    trace = run(en_es, "The cat sleeps.", target="El gato")
    assert of(trace, SiteRef("cross", 2), 4) is None
    assert of(trace, SiteRef("encoder", 2), 4) is not None
    alone = run(tiny_model("gpt2"), "T")
    assert len(alone.tokens) == 1
    assert of(alone, alone.sites[0].ref, 0) is None


def test_padding_on_the_left_is_not_the_first_token() -> None:
    engine = opened("story-gpt")
    ran = ask(engine, ForwardRequest(inputs=RunInputs(Batch(("Tom ran", TOM), "left", 0)), ticket=2))
    assert isinstance(ran, Ran)
    first = next(i for i, token in enumerate(ran.tokens) if not token.padding)
    view = ask(engine, HeadRequest(run=2, site=SiteRef("decoder", 7), head=7))
    assert isinstance(view, HeadView)
    assert view.first is not None
    assert (view.first.key, view.first.of_rows) == (first, len(ran.tokens) - first - 1)
    assert first > 0


def test_a_model_that_shows_its_weights_alone_has_no_norms(tiny_model) -> None:
    trace = run(tiny_model("bloom"), TOM)
    found = of(trace, trace.sites[0].ref, 0)
    assert found is not None
    assert (found.norm, found.others_norm) == (None, None)
    assert found.rows is not None


def test_of_one_row_the_others_are_not_counted() -> None:
    engine = opened("story-gpt")
    forward(engine, TOM)
    view = ask(engine, RowRequest(run=2, site=SiteRef("decoder", 7), head=7, query=13))
    assert isinstance(view, RowView)
    assert view.first is not None
    assert (view.first.rows, view.first.of_rows) == (None, None)
    assert view.first.norm is not None
