"""One head as matrices, recomputed in float64 from what was kept, and held against Cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attention_models import run
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.matrices import WINDOW, MatricesRequest, MatricesView, window_start
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from attention_models.views.cell import cell_view
from attention_models.views.matrices import NO_PRODUCT, matrices_view
from tests.models import tiny
from tests.models.asking import ask, failure_of, opened
from tests.models.room import room_of_recomputing

TOLERANCE = 1e-5
WINDOWED = 8  # of gemma2, in every other layer from the first

# model, stack, layer, head
HEADS = [
    ("story-gpt", "decoder", 5, 5),
    ("story-bert", "encoder", 2, 1),
    ("llama", "decoder", 1, 3),  # shares its key head
    ("t5", "encoder", 0, 1),  # a bias
    ("t5", "decoder", 1, 2),
    ("t5", "cross", 2, 3),
    ("gemma2", "decoder", 0, 2),  # a soft cap and a window
    ("gpt_oss", "decoder", 1, 1),  # a sink
]


@pytest.fixture
def model_of(tiny_model: Any, story_gpt: Model, story_bert: Model) -> Any:
    return lambda name: {"story-gpt": story_gpt, "story-bert": story_bert}.get(name) or tiny_model(name)


def traced(model: Model, text: str = tiny.SENTENCE, *edits: Intervention) -> Trace:
    return run(model, text, target="to the park" if model.seq2seq else None, interventions=edits)


def view_of(model: Model, trace: Trace, site: SiteRef, head: int, first: tuple[int, int] = (0, 0)) -> MatricesView:
    request = MatricesRequest(run=1, site=site, head=head, first_query=first[0], first_key=first[1])
    return matrices_view(request, model, trace)


def close(found: Any, wanted: Any) -> None:
    wanted = np.asarray(wanted, np.float64)
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize(("name", "stack", "layer", "head"), HEADS)
def test_every_matrix_from_q_k_and_v(model_of: Any, name: str, stack: str, layer: int, head: int) -> None:
    model = model_of(name)
    trace = traced(model)
    site, x = trace.sites[trace.index((stack, layer))], trace.at((stack, layer), head)
    view = view_of(model, trace, site.ref, head)
    key_head = head // (site.heads // site.key_heads)
    q, k = x.query[0, head].double().numpy(), x.key[0, key_head].double().numpy()
    v = x.value[0, key_head].double().numpy()
    raw = q @ k.T
    scores = raw * x.scale
    if x.bias is not None:
        scores = scores + x.bias[0, head].double().numpy()
    if name == "gemma2":
        scores = 1.5 * np.tanh(scores / 1.5)
    places = np.arange(site.keys)
    hidden = np.zeros_like(scores, dtype=bool)
    if stack == "decoder":
        hidden = places[None] > places[:, None]
        hidden |= (places[:, None] - places[None] >= WINDOWED) & (name == "gemma2")
    powers = np.where(hidden, 0.0, np.exp(scores))
    sink = 0.0 if x.sinks is None else float(x.sinks[head].double().exp())
    weights = powers / (powers.sum(axis=1, keepdims=True) + sink)

    close(view.q, q)
    close(view.k, k)
    close(view.v, v)
    close(view.raw, raw)
    assert (view.scale, view.factor, view.softcap) == (x.scale, 1.0, 1.5 if name == "gemma2" else None)
    close(view.scores, scores)
    assert (np.zeros_like(hidden) if view.masked is None else view.masked).tolist() == hidden.tolist()
    close(np.exp(view.shift) * view.denominator, powers.sum(axis=1) + sink)
    close(np.exp(view.shift) * (0.0 if view.sink is None else view.sink), np.full(len(q), sink))
    assert (view.sink is None) == (x.sinks is None)
    close(view.weights, weights)
    close(view.output, weights @ v)
    assert not view.is_window
    assert not view.outside_weight.any()
    assert not view.outside_output.any()
    assert (view.bias is not None) == (name == "t5" and stack != "cross")
    assert view.rotated == (name in ("llama", "gemma2", "gpt_oss"))
    assert head in view.key_group


@pytest.mark.parametrize(("name", "stack", "layer", "head"), HEADS)
def test_they_are_the_numbers_that_cell_shows(model_of: Any, name: str, stack: str, layer: int, head: int) -> None:
    model = model_of(name)
    trace = traced(model, tiny.SENTENCE, Scale(0.7), Mask("painted", cells=((1, 0, False),)))
    view = view_of(model, trace, SiteRef(stack, layer), head)
    for query, key in ((0, 0), (1, 0), (len(view.q) - 1, 1), (1, len(view.k) - 1)):
        request = CellRequest(run=1, site=SiteRef(stack, layer), head=head, query=query, key=key)
        cell = cell_view(request, model, trace)
        close(view.q[query], cell.q)
        close(view.k[key], cell.k)
        close(view.v[key], cell.value)
        close(view.raw[query, key], cell.raw)
        close(view.raw[query, key] * view.scale * view.factor, cell.scaled)
        close(0.0 if view.bias is None else view.bias[query, key], cell.bias or 0.0)
        close(view.scores[query, key], cell.score)
        assert (view.masked is not None and bool(view.masked[query, key])) == cell.masked
        if cell.shift is not None:
            close(view.shift[query], cell.shift)
            close(view.denominator[query], cell.denominator)
        close(view.weights[query, key], cell.weight)
        close(view.output[query], cell.head_output)


def test_of_a_long_text_a_window(story_gpt: Model) -> None:
    trace = traced(story_gpt, tiny.text_of(story_gpt, 200))
    site, head = SiteRef("decoder", 3), 2
    view = view_of(story_gpt, trace, site, head, (130, 40))
    weights, scores = trace.weights(site, head), trace.scores(site, head)
    rows, keys = slice(130, 194), slice(40, 104)
    assert view.is_window
    assert (view.queries, view.keys) == (200, 200)
    # 64 rows at once, or all 200: a processor's library may add up their products in another order
    np.testing.assert_allclose(view.weights, weights[rows, keys], rtol=0, atol=min(room_of_recomputing(trace), 1e-6))
    close(view.scores, scores[rows, keys])
    close(view.outside_weight, 1 - weights[rows, keys].astype(np.float64).sum(axis=1))
    values = trace.at(site, head).value[0, head].double().numpy()
    close(view.output, weights[rows].astype(np.float64) @ values)
    close(view.weights @ view.v + view.outside_output, view.output)
    end = view_of(story_gpt, trace, site, head, (199, 190))
    assert (end.q.shape[0], end.k.shape[0]) == (1, 10)
    with pytest.raises(IndexError, match=r"There is no cell \(200, 0\): 200 x 200"):
        view_of(story_gpt, trace, site, head, (200, 0))


def test_a_row_that_attends_to_nothing(story_gpt: Model) -> None:
    shut = Mask("painted", cells=((0, 0, False),), site=SiteRef("decoder", 0), head=1)
    trace = traced(story_gpt, "Tom and Anna", shut)
    view = view_of(story_gpt, trace, SiteRef("decoder", 0), 1)
    assert np.isnan(view.shift[0])
    assert not view.weights[0].any()
    assert not view.output[0].any()
    assert np.isfinite(view.shift[1:]).all()


@pytest.mark.parametrize("count", [1, 5, WINDOW, WINDOW + 1, 100, 4096])
def test_the_window_holds_the_selection_and_stays_within_the_text(count: int) -> None:
    starts = [window_start(selected, count) for selected in range(count)]
    assert all(start <= selected < start + WINDOW for selected, start in enumerate(starts))
    assert min(starts) == 0
    assert max(starts) == max(0, count - WINDOW)
    assert len(set(starts)) <= 2 + count // (WINDOW // 2)


def test_the_engine_answers_or_says_why_not(tiny_folder: Any) -> None:
    engine = opened("story-gpt")
    ask(engine, ForwardRequest(inputs=RunInputs("Tom and Anna"), ticket=2))
    view = ask(engine, MatricesRequest(run=2, site=SiteRef("decoder", 1), head=0))
    assert isinstance(view, MatricesView)
    assert not any(array.flags.writeable for array in (view.q, view.k, view.v, view.scores, view.weights, view.output))
    for reference, site, sentence in (
        (tiny_folder("bloom"), SiteRef("decoder", 0), "bloom"),
        ("recurrent-en-es-bahdanau", SiteRef("cross", 0), NO_PRODUCT),
    ):
        engine = opened(str(reference))
        ask(engine, ForwardRequest(inputs=RunInputs("Tom and Anna", target=None), ticket=2))
        assert sentence in failure_of(engine, MatricesRequest(run=2, site=site, head=0)).sentence
