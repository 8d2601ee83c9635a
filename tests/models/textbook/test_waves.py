"""The textbook's schemes against transformers' own tensors, and against loops in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

from attention_models.textbook import waves


def test_sinusoids_are_those_of_the_paper():
    table = waves.sinusoidal(50, 16)
    for position in range(50):
        for pair in range(8):
            angle = position / 10_000 ** (2 * pair / 16)
            assert table[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-12)


@pytest.mark.parametrize("width", [16, 64, 30])
def test_halves_are_marians(width):
    module = MarianSinusoidalPositionalEmbedding(100, width)
    theirs = module.create_weight().numpy()
    assert np.abs(waves.sinusoidal(100, width, layout="halves") - theirs).max() < 1e-6


def test_an_odd_width_ends_with_a_sine():
    table = waves.sinusoidal(10, 5)
    assert table.shape == (10, 5)
    assert table[7, 4] == pytest.approx(math.sin(7 / 10_000 ** (4 / 5)), abs=1e-12)


def test_a_wave_comes_round_after_its_wavelength():
    lengths = waves.wavelengths(32, base=100.0)
    angles = lengths / 100.0 ** (np.arange(0, 32, 2) / 32)
    assert angles == pytest.approx(np.full(16, 2 * math.pi), rel=1e-12)


def test_dot_products_depend_on_the_distance_alone():
    products = waves.dot_products(waves.sinusoidal(40, 32))
    for apart in range(20):
        diagonal = np.diagonal(products, apart)
        assert diagonal == pytest.approx(np.full(len(diagonal), diagonal[0]), abs=1e-10)
        frequencies = 10_000 ** (-np.arange(0, 32, 2) / 32)
        assert diagonal[0] == pytest.approx(np.cos(apart * frequencies).sum(), abs=1e-10)


def test_distances_and_cosines_are_those_of_a_loop():
    table = np.random.default_rng(0).normal(size=(7, 5))
    table[3] = 0.0
    apart, alike = waves.distances(table), waves.cosines(table)
    for i in range(7):
        for j in range(7):
            assert apart[i, j] == pytest.approx(math.dist(table[i], table[j]), abs=1e-7)
            lengths = np.linalg.norm(table[i]) * np.linalg.norm(table[j])
            assert alike[i, j] == pytest.approx(table[i] @ table[j] / lengths if lengths else 0.0, abs=1e-12)


def test_principal_components_are_the_eigenvectors_of_the_covariance():
    table = np.random.default_rng(1).normal(size=(30, 8)) * np.arange(1, 9)
    scores, shares = waves.principal_components(table)
    values = np.linalg.eigvalsh(np.cov(table.T))[::-1]
    assert shares == pytest.approx(values[:3] / values.sum(), rel=1e-10)
    assert scores.var(axis=1, ddof=1) == pytest.approx(values[:3], rel=1e-10)
    assert np.abs(scores).max(axis=1) == pytest.approx(scores.max(axis=1))


def test_equal_rows_have_no_components():
    scores, shares = waves.principal_components(np.ones((4, 6)))
    assert not scores.any()
    assert not shares.any()


@pytest.mark.parametrize("heads", [1, 2, 3, 8, 12, 16, 20])
def test_slopes_are_blooms_and_mpts(heads):
    bloom = build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)[:, 0, 1].numpy()
    mpt = build_mpt_alibi_tensor(heads, 2)[:, 0, 0].numpy()
    assert waves.alibi_slopes(heads) == pytest.approx(bloom, abs=1e-6)
    assert -waves.mpt_slopes(heads) == pytest.approx(mpt, abs=1e-6)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (16, 64), (8, 20)])
def test_buckets_are_t5s(bidirectional, buckets, farthest):
    apart = np.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(torch.tensor(apart), bidirectional, buckets, farthest).numpy()
    assert (waves.t5_buckets(apart, bidirectional, buckets, farthest) == theirs).all()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: waves.sinusoidal(0, 4), "A table of 0 positions is empty"),
        (lambda: waves.sinusoidal(4, 0), "A table of 0 dimensions is empty"),
        (lambda: waves.wavelengths(4, base=1.0), "a number above 1, not 1.0"),
        (lambda: waves.wavelengths(4, base=math.nan), "a number above 1, not nan"),
        (lambda: waves.alibi_slopes(0), "no slopes for 0 heads"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
