"""Arrays as answers hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def read_only(array: np.ndarray) -> np.ndarray:
    """`array` itself, which nobody can write into from now on."""
    array.flags.writeable = False
    return array
