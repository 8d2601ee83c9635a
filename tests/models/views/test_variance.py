"""The variance experiment against its closed forms, and a real head against numpy."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest

from attention_models import run
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import SiteRef
from attention_models.protocol.variance import VarianceRequest
from attention_models.views.variance import DIMENSIONS, head_scores, jacobian_norm, measure, relative_error, softmax

SENTENCE = "Tom and Anna went to the park. Anna gave the ball to"
ERRORS = 5  # standard errors: a sound draw fails once in two million


@pytest.mark.parametrize("deviation", [0.5, 1.0, 2.0])
def test_variance_follows_the_law(deviation):
    found = measure(batch=64, tokens=64, deviation=deviation, seed=3)
    law = np.array([deviation**4 * d for d in DIMENSIONS])
    np.testing.assert_allclose(found.law, law, rtol=1e-12)
    assert tuple(found.dimensions) == DIMENSIONS
    # a product of two normal variables has kurtosis 9; that of their sum is 3 + 6/d
    n = 64 * 64
    error = law * np.array([math.sqrt((3 + 6 / d - (n - 3) / (n - 1)) / n) for d in DIMENSIONS])
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-12)
    assert (np.abs(found.variance - law) < ERRORS * error).all()


def test_the_standard_error_is_what_many_draws_show():
    variances = np.array([measure(batch=8, tokens=8, deviation=1.0, seed=seed).variance for seed in range(60)])
    ratio = variances[:, :6].std(axis=0, ddof=1) / (relative_error(np.array(DIMENSIONS[:6]), 64) * DIMENSIONS[:6])
    assert ((ratio > 0.6) & (ratio < 1.6)).all()  # a spread of 60 draws is known to about a tenth, heavy tails aside


def test_a_seed_repeats_its_draw_and_another_does_not():
    first, same, other = (measure(4, 8, 1.0, seed) for seed in (1, 1, 2))
    for field in fields(first):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(same, field.name))
    assert not np.array_equal(first.variance, other.variance)
    assert not first.rows.flags.writeable


def test_unscaled_softmax_saturates_and_scaled_does_not():
    found = measure(batch=64, tokens=32, deviation=1.0, seed=0)
    assert found.largest[0, -1] > 0.9 > 0.3 > found.largest[1, -1]
    assert found.entropy[0, -1] < 0.5 < 4 < found.entropy[1, -1] <= math.log2(32)
    assert found.gradient[0, -1] < 0.1 < 0.2 < found.gradient[1, -1]
    np.testing.assert_array_equal(found.rows[0, 0], found.rows[1, 0])  # 1/sqrt(1)
    np.testing.assert_allclose(found.rows.sum(axis=-1), 1, atol=1e-6)
    assert (np.diff(found.rows, axis=-1) <= 0).all()


def test_figures_belong_to_the_rows():
    """With a batch of one row the means are that row's own figures."""
    found = measure(batch=1, tokens=16, deviation=1.0, seed=5)
    rows = found.rows.astype(np.float64)
    np.testing.assert_allclose(found.largest, rows.max(axis=-1), atol=1e-6)
    bits = [[-math.fsum(w * math.log2(w) for w in row if w > 0) for row in part] for part in rows]
    np.testing.assert_allclose(found.entropy, bits, atol=1e-5)
    norms = [[np.linalg.norm(np.diag(row) - np.outer(row, row)) for row in part] for part in rows]
    np.testing.assert_allclose(found.gradient, norms, atol=1e-6)


@pytest.mark.parametrize("spread", [0.1, 1.0, 6.0])
def test_jacobian_norm_equals_finite_differences(spread):
    scores = spread * np.random.default_rng(0).normal(size=12)
    step = 1e-6
    differences = [(softmax(scores + step * e) - softmax(scores - step * e)) / (2 * step) for e in np.eye(12)]
    p = softmax(scores)
    closed = np.linalg.norm(np.diag(p) - np.outer(p, p))
    assert float(jacobian_norm(p)) == pytest.approx(closed, abs=1e-12)
    assert float(jacobian_norm(p)) == pytest.approx(np.linalg.norm(differences), abs=1e-8)


def test_limits_of_the_jacobian():
    certain, even = np.array([1.0, 0.0, 0.0, 0.0]), np.full(4, 0.25)
    assert float(jacobian_norm(certain)) == 0.0
    assert float(jacobian_norm(even)) == pytest.approx(math.sqrt(3) / 4)  # eigenvalues 1/4, three times


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ((0, 8, 1.0, 0), "at least 1 row"),
        ((1, 1, 1.0, 0), "2 keys"),
        ((1, 8, 0.0, 0), "standard deviation"),
        ((1, 8, math.nan, 0), "standard deviation"),
        ((1, 8, 1.0, -1), "seed"),
        ((128, 129, 1.0, 0), "at most 16,384"),
    ],
)
def test_what_can_not_be_drawn_is_refused_with_a_sentence(numbers, says):
    with pytest.raises(ValueError, match=says):
        measure(*numbers)


def test_the_largest_experiment_is_allowed():
    request = VarianceRequest(batch=128, tokens=128, deviation=1.0, seed=0)
    assert request.refusal() == ""
    assert request.batch * request.tokens * max(DIMENSIONS) == request.most_elements
    assert request.widest == max(DIMENSIONS)


def test_the_work_can_be_called_off_and_reports():
    labels: list[float | None] = []
    with pytest.raises(Cancelled):
        measure(4, 8, 1.0, 0, should_stop=lambda: len(labels) > 3, report=lambda _, done: labels.append(done))
    assert labels == [0, 1 / 11, 2 / 11, 3 / 11]


# --------------------------------------------------------------------------- a real head


def expected(trace, site: int, head: int) -> np.ndarray:
    """q . k of every allowed cell, in float64, by a formula of its own."""
    x = trace.inputs[site]
    q = x.query[0, head].double().numpy()
    k = x.key[0, head // x.group].double().numpy()
    masked = trace.masked(site, head)
    cells = [math.fsum(q[i] * k[j]) for i in range(len(q)) for j in range(len(k)) if masked is None or not masked[i, j]]
    return np.array(cells)


@pytest.mark.parametrize(("name", "text"), [("story_gpt", SENTENCE), ("story_bert", "Tom went to the [MASK].")])
def test_a_heads_variance_equals_numpy(request, name, text):
    trace = run(request.getfixturevalue(name), text)
    site, head = 3, 2
    found = head_scores(trace, trace.sites[site].ref, head)
    cells = expected(trace, site, head)
    assert found is not None
    assert found.cells == len(cells)
    assert found.mean == pytest.approx(cells.mean(), rel=1e-9)
    assert found.variance == pytest.approx(cells.var(), rel=1e-9)
    assert found.deviation == pytest.approx(cells.std(), rel=1e-9)
    x = trace.inputs[site]
    assert found.head_dim == x.query.shape[-1]
    assert found.scale == x.scale
    assert found.scaled_variance == pytest.approx((cells * x.scale).var(), rel=1e-9)
    q, k = x.query[0, head].double().numpy(), x.key[0, head].double().numpy()
    assert found.independent == pytest.approx(found.head_dim * (q**2).mean() * (k**2).mean(), rel=1e-9)


def test_a_causal_head_counts_its_lower_triangle(story_gpt):
    trace = run(story_gpt, SENTENCE)
    tokens = len(trace.tokens)
    found = head_scores(trace, SiteRef("decoder", 5), 5)
    assert found is not None
    assert found.cells == tokens * (tokens + 1) // 2


def test_interventions_show_in_scale_and_cells(story_gpt):
    trace = run(story_gpt, SENTENCE, interventions=[Scale(2.0), Mask("none")])
    found = head_scores(trace, SiteRef("decoder", 0), 0)
    plain = head_scores(run(story_gpt, SENTENCE), SiteRef("decoder", 0), 0)
    assert found is not None
    assert plain is not None
    assert found.scale == pytest.approx(2 * plain.scale)
    assert found.cells == len(trace.tokens) ** 2


def test_grouped_queries_share_their_key_head(tiny_model):
    trace = run(tiny_model("llama"), SENTENCE)
    head = trace.inputs[0].heads - 1
    assert trace.inputs[0].group > 1
    found = head_scores(trace, trace.sites[0].ref, head)
    assert found is not None
    assert found.variance == pytest.approx(expected(trace, 0, head).var(), rel=1e-9)


def test_a_head_that_is_not_there(story_gpt):
    trace = run(story_gpt, "Tom went")
    with pytest.raises(IndexError):
        head_scores(trace, SiteRef("decoder", 0), 99)
