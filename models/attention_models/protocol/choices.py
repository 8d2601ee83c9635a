"""Refusing a word that is none of those there are, in requests that a person's own program makes."""

from __future__ import annotations

from typing import Any, get_args


def check_choice(what: str, value: object, literal: Any) -> None:
    """Raises ValueError where `value` is none of the words of a `Literal`."""
    words = get_args(literal)
    if value not in words:
        raise ValueError(f"There is no {what} “{value}”: there are {', '.join(words[:-1])} and {words[-1]}.")
