"""How far the weights of two runs that add up in other orders may lie apart: for tests that compare such runs."""

from __future__ import annotations

import torch

from models.attention.inputs import AttentionInputs
from models.attention.rounding import bounds

UNIT = 2.0**-24  # the unit roundoff of float32
_OPERATIONS = 16  # of one block, for weights that a module computed itself, of which no scores are known


def room_of(x: AttentionInputs, head: int, layer: int, theirs: torch.Tensor, least: float, most: float) -> float:
    """For one head's weights, `theirs` (queries, keys): what rounding explains in its block and in those below it.

    The order follows from threads, from the processor and from how many rows there are; unscaled scores (T5, GPT-Neo)
    make most of it. Never less than `least`, and never more than `most`.
    """
    if x.precomputed is not None:
        once = _OPERATIONS * UNIT
    else:
        found = bounds(x, head, None, theirs)
        once = float(torch.maximum(found.high - found.weights, found.weights - found.low).max())
    return min(max((2 + layer) * once, least), most)
