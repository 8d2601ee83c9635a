"""How long a norm is drawn: one scale for all bars of a picture, and one for all lanes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

_OUTLIER = 6.0
"""Times the upper quartile: a longer norm is drawn cut off. That of the first token is 50 times in many models."""


@dataclass(frozen=True, slots=True)
class NormScale:
    """Lengths in proportion to norms, up to `longest`. What is beyond it is drawn as long, with a mark that says so."""

    longest: float = 1.0
    cuts: bool = False  # whether there is something beyond

    def share(self, norm: float) -> float:
        """Of the room there is, 0 to 1."""
        return min(1.0, max(0.0, norm / self.longest))

    def is_beyond(self, norm: float) -> bool:
        return self.cuts and norm > self.longest * (1 + 1e-6)


def norm_scale(norms: Iterable[np.ndarray]) -> NormScale:
    """A scale on which most of `norms` can be told apart: in proportion to the largest that is no outlier."""
    every = np.concatenate([np.zeros(0), *(np.asarray(each, np.float64).ravel() for each in norms)])
    every = every[np.isfinite(every) & (every > 0)]
    if not len(every):
        return NormScale()
    bound = _OUTLIER * float(np.quantile(every, 0.75))
    return NormScale(float(every[every <= bound].max()), cuts=bool((every > bound).any()))
