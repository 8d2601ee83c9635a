"""Where two sequences part."""

from __future__ import annotations

from collections.abc import Sequence


def common_start(a: Sequence[object], b: Sequence[object]) -> int:
    """How many items two sequences begin with in common."""
    shorter = min(len(a), len(b))
    return next((i for i in range(shorter) if a[i] != b[i]), shorter)
