"""A word in two texts: how alike a model's vectors of it are, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.values import Token

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class InContextRequest(Request):
    """Run two texts, and compare the vectors of a word in each. Answered by `InContextView`.

    Attributes:
        texts: what is run, each by itself.
        words: the word in each, as it stands there.
        starts: at which character each begins; None for its last place.
        stack: whose stream; "" for the encoder's where there is one, else the decoder's.
        interventions: that both are run under.
    """

    lane: ClassVar[Lane] = Lane("view:in-context")
    activity: ClassVar[str] = "comparing a word in two texts"
    answered_by: ClassVar[str] = "attention_models.effects.in_context:answer"
    texts: tuple[str, str]
    words: tuple[str, str]
    starts: tuple[int | None, int | None] = (None, None)
    stack: str = ""
    interventions: tuple[Intervention, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InContextAtRequest(InContextRequest):
    """The same, of which one layer is meant, 0 the embedding: its figures are written as PyTorch."""

    activity: ClassVar[str] = "comparing a word in two texts after one layer"
    printed_by: ClassVar[str] = "attention_models.scripts.word_in_context:write"
    layer: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InContextView(Result):
    """Layer 0 is the embedding, layer l + 1 the stream after block l. All float64.

    Attributes:
        stack: whose stream it is.
        tokens: of each text.
        positions: of each text the tokens of the word; several are averaged.
        cosine: (layers + 1,) of the word's vectors in both texts: of the means over its tokens.
        anisotropy: (layers + 1,) the mean cosine of two different tokens of both texts: what any two words have there.
        plane: (layers + 1, tokens of both, 2) the first two principal components of all tokens.
        explained: (layers + 1, 2) the share of the variance along each.
        similarity: (layers + 1, tokens of both, tokens of both) cosines.
        sentences: (layers + 1, 2) cosines of the texts' vectors: of their first tokens, of their means.
    """

    request: InContextRequest
    stack: str
    tokens: tuple[tuple[Token, ...], tuple[Token, ...]]
    positions: tuple[tuple[int, ...], tuple[int, ...]]
    cosine: np.ndarray
    anisotropy: np.ndarray
    plane: np.ndarray
    explained: np.ndarray
    similarity: np.ndarray
    sentences: np.ndarray

    @property
    def layers(self) -> int:
        """With the embedding."""
        return len(self.cosine)


def place_of_word(text: str, word: str, start: int | None = None) -> tuple[int, int] | None:
    """From which character to which `word` stands in `text`; None where it does not.

    At `start` if it does; else its last place as a word of its own, else its last place within another.
    """
    if not word.strip():
        return None
    if start is not None and text.startswith(word, start):
        return start, start + len(word)
    place = found = text.rfind(word)
    while place >= 0:
        around = text[max(0, place - 1) : place], text[place + len(word) : place + len(word) + 1]
        if not any(character.isalnum() for character in around):
            return place, place + len(word)
        place = text.rfind(word, 0, place + len(word) - 1)
    return None if found < 0 else (found, found + len(word))
