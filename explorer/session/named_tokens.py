"""Tokens as files of examples and tours name them: by their words, and which of those alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from models.protocol.values import Token

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]


def position_of(word: str, place: int, tokens: Sequence[Token]) -> int | None:
    """The position of the `place`-th token (from 1) that is called `word`; None where there are fewer."""
    alike = [position for position, token in enumerate(tokens) if token.word == word]
    return alike[place - 1] if place <= len(alike) else None
