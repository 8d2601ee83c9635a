"""How a textbook transformer is trained, checked where it is said; and the learning rate of section 5.3."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attention_models.textbook.typed_numbers import typed_number

MOST_SEED = (1 << 31) - 1
_MOST = {"batch": 4096, "warmup": 10**9, "snapshot_every": 10**9, "held_out": 100_000}


def check_seed(seed: object) -> int:
    """`seed` itself. Raises ValueError for what no training is begun with: a file or an option may say anything."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MOST_SEED:
        raise ValueError(f"the seed is {_short(seed)}, and has to be a whole number from 0 to {MOST_SEED:,}")
    return seed


@dataclass(frozen=True, slots=True)
class Settings:
    """Raises ValueError for numbers that make no training."""

    seed: int = 0  # of weights, rows and dropout
    batch: int = 64  # rows a step
    rate: float = 0.5  # what the paper's learning rate is multiplied by
    warmup: int = 200  # steps in which it climbs
    clip: float = 1.0  # the most that the gradient's length may be
    snapshot_every: int = 20  # steps
    held_out: int = 500  # rows

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name in ("batch", "warmup", "snapshot_every", "held_out"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {_short(getattr(self, name))}, and has to be at least 1")
            if getattr(self, name) > _MOST[name]:
                raise ValueError(f"{name} is {_short(getattr(self, name))}, and is {_MOST[name]:,} at most")
        for name in ("rate", "clip"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} is {getattr(self, name)}, and has to be above 0")

    def learning_rate(self, step: int, width: int) -> float:
        """Section 5.3, equation 3: of step `step`, counted from 1. Kingma and Ba 2015's Adam takes it."""
        return float(self.rate * width**-0.5 * min(step**-0.5, step * self.warmup**-1.5))


def _short(value: object) -> str:
    """A number that nobody has bounded, as a sentence can hold it."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a number of more than 20 digits"
    return f"{value:,}" if isinstance(value, int) else f"{value!r:.40}"


NUMBERS: dict[str, type[int] | type[float]] = {
    "batch": int,
    "rate": float,
    "warmup": int,
    "clip": float,
    "snapshot_every": int,
}
"""What can be set by name on the command line; the seed has an option of its own."""


def as_setting(name: str, text: str) -> float | int:
    """What `--set name=text` means. Raises ValueError where it is no number of the kind."""
    return typed_number(name, text, NUMBERS[name])


COOL_DOWN = 0.2
"""The last part of a training of known length, in which the rate falls to `COOLEST` of the schedule's."""

COOLEST = 0.02


def cooled(fraction: float) -> float:
    """What the rate is multiplied by where `fraction` of the training is done."""
    return min(1.0, max(COOLEST, (1 - fraction) / COOL_DOWN))
