"""How far the weights of two runs that add up in other orders may lie apart: for tests that compare such runs."""

from __future__ import annotations

import torch

from attention_models.attention.inputs import AttentionInputs
from attention_models.attention.rounding import bounds
from attention_models.forward.trace import Trace

UNIT = 2.0**-24  # the unit roundoff of float32
_OPERATIONS = 16  # of one block, for weights that a module computed itself, of which no scores are known


def room_of(x: AttentionInputs, head: int, layer: int, theirs: torch.Tensor, least: float, most: float) -> float:
    """For one head's weights, `theirs` (queries, keys): what rounding explains in its block and in those below it.

    The order follows from threads, from the processor and from how many rows there are; unscaled scores (T5, GPT-Neo)
    make most of it. Never less than `least`, and never more than `most`.
    """
    return min(max((2 + layer) * _once(x, head, theirs), least), most)


def room_of_recomputing(trace: Trace) -> float:
    """For every weight of `trace`: a processor's library may add up the products of one head, or of some rows, in
    another order than those of all (`MKL_CBWR=COMPATIBLE` does, with two threads and heads of 32 dimensions)."""
    return max(
        _once(x, head, torch.from_numpy(trace.weights(site, head).copy()))
        for site, x in zip(trace.sites, trace.inputs, strict=True)
        for head in range(site.heads)
    )


def _once(x: AttentionInputs, head: int, weights: torch.Tensor) -> float:
    """What rounding explains in one block."""
    if x.precomputed is not None:
        return _OPERATIONS * UNIT
    found = bounds(x, head, None, weights)
    return float(torch.maximum(found.high - found.weights, found.weights - found.low).max())
