"""Conversations and pairs of texts, as plain values. No torch.

A model that was trained to converse comes with a template, which makes one text of the turns
(`attention_models.text.templates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from attention_models.protocol.errors import InputError

Role = Literal["system", "user", "assistant"]
ROLES: tuple[Role, ...] = get_args(Role)

MOST_TURNS = 100


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation. The model's next words are the assistant's: its last turn goes on, or a new one begins."""

    turns: tuple[Turn, ...] = ()

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, object]]) -> Chat:
        """From messages as transformers has them, `[{"role": "user", "content": "Good morning."}]`.

        Raises:
            InputError: a message without role or content, a role that there is not, or too many turns.
        """
        if len(messages) > MOST_TURNS:
            raise InputError(f"This conversation has {len(messages):,} turns; {MOST_TURNS} are taken at most.")
        return cls(tuple(_turn(place, message) for place, message in enumerate(messages, start=1)))

    def said(self, more: str) -> Chat:
        """The conversation after the assistant has said `more`."""
        if not more:
            return self
        if self.turns and self.turns[-1].role == "assistant":
            return Chat((*self.turns[:-1], Turn("assistant", self.turns[-1].text + more)))
        return Chat((*self.turns, Turn("assistant", more)))

    @property
    def plain(self) -> str:
        """What was said, without who said it: the turns' texts, an empty line between two."""
        return "\n\n".join(turn.text for turn in self.turns)

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts that are read together: a sentence and the one after it, a question and a passage."""

    first: str
    second: str

    @classmethod
    def of(cls, texts: Sequence[object]) -> Pair:
        """From ("first", "second").

        Raises:
            InputError: other than two texts.
        """
        if len(texts) == 2 and isinstance(texts[0], str) and isinstance(texts[1], str):
            return cls(texts[0], texts[1])
        raise InputError(f"A pair is two texts, not {len(texts)}; token ids are given as a list.")

    @property
    def plain(self) -> str:
        """Both, one a line."""
        return f"{self.first}\n{self.second}"

    def text(self, segment: int) -> str:
        """The text that a token of this segment is of, as `Token.segment`."""
        return self.second if segment == 1 else self.first

    def with_text(self, segment: int, text: str) -> Pair:
        """The pair with another text in the place of that of `segment`."""
        return Pair(self.first, text) if segment == 1 else Pair(text, self.second)


def _turn(place: int, message: Mapping[str, object]) -> Turn:
    if not isinstance(message, Mapping):
        raise InputError(f"Turn {place} is no table with “role” and “content”.")
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise InputError(f"Turn {place} is by {role!r}; a turn is by one of {', '.join(ROLES)}.")
    if not isinstance(content, str):
        raise InputError(f"Turn {place} has no text: give it as “content”.")
    return Turn(role, content)
