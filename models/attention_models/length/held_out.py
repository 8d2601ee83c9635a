"""Which English sentences the training of the translators never saw: the same split, for training and for measuring."""

from __future__ import annotations

import random
from collections.abc import Sequence

from attention_models.length.pairs import Pair

HELD_OUT = 1_500


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Training and held-out pairs that share no English sentence."""
    english = sorted({pair[0] for pair in pairs})
    random.Random(0).shuffle(english)
    held = set(english[: min(HELD_OUT, len(english) // 10)])
    return [p for p in pairs if p[0] not in held], [p for p in pairs if p[0] in held]
