"""Tells when a loss diverges."""

from __future__ import annotations

import math
from dataclasses import dataclass

RISEN, PATIENCE = 2.0, 20
"""A loss that is so many times the first one for so many steps has diverged."""


@dataclass(slots=True)
class LossWatch:
    """What is kept of the losses so far."""

    first: float = 0.0
    risen: int = 0  # steps in a row in which the loss was far above the first one

    def fault(self, loss: float, gradient: float) -> str:
        """What is wrong with a step's loss, as “the loss …” goes on; "" while it can be followed.

        `gradient` is the length of the step's gradient, which has to be a number too.
        """
        finite = math.isfinite(loss) and math.isfinite(gradient)
        self.first = self.first or loss
        self.risen = self.risen + 1 if finite and loss > RISEN * self.first else 0
        if not finite:
            return "is no number"
        return f"has been above {RISEN:g} times the first one for {PATIENCE} steps" if self.risen >= PATIENCE else ""
