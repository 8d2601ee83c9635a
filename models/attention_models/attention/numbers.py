"""From tensors to the arrays that answers hold."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from attention_models.protocol.values import read_only


def to_numpy(t: Tensor) -> np.ndarray:
    """The numbers of `t`, floating ones as float32; may share its memory."""
    t = t.detach()
    array: np.ndarray = (t.float() if t.is_floating_point() else t).cpu().numpy()
    return array


def copied(t: Tensor) -> np.ndarray:
    """As `to_numpy`, in memory of its own that nobody can write into."""
    return read_only(to_numpy(t).copy())
