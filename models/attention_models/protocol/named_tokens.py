"""Tokens as files of examples, tours and lessons name them: by their words, and which of those alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attention_models.protocol.values import Token


@dataclass(frozen=True, slots=True)
class Named:
    """The `place`-th token (from 1) that is called `word`."""

    word: str
    place: int = 1


def named(position: int, tokens: Sequence[Token]) -> Named:
    """How the token at a position is called. IndexError where there is none."""
    word = tokens[position].word
    return Named(word, sum(token.word == word for token in tokens[: position + 1]))


def position_of(word: str, place: int, tokens: Sequence[Token]) -> int | None:
    """The position of the `place`-th token (from 1) that is called `word`; None where there are fewer."""
    alike = [position for position, token in enumerate(tokens) if token.word == word]
    return alike[place - 1] if place <= len(alike) else None
