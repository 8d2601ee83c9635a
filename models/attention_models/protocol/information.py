"""How much a distribution leaves open, in bits or in nats. Numpy, no torch.

Shannon 1948: H = -sum p log p, with the logarithm to base 2 in bits and to base e in nats; 1 bit is log 2 nats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Unit = Literal["bits", "nats"]

NATS_IN_A_BIT = math.log(2)


def entropy(weights: np.ndarray) -> np.ndarray:
    """Of each distribution along the last axis, in bits, float64; a weight of 0 counts as 0.

    0 for one key that has all, log2(keys) for an even row. Of a row whose sink takes a share, the sum over its keys.
    """
    import numpy as np  # here, for the names of units are imported before the window's first paint

    w = weights.astype(np.float64)
    bits: np.ndarray = -(w * np.log2(w, out=np.zeros_like(w), where=w > 0)).sum(axis=-1)
    positive: np.ndarray = np.maximum(bits, 0.0)  # a row of certainty has 0, not -0
    return positive


def from_bits(bits: float, unit: Unit) -> float:
    """An entropy in bits, in `unit`."""
    return bits if unit == "bits" else bits * NATS_IN_A_BIT


def from_nats(nats: float, unit: Unit) -> float:
    """A loss or a log-probability in nats, in `unit`."""
    return nats if unit == "nats" else nats / NATS_IN_A_BIT
