"""Masks and roles of lessons, held against transformers' own eager pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attention_models import open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.protocol.facts import Fact, FactsRequest, FactsView, places_in, spans
from attention_models.protocol.interventions import Intervention, Mask
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from attention_models.roles.probe import our_probe
from tests.models import tiny
from tests.models.asking import ask, forward, opened

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
GAP = "The bird can [MASK] very high."
SITE, ENCODER = SiteRef("decoder", 5), SiteRef("encoder", 2)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return opened("story-gpt")


@pytest.fixture(scope="module")
def reader() -> Engine:
    engine = opened("story-bert")
    forward(engine, GAP)
    return engine


def value(engine: Engine, run: int = 2, **said: Any) -> Any:
    view = ask(engine, FactsRequest(run=run, ticket=9, facts=(Fact(**said),)))
    assert isinstance(view, FactsView), view
    return view.values[0]


def changed(engine: Engine, *interventions: Intervention) -> None:
    ran = ask(engine, ForwardRequest(inputs=RunInputs(TEXT, interventions=interventions), ticket=2))
    assert isinstance(ran, Ran), ran


def weights_of(reference: str, text: str, layer: int, head: int) -> np.ndarray:
    """(queries, keys), by transformers."""
    model = open_checkpoint(reference)
    with torch.no_grad():
        out = tiny.eager(model)(**model.encode(text).inputs, output_attentions=True)
    weights: np.ndarray = out.attentions[layer][0, head].double().numpy()
    return weights


def test_keys_that_a_row_sees_are_those_with_a_weight_in_the_eager_pass(engine: Engine, reader: Engine) -> None:
    changed(engine)
    weights = weights_of("story-gpt", TEXT, 5, 5)
    for query in (0, 4, 13):
        expected = spans(np.flatnonzero(weights[query] > 0).tolist())
        assert value(engine, kind="visible keys", site=SITE, head=5, query=query) == expected
    assert value(engine, kind="mask", site=SITE, head=5) == "causal"
    assert np.array_equal(weights > 0, np.tri(14, dtype=bool))
    both = weights_of("story-bert", GAP, 2, 0)
    assert (both > 0).all()
    assert value(reader, kind="mask", site=ENCODER) == "none"
    assert value(reader, kind="visible keys", site=ENCODER, query=3) == f"0–{len(both) - 1}"


@pytest.mark.parametrize(
    ("intervention", "mask", "seen"),
    [
        (Mask("full"), "none", "0–13"),
        (Mask("window", window=3), "window", "2–4"),
        (Mask("prefix", window=7), "prefix", "0–6"),
        (Mask("blocks", window=4), "blocks", "4"),
        (Mask("padding", window=2), "padding", "0–4"),
        (Mask("painted", cells=((4, 1, False), (4, 3, False))), "other", "0, 2, 4"),
    ],
)
def test_a_mask_that_is_put_on_is_told(engine: Engine, intervention: Mask, mask: str, seen: str) -> None:
    changed(engine, intervention)
    assert value(engine, kind="mask", site=SITE, head=5) == mask
    assert value(engine, kind="visible keys", site=SITE, head=5, query=4) == seen
    assert value(engine, kind="mask", site=SITE, head=5, unchanged=True) == "causal"


@pytest.mark.full
def test_the_role_of_a_head_follows_from_the_eager_pass_over_the_texts(reader: Engine) -> None:
    """The mean, over the rows that have a token before them, of what they give that token."""
    model = open_checkpoint("story-bert")
    before, even = [], []
    for text in our_probe().texts:
        with torch.no_grad():
            out = tiny.eager(model)(**model.encode(text.prompt).inputs, output_attentions=True)
        weights = out.attentions[2][0].double().numpy()  # (heads, queries, keys)
        before.append(np.diagonal(weights, -1, axis1=1, axis2=2))
        even.append(np.full(weights.shape[1] - 1, 1 / weights.shape[1]))
    means = np.concatenate(before, axis=1).mean(axis=1)
    evenly = np.concatenate(even).mean()
    for head in (0, 5):
        found = value(reader, kind="role score", site=ENCODER, head=head, word="previous")
        assert found == pytest.approx(means[head], abs=1e-5)
    assert value(reader, kind="even role score", site=ENCODER, word="previous") == pytest.approx(evenly, abs=1e-6)
    assert means[0] > 0.9 > 0.3 > means[5]
    assert value(reader, kind="role", site=ENCODER, head=0) == "previous"
    assert value(reader, kind="role", site=ENCODER, head=5) == "none"


def test_a_role_that_a_stack_cannot_have_is_said(reader: Engine) -> None:
    view = ask(reader, FactsRequest(run=2, ticket=9, facts=(Fact(kind="role score", site=ENCODER, word="next"),)))
    assert "no score as “next”" in getattr(view, "sentence", "")


@pytest.mark.parametrize(
    ("places", "text"), [((), ""), ((3,), "3"), ((4, 0, 1, 2), "0–2, 4"), ((0, 2, 4), "0, 2, 4"), ((5, 6), "5–6")]
)
def test_spans(places: tuple[int, ...], text: str) -> None:
    assert spans(places) == text
    assert places_in(text) == frozenset(places)
