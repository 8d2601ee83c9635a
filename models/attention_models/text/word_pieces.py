"""Which tokens go on with the word of the token before them.

Where a tokenizer divides a text into words before it divides words into pieces, its own words count. Elsewhere a word
is letters and digits that touch; of ids without a text, what the vocabulary's marks of a word's beginning (or of its
continuation) say. Special tokens, and the bytes of one character, stay alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from attention_models.protocol.values import Token

_SPACE = "▁"  # alone it begins the word after it, and may stand for no character of the text

# scripts that are written without spaces: touching says nothing
_UNSPACED = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "BOPOMOFO",
    "IDEOGRAPHIC",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
)


def continues(tokens: Sequence[Token], own_words: Sequence[int | None], byte_level: bool) -> list[bool]:
    """Of each token, whether it goes on with the word of the one before it.

    Args:
        tokens: with piece, text, offsets, `special`, `part` and label.
        own_words: the number of the word that each token is part of for its tokenizer; None where it says none.
        byte_level: whether pieces are spelled in GPT-2's alphabet of bytes.
    """
    marks_words = byte_level or any(token.piece.startswith("▁") for token in tokens)
    found = [False] * len(tokens)
    for i in range(1, len(tokens)):
        before, token = tokens[i - 1], tokens[i]
        if any(t.special or t.part[1] > 1 for t in (before, token)) or token.segment != before.segment:
            continue
        if own_words[i] is not None and own_words[i - 1] is not None:
            found[i] = own_words[i] == own_words[i - 1]
        elif token.start < token.end:
            found[i] = before.end == token.start and _touch("a" if before.piece == _SPACE else before.text, token.text)
        elif not (before.text or token.text):
            found[i] = _goes_on(before, token, marks_words)
    return found


def _goes_on(before: Token, token: Token, marks_words: bool) -> bool:
    """As far as the vocabulary says, of tokens that were given as ids."""
    if token.piece.startswith("##"):
        return True
    return marks_words and not token.label.startswith("␣") and _touch(before.label, token.label)


def _touch(before: str, after: str) -> bool:
    """Whether a word goes on from the last character of one text to the first of another."""
    return _is_of_word(before[-1:]) and _is_of_word(after[:1])


def _is_of_word(char: str) -> bool:
    if not char or unicodedata.category(char)[0] not in "LMN":
        return False
    return not unicodedata.name(char, "").startswith(_UNSPACED)
