"""How long a training was to take, as the record in its folder has it."""

from __future__ import annotations

from dataclasses import asdict

import msgspec

from attention_models.training.common import Budget


class KeptLength(msgspec.Struct, frozen=True):
    """What is read of it."""

    seconds: float | None
    steps: int | None
    spent: float  # seconds that are gone of it


def record_of(budget: Budget | None, spent: float) -> dict[str, float | None] | None:
    """What a record holds of it; `spent` are the seconds that are gone."""
    return None if budget is None else {**asdict(budget), "spent": round(spent, 3)}


def length_in(kept: KeptLength | None) -> tuple[Budget | None, float]:
    """The budget, and the seconds that are gone of it. Raises ValueError where a record has no whole one."""
    return (None, 0.0) if kept is None else (Budget(kept.seconds, kept.steps), max(0.0, kept.spent))
