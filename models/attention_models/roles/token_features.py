"""What is known of the tokens that attend and of those that are attended to, of several texts at once."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from attention_models.forward.model import Model
from attention_models.protocol.values import HasTokens, Site, Token, site_tokens

UNORDERED = "Which words are rare is told by the order of the vocabulary, and this tokenizer's says nothing of it."

_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class TokenFeatures:
    """The tokens of some texts, each tensor (texts, tokens)."""

    ids: Tensor  # long; -1 of padding
    words: Tensor  # long: equal where what is drawn of two tokens is equal; -1 of padding and marks
    real: Tensor  # bool: no padding
    marks: Tensor  # bool: punctuation and special tokens
    rare: Tensor  # bool: see `rare_ids`
    first: Tensor  # (texts,) long: the place of the first token that is no padding

    @classmethod
    def of(
        cls, texts: Sequence[Sequence[Token]], known: dict[str, int], ordered: bool, device: torch.device
    ) -> TokenFeatures:
        """`known` numbers words, the same for both sides of an attention; `ordered` as in `is_ordered`."""
        rows: list[list[tuple[int, int, bool, bool, bool]]] = []
        for tokens in texts:
            rare = rare_ids(tokens) if ordered else frozenset[int]()
            rows.append([_facts(token, known, rare) for token in tokens])
        ids, words, real, marks, rares = (
            torch.tensor([[facts[i] for facts in row] for row in rows], device=device) for i in range(5)
        )
        return cls(ids, words, real, marks, rares, real.int().argmax(dim=1))

    @property
    def count(self) -> int:
        return self.ids.shape[1]

    @property
    def next_words(self) -> Tensor:
        """The word of the token after each, -1 where there is none: (texts, tokens)."""
        return torch.cat([self.words[:, 1:], torch.full_like(self.words[:, :1], _NONE)], dim=1)

    @property
    def ids_before(self) -> Tensor:
        """The id of the token before each, -2 where there is none, which no token has: (texts, tokens)."""
        before = torch.cat([torch.full_like(self.ids[:, :1], _NONE), self.ids[:, :-1]], dim=1)
        return torch.where(before < 0, -2, before)


class SiteTokenFeatures:
    """Both sides of the attention of some texts: of their queries and of their keys, worked out once a stack."""

    def __init__(self, model: Model) -> None:
        self.ordered = is_ordered(model)
        self._of: dict[str, tuple[TokenFeatures, TokenFeatures]] = {}

    def of(self, texts: Sequence[HasTokens], site: Site, device: torch.device) -> tuple[TokenFeatures, TokenFeatures]:
        """Of the same texts each time, until `clear`."""
        if site.stack not in self._of:
            known: dict[str, int] = {}  # the same for both
            both = [site_tokens(one, site) for one in texts]
            queries, keys = (
                TokenFeatures.of([tokens[i] for tokens in both], known, self.ordered, device) for i in range(2)
            )
            self._of[site.stack] = queries, keys
        return self._of[site.stack]

    def clear(self) -> None:
        """Other texts are run."""
        self._of.clear()


def _facts(token: Token, known: dict[str, int], rare: frozenset[int]) -> tuple[int, int, bool, bool, bool]:
    if token.padding:
        return _NONE, _NONE, False, False, False
    is_mark = token.special or is_punctuation(token.word)
    word = _NONE if is_mark else known.setdefault(token.word, len(known))
    return token.id, word, True, is_mark, token.id in rare and not is_mark


@lru_cache(maxsize=1 << 14)
def is_punctuation(word: str) -> bool:
    """Whether it is nothing but punctuation and symbols."""
    return bool(word) and all(unicodedata.category(char)[0] in "PS" for char in word)


def rare_ids(tokens: Sequence[Token]) -> frozenset[int]:
    """Of a text's different words the quarter that comes last in the vocabulary, one at least."""
    words = {token.id for token in tokens if not (token.padding or token.special or is_punctuation(token.word))}
    return frozenset(sorted(words)[len(words) - max(1, len(words) // 4) :])


def is_ordered(model: Model) -> bool:
    """Whether the vocabulary comes roughly in the order of frequency: that of a trained subword tokenizer does.

    Byte-pair merges are numbered in the order in which they were found, the most frequent pair first (Sennrich et al.
    2016); WordPiece and Unigram vocabularies are written likewise.
    """
    backend: Any = getattr(model.tokenizer, "backend_tokenizer", None)
    return type(getattr(backend, "model", None)).__name__ in ("BPE", "WordPiece", "Unigram")
