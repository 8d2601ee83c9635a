"""A recurrent model unrolled in time: where its states stand. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_models.protocol.flow import RecurrentFlow


@dataclass(frozen=True, slots=True, eq=False)
class RecurrentScene:
    """The words that are read and written, the norms of the states, and where each step looks."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    flow: RecurrentFlow
    weights: np.ndarray | None = None  # (source,) of the selected step

    @property
    def steps(self) -> int:
        """How many steps there are: first the source is read, then the target is written."""
        return len(self.source) + len(self.target)

    def largest(self) -> float:
        """The largest norm of a state."""
        states = [*self.flow.encoder, self.flow.decoder]
        return max((float(np.max(each, initial=0.0)) for each in states), default=0.0) or 1.0
