"""Attention inputs of every sort, and the formula written out for them in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs

HEADS, DIM = 4, 8
LOWEST = torch.finfo(torch.float32).min


def random_inputs(queries: int, keys: int, key_heads: int = HEADS, **extras: Any) -> AttentionInputs:
    torch.manual_seed(queries * 1000 + keys)
    return AttentionInputs(
        query=2 * torch.randn(1, HEADS, queries, DIM),
        key=2 * torch.randn(1, key_heads, keys, DIM),
        value=torch.randn(1, key_heads, keys, DIM),
        scale=DIM**-0.5,
        **extras,
    )


def random_mask(queries: int, keys: int) -> Tensor:
    """(1, 1, queries, keys) bool; every query may look at the first key."""
    mask = torch.rand(1, 1, queries, keys, generator=torch.Generator().manual_seed(7)) > 0.4
    mask[..., 0] = True
    return mask


def added(mask: Tensor) -> Tensor:
    """The same mask as numbers to add: 0 or the lowest float."""
    return torch.zeros(mask.shape).masked_fill(~mask, LOWEST)


def make(case: str, queries: int = 13, keys: int = 13) -> AttentionInputs:
    mask = random_mask(queries, keys)
    bias = torch.randn(1, HEADS, queries, keys, generator=torch.Generator().manual_seed(8))
    sinks = torch.tensor([0.5, -1.0, 3.0, 0.0])
    extras: dict[str, dict[str, Any]] = {
        "plain": {},
        "causal": {"causal": True},
        "bool mask": {"mask": mask},
        "float mask": {"mask": added(mask)},
        "mask that also biases": {"mask": added(mask) + bias.masked_fill(~mask, 0.0)},
        "mask of keys": {"mask": mask[:, :, :1]},
        "bias": {"bias": bias},
        "bias of keys": {"bias": bias[:, :, :1]},
        "bias, causal": {"bias": bias, "causal": True},
        "bias, bool mask": {"bias": bias, "mask": mask},
        "bias, float mask": {"bias": bias, "mask": added(mask)},
        "soft cap": {"softcap": 1.5},
        "soft cap, causal": {"softcap": 1.5, "causal": True},
        "soft cap, bool mask": {"softcap": 1.5, "mask": mask},
        "sinks": {"sinks": sinks},
        "sinks, bool mask": {"sinks": sinks, "mask": mask},
        "grouped": {"key_heads": 2},
        "grouped, causal": {"key_heads": 2, "causal": True},
        "one key head": {"key_heads": 1, "mask": mask},
        "everything": {"key_heads": 2, "bias": bias, "softcap": 1.5, "mask": mask, "sinks": sinks},
    }
    return random_inputs(queries, keys, **extras[case])


CASES = [
    "plain",
    "causal",
    "bool mask",
    "float mask",
    "mask that also biases",
    "mask of keys",
    "bias",
    "bias of keys",
    "bias, causal",
    "bias, bool mask",
    "bias, float mask",
    "soft cap",
    "soft cap, causal",
    "soft cap, bool mask",
    "sinks",
    "sinks, bool mask",
    "grouped",
    "grouped, causal",
    "one key head",
    "everything",
]


class Explicit:
    """The formula, one query and one key at a time, in float64 and without torch."""

    def __init__(self, x: AttentionInputs) -> None:
        def whole(t: Tensor | None) -> np.ndarray | None:
            if t is None:
                return None
            return t.detach().expand(1, HEADS, x.queries, x.keys)[0].numpy()

        q, k, v = (t.detach()[0].double().numpy() for t in (x.query, x.key, x.value))
        bias, mask = whole(x.bias), whole(x.mask)
        shape = (HEADS, x.queries, x.keys)
        self.scores = np.zeros(shape)  # with what a mask adds to cells that may be looked at
        self.open = np.ones(shape, dtype=bool)
        self.weights = np.zeros(shape)
        self.output = np.zeros((HEADS, x.queries, v.shape[-1]))
        for h in range(HEADS):
            shared = h * x.key.shape[1] // HEADS
            for i in range(x.queries):
                for j in range(x.keys):
                    s = x.scale * float(q[h, i] @ k[shared, j])
                    if bias is not None:
                        s += float(bias[h, i, j])
                    if x.softcap is not None:
                        s = x.softcap * math.tanh(s / x.softcap)
                    may = j <= i if x.causal else True
                    if mask is not None:
                        may = bool(mask[h, i, j]) if mask.dtype == bool else mask[h, i, j] > LOWEST / 2
                        if may and mask.dtype != bool:
                            s += float(mask[h, i, j])
                    self.scores[h, i, j], self.open[h, i, j] = s, may
                e = np.where(self.open[h, i], np.exp(self.scores[h, i]), 0.0)
                total = e.sum() + (math.exp(float(x.sinks[h])) if x.sinks is not None else 0.0)
                if total > 0:
                    self.weights[h, i] = e / total
                self.output[h, i] = self.weights[h, i] @ v[shared]
