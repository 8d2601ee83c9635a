"""Normalisations, told by what they compute: recomputed in float64 one equals what its module gave, or it is none."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.files.devices import weight_of

_EPS_NAMES = ("eps", "variance_epsilon", "epsilon", "norm_eps", "layer_norm_eps")
_EPS_USUAL = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7)
_ROWS = 8
"""Rows that a module is tried on."""

_TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-9, torch.bfloat16: 2e-2, torch.float16: 4e-3}
"""By how much of its largest number a row may be off: rounding. A bias or gain that is left out is more."""


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """y = (x - mean) / sqrt(variance + eps) * gain + bias; an RMS norm's mean is 0 (Ba et al. 2016, Zhang 2019).

    `gain` and `bias` are (width,) float64 as they multiply and are added, None where the module has none.
    """

    rms: bool
    eps: float
    gain: Tensor | None
    bias: Tensor | None

    def statistics(self, x: np.ndarray) -> tuple[float, float]:
        """Mean and deviation of a vector (width,), in float64; of an RMS norm 0 and the root mean square."""
        vector = x.astype(np.float64)
        mean = 0.0 if self.rms else float(vector.sum()) / len(vector)
        centred = vector - mean
        return mean, math.sqrt(float(centred @ centred) / len(vector))

    def of_vector(self, x: np.ndarray) -> np.ndarray:
        """What it makes of a vector, (width,) float64."""
        mean, deviation = self.statistics(x)
        y: np.ndarray = (x - mean) / math.sqrt(deviation**2 + self.eps)
        if self.gain is not None:
            y = y * self.gain.numpy()
        return y if self.bias is None else y + self.bias.numpy()

    def __call__(self, x: Tensor) -> Tensor:
        """What it makes of the rows of `x`, (rows, width) float64."""
        rows = x.double()
        if not self.rms:
            rows = rows - rows.mean(dim=-1, keepdim=True)
        y = rows / (rows.square().mean(dim=-1, keepdim=True) + self.eps).sqrt()
        if self.gain is not None:
            y = y * self.gain
        return y if self.bias is None else y + self.bias


def norm_of(module: nn.Module, given: Tensor, gave: Tensor) -> Norm | None:
    """The normalisation that makes `gave` of `given`; None where no such formula with the module's numbers does."""
    if given.shape != gave.shape or given.dim() < 2 or not given.is_floating_point():
        return None
    width = given.shape[-1]
    x, y = (_some(t.reshape(-1, width)) for t in (given, gave))
    held = (*module._parameters.items(), *module._buffers.items())
    own = [(name, t) for name, t in held if t is not None]
    vectors = {name: weight_of(module, name).detach().cpu().double() for name, t in own if tuple(t.shape) == (width,)}
    if len(vectors) > 2 or any(t.dim() > 1 for _, t in own):
        return None
    least, found = _TOLERANCE.get(gave.dtype, 2e-5), None
    for norm in _candidates(module, vectors):
        off = float((norm(x) - y).abs().max() / y.abs().max().clamp(min=1e-30))
        if off < least:
            least, found = off, norm
    return found


def _some(rows: Tensor) -> Tensor:
    step = max(1, len(rows) // _ROWS)
    return rows[::step].detach().cpu().double()


def _candidates(module: nn.Module, vectors: dict[str, Tensor]) -> Iterator[Norm]:
    named = [float(v) for name in _EPS_NAMES if isinstance(v := getattr(module, name, None), (int, float))]
    bias = vectors.get("bias")
    weights = [v for name, v in vectors.items() if name != "bias"]
    gains: list[Tensor | None] = [None]
    if len(weights) == 1:  # some families keep g, some what is added to 1
        gains = [weights[0], 1.0 + weights[0]]
    elif weights or (bias is not None and not weights):
        gains = [*weights, None]
    for eps in named or _EPS_USUAL:
        for gain in gains:
            for rms in (False, True):
                yield Norm(rms, eps, gain, bias)
                if vectors:
                    yield Norm(rms, eps, None, None)  # both switched off
