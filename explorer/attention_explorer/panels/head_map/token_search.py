"""Where something is said in a text of tokens: within one, or from one to the next. No widget."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate


class TokenSearch:
    """`words` are what tokens are called, `texts` what they add to the text, with the white space before them.

    Upper and lower case are alike, and every white space is a space.
    """

    def __init__(self, words: Sequence[str] = (), texts: Sequence[str] = ()) -> None:
        self.words, self.texts = tuple(words), tuple(texts)

    def __len__(self) -> int:
        return len(self.words)

    def places(self, wanted: str) -> list[int]:
        """The tokens that have `wanted` in them, and those where it begins when it takes several; rising."""
        wanted = " ".join(wanted.lower().split())
        if not wanted:
            return []
        found = {place for place, word in enumerate(self._words) if wanted in word}
        whole, ends = self._whole
        at = whole.find(wanted)
        while at >= 0:
            found.add(bisect_right(ends, at))
            at = whole.find(wanted, at + 1)
        return sorted(found)

    @cached_property
    def _words(self) -> tuple[str, ...]:
        return tuple(word.lower() for word in self.words)

    @cached_property
    def _whole(self) -> tuple[str, list[int]]:
        """All of the text, and where in it each token ends."""
        parts = ["".join(" " if c.isspace() else c for c in text.lower()) for text in self.texts]
        return "".join(parts), list(accumulate(map(len, parts)))
