"""Holds the picture that a model was given against what transformers makes of the same file."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from attention_models.forward.vision import VisionModel


def picture_difference(model: VisionModel, source: str | np.ndarray, pixels: Tensor) -> float | None:
    """Largest |ours - transformers' own| over all numbers of the input; None where it has none to compare with.

    Args:
        source: the file's path or the sample's name that `pixels`, (1, channels, height, width), were made of.
    """
    theirs = None if isinstance(source, np.ndarray) else model.own_input(source)
    if theirs is None:
        return None
    if theirs.shape != pixels.shape:
        return float("inf")
    return float((theirs.float() - pixels.float()).abs().max())
