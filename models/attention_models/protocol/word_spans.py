"""Which runs of a text's tokens are words, and what those are called. Plain values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from attention_models.protocol.values import HasTokens, Site, Token, site_tokens

MERGED = "words: from averaged, to summed"
"""How weights between words are made of weights between pieces."""

_CONTINUES = "‿"


@dataclass(frozen=True, slots=True)
class Words:
    """A partition of `count` tokens into words, each a run of neighbours."""

    starts: tuple[int, ...]  # the first token of each word, rising from 0
    count: int

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Words:
        """The words of a text."""
        return cls(tuple(i for i, token in enumerate(tokens) if i == 0 or not token.continues), len(tokens))

    @classmethod
    def alone(cls, count: int) -> Words:
        """Each token as a word of its own."""
        return cls(tuple(range(count)), count)

    @classmethod
    def written(cls, tokens: Sequence[Token]) -> Words:
        """The words that the positions of `tokens` write: each writes the token after it, the last one what follows."""
        goes_on = [False, *(token.continues for token in tokens[2:]), False][: len(tokens)]
        return cls(tuple(i for i, on in enumerate(goes_on) if not on), len(tokens))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def are_tokens(self) -> bool:
        """Whether every word is one token."""
        return len(self.starts) == self.count

    def word(self, token: int) -> int:
        """The word that a token is part of; -1 for no token."""
        return bisect_right(self.starts, token) - 1 if 0 <= token < self.count else -1

    def tokens(self, word: int) -> range:
        """The tokens of a word."""
        return range(self.starts[word], self.starts[word + 1] if word + 1 < len(self.starts) else self.count)

    def part(self, first: int, last: int) -> Words:
        """The words from `first` to before `last`, their tokens counted from 0."""
        begin, end = self.tokens(first).start, self.tokens(last - 1).stop
        return Words(tuple(start - begin for start in self.starts[first:last]), end - begin)


def site_words(run: HasTokens, site: Site) -> tuple[Words, Words]:
    """The words that rows and columns of `site` are of; where they are no tokens of a text, each is alone.

    A row of cross-attention is of the word that it wrote (`Words.written`).
    """
    queries, keys = site_tokens(run, site)
    if site.stack == "cross" and len(queries) == site.queries:
        return Words.written(queries), _words(keys, site.keys)
    return _words(queries, site.queries), _words(keys, site.keys)


def word_text(pieces: Sequence[Token]) -> str:
    """The text of the word that some pieces make up; of bytes, and of pieces without a text, what is drawn."""
    if pieces[0].part[1] > 1:  # each covers the whole character
        return word_label(pieces)
    return "".join(piece.text for piece in pieces).strip() or word_label(pieces)


def word_label(pieces: Sequence[Token]) -> str:
    """What to draw for the word that some pieces make up: "␣unbelievable"."""
    return pieces[0].label + "".join(piece.label.removeprefix(_CONTINUES) for piece in pieces[1:])


def _words(tokens: Sequence[Token], count: int) -> Words:
    return Words.of(tokens) if len(tokens) == count else Words.alone(count)
