"""Entropy in closed form, and the two units."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attention_models.protocol.information import entropy, from_bits, from_nats


@pytest.mark.parametrize("count", [1, 2, 4, 7, 1024])
def test_an_even_row_has_the_logarithm_of_its_keys(count):
    assert float(entropy(np.full(count, 1 / count))) == pytest.approx(math.log2(count), abs=1e-12)
    assert from_bits(float(entropy(np.full(count, 1 / count))), "nats") == pytest.approx(math.log(count), abs=1e-12)


def test_a_row_of_certainty_has_none_and_no_minus():
    sure = entropy(np.eye(4, dtype=np.float32))
    assert (sure == 0).all()
    assert not np.signbit(sure).any()


def test_a_coin_has_one_bit_which_is_log_2_nats():
    coin = float(entropy(np.array([0.5, 0.5])))
    assert from_bits(coin, "bits") == 1.0
    assert from_bits(coin, "nats") == math.log(2)
    assert from_nats(math.log(2), "nats") == math.log(2)
    assert from_nats(math.log(2), "bits") == 1.0


def test_random_rows_have_torch_s_entropy():
    weights = torch.softmax(torch.randn(5, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), -1)
    nats = torch.distributions.Categorical(probs=weights).entropy().numpy()
    np.testing.assert_allclose(entropy(weights.numpy()) * math.log(2), nats, atol=1e-12)


def test_of_a_row_with_a_sink_the_keys_alone_count():
    assert float(entropy(np.array([0.5, 0.25]))) == pytest.approx(0.5 + 0.5)  # and 1/4 of it is the sink's
