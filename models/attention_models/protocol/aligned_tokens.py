"""Which tokens of one run stand for which of another: what two runs are compared along."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

AlignedBy = Literal["place", "patches", "characters", "words"]
"""What tokens were aligned by: their place, that of patches in a picture, the characters of one text that they cover,
or the words of two texts."""

HOW = {
    "place": "token by token: both runs have the same tokens",
    "patches": "patch by patch, by their place in the picture",
    "characters": "by the characters they cover: one text, cut into other tokens",
    "words": "by words: as few as can be are added, left out or replaced between the two texts",
}
"""As it stands after "aligned"."""


@dataclass(frozen=True, slots=True)
class AlignedPlace:
    """Tokens of A and of B that stand for each other: a range each, (first, behind the last). Alone, one is empty.

    Mostly one token each. Where tokenizers cut a text otherwise, the fewest whole tokens that cover the same
    characters; where a word stands in the place of another, all tokens of both.
    """

    a: tuple[int, int]
    b: tuple[int, int]
    same: bool = (
        True  # both cover the same characters, but for case and white space; False of a word in another's place
    )

    @property
    def is_shared(self) -> bool:
        """Whether both runs have tokens here."""
        return self.a[0] < self.a[1] and self.b[0] < self.b[1]

    @property
    def is_single(self) -> bool:
        """Whether it is one token of each."""
        return self.a[1] - self.a[0] == 1 == self.b[1] - self.b[0]


@dataclass(frozen=True, slots=True)
class AlignedAxis:
    """The queries, or the keys, of two runs in one order: every token of either is in exactly one place."""

    places: tuple[AlignedPlace, ...]
    by: AlignedBy
    _of_a: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _of_b: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            found: list[int] = []
            for i, place in enumerate(self.places):
                first, end = getattr(place, name)
                found += [i] * (end - first)
            object.__setattr__(self, f"_of_{name}", tuple(found))

    def __len__(self) -> int:
        return len(self.places)

    @property
    def how(self) -> str:
        """After "aligned": "by words: …"."""
        return HOW[self.by]

    @property
    def is_single(self) -> bool:
        """Whether every shared place is one token of each: no weight is merged with another."""
        return all(place.is_single for place in self.places if place.is_shared)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(place of A's token, place of B's token) of every two that are in one place, in the order of A."""
        return tuple(
            (i, j) for place in self.places if place.is_shared for i in range(*place.a) for j in range(*place.b)
        )

    @property
    def alone_a(self) -> tuple[int, ...]:
        """A's tokens for which B has none."""
        return tuple(i for place in self.places if not place.is_shared for i in range(*place.a))

    @property
    def alone_b(self) -> tuple[int, ...]:
        """B's tokens for which A has none."""
        return tuple(j for place in self.places if not place.is_shared for j in range(*place.b))

    def place_of_a(self, token: int) -> int | None:
        """The place that A's token is in; None for no token of A."""
        return self._of_a[token] if 0 <= token < len(self._of_a) else None

    def place_of_b(self, token: int) -> int | None:
        """The place that B's token is in; None for no token of B."""
        return self._of_b[token] if 0 <= token < len(self._of_b) else None

    def b_of(self, token: int) -> range:
        """B's tokens that stand for A's token; empty where none does."""
        place = self.place_of_a(token)
        return range(0) if place is None else range(*self.places[place].b)

    def a_of(self, token: int) -> range:
        """A's tokens that stand for B's token; empty where none does."""
        place = self.place_of_b(token)
        return range(0) if place is None else range(*self.places[place].a)
