"""What an (i) says of a panel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """Three or four sentences with the numbers that the panel shows, and one thing to try in it."""

    sentences: tuple[str, ...]
    to_try: str = ""

    @classmethod
    def of(cls, sentences: Iterable[str], to_try: str = "") -> About:
        """Of those sentences that are not empty."""
        return cls(tuple(sentence for sentence in sentences if sentence), to_try)
