"""Which English sentences the training of the translators never saw: the same split, for training and for measuring."""

from __future__ import annotations

import lzma
import random
import unicodedata
from collections.abc import Sequence
from pathlib import Path

Pair = tuple[str, str]

HELD_OUT = 1_500


def read_pairs(path: Path) -> list[Pair]:
    """The different pairs of the file, in its order. Columns after the second are attributions and are passed over."""
    pairs: dict[Pair, None] = {}
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            columns = [unicodedata.normalize("NFC", column.strip()) for column in line.rstrip("\n").split("\t")]
            if len(columns) >= 2:
                pairs[columns[0], columns[1]] = None
    return list(pairs)


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Training and held-out pairs that share no English sentence."""
    english = sorted({pair[0] for pair in pairs})
    random.Random(0).shuffle(english)
    held = set(english[: min(HELD_OUT, len(english) // 10)])
    return [p for p in pairs if p[0] not in held], [p for p in pairs if p[0] in held]
