"""Tokens as a person should see them: the text they cover, white space and stray bytes made visible."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from attention_models.protocol.values import Token

# Which tokens go on with the word of the token before them.
# Where a tokenizer divides a text into words before it divides words into pieces, its own words count. Elsewhere a word
# is letters and digits that touch; of ids without a text, what the vocabulary's marks of a word's beginning (or of its
# continuation) say. Special tokens, and the bytes of one character, stay alone.


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


_SPACES = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u3000": "␣"}
_CONTINUES = "‿"  # drawn before a piece that goes on with the word before it, where the vocabulary says so (WordPiece)

# characters of other categories that draw nothing: joiners, fillers, variation selectors, the blank Braille pattern
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U000e0100-\U000e01ef]"
)


def visible(text: str) -> str:
    """`text` with every character that draws nothing replaced by a glyph or by its code point in angle brackets."""
    glyphs = []
    for i, char in enumerate(text):
        category = unicodedata.category(char)
        if char in _SPACES:
            glyphs.append(_SPACES[char])
        elif ord(char) < 0x20:
            glyphs.append(chr(0x2400 + ord(char)))  # Unicode's control pictures
        elif char == "\x7f":
            glyphs.append("␡")
        elif category in ("Cc", "Cf", "Zs", "Zl", "Zp", "Cn", "Co", "Cs") or _INVISIBLE.match(char):
            glyphs.append(f"⟨{ord(char):04X}⟩")
        elif category.startswith("M") and i == 0:
            glyphs.append("◌" + char)  # a combining mark needs something to sit on
        else:
            glyphs.append(char)
    return "".join(glyphs)


def without_invented_space(
    text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]], piece: Callable[[int], str]
) -> list[tuple[int, int]]:
    """Spans without the blank that a tokenizer put before the text, or after an added token within it ("<mask>BMS").

    A lone "▁" or "Ġ" claims the first character then, and stands for none. Where blanks are trimmed off the spans of
    byte-level pieces, the first character is cut off in the place of the invented blank: "ĠBMS" covers all of "BMS".
    """
    found, reach = [], 0
    for id_, (start, end), after in zip(ids, spans, [*spans, (0, 0)][1:], strict=True):
        spelled = piece(id_)
        if after[0] == start < min(end, after[1]) and spelled in ("▁", "Ġ"):
            end = start
        elif start > reach and spelled[:1] == "Ġ" != spelled[1:2] and spells_alike(spelled[1:], text[start - 1 :]):
            start -= 1
        reach = max(reach, end)
        found.append((start, end))
    return found


def spells_alike(piece: str, text: str) -> bool:
    """Whether the bytes of a byte-level piece and those of `text` begin alike, as far as both go."""
    spelled, given = piece_bytes(piece) or b"", text[: len(piece)].encode()
    return bool(spelled) and spelled[: len(given)] == given[: len(spelled)]


def whole_characters(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans with the marks that a tokenizer composed with the character before them (NFC), or dropped after it."""
    covered = set[int]()
    for start, end in spans:
        covered.update(range(start, end))
    whole = []
    for start, end in spans:
        if start < end:
            while end < len(text) and end not in covered and joins_before(text[end]):
                end += 1
        whole.append((start, end))
    return whole


def joins_before(char: str) -> bool:
    """Whether it is drawn on the character before it."""
    return unicodedata.category(char).startswith("M") or "\u1160" <= char <= "\u11ff"  # vowels and finals of Hangul


def special_label(piece: str, first: bool, start: str | None, end: str | None) -> str:
    """What to draw for a token that stands for no text: "⟨start⟩", "⟨end⟩", "[CLS]", "⟨pad⟩"."""
    if piece == start and (first or piece != end):
        return "⟨start⟩"
    if piece == end:
        return "⟨end⟩"
    return f"⟨{piece.strip('<|>')}⟩" if piece.startswith("<") else piece


def piece_bytes(piece: str) -> bytes | None:
    """The bytes that a byte-level vocabulary piece stands for ("ðŁ" is F0 9F); None where it is no such piece."""
    table = byte_alphabet()
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes.fromhex(piece[3:5])
    if all(char in table for char in piece):
        return bytes(table[char] for char in piece)
    return None


def bytes_label(data: bytes) -> str:
    """Whole characters as they are, the bytes of broken ones in hexadecimal within marks: "‹F0·9F›"."""
    label, broken, i = "", list[str](), 0
    while i < len(data):
        whole = next((w for w in (1, 2, 3, 4) if _decodes(data[i : i + w])), 0)
        if whole:
            label, broken = label + _marked(broken) + visible(data[i : i + whole].decode()), []
        else:
            broken.append(f"{data[i]:02X}")
        i += max(1, whole)
    return label + _marked(broken)


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _marked(broken: Sequence[str]) -> str:
    """Bytes within marks, so that they are not mistaken for words or numbers of the text."""
    return f"‹{'·'.join(broken)}›" if broken else ""


def piece_label(piece: str, byte_level: bool) -> str:
    """What to draw for a vocabulary entry on its own: "␣cats" for "Ġcats" and "▁cats", "‿ing" for "##ing"."""
    data = piece_bytes(piece) if byte_level or piece.startswith("<0x") else None
    if data is not None:
        return bytes_label(data)
    if piece.startswith("##") and len(piece) > 2:
        return _CONTINUES + visible(piece[2:])
    return visible(piece.replace("▁", " "))


def label_tokens(
    tokens: Sequence[Token],
    *,
    start: str | None,
    end: str | None,
    unknown: str | None,
    byte_level: bool,
    own_words: Sequence[int | None] | None = None,
) -> tuple[Token, ...]:
    """Fill in `part`, `label` and `continues`.

    Args:
        tokens: with id, piece, text, offsets and `special` set.
        start, end, unknown: the tokenizer's own special pieces, where it has them.
        byte_level: whether pieces are spelled in GPT-2's alphabet of bytes.
        own_words: the number of the word that each token is part of, where the tokenizer says so.
    """
    parts = _parts(tokens)
    labelled = []
    for i, (token, part) in enumerate(zip(tokens, parts, strict=True)):
        data = piece_bytes(token.piece) if part[1] > 1 and (byte_level or token.piece.startswith("<0x")) else None
        if token.special:
            label = special_label(token.piece, i == 0, start, end)
        elif unknown is not None and token.piece == unknown and token.text != unknown:
            label = f"⟨unk {visible(token.text)}⟩" if token.text else "⟨unk⟩"
        elif data is not None:
            label = bytes_label(data)
        elif token.piece.startswith("##") and token.text != token.piece and not byte_level:
            label = _CONTINUES + visible(token.text or token.piece[2:])
        else:
            label = visible(token.text) or piece_label(token.piece, byte_level)
        labelled.append(replace(token, part=part, label=label))
    goes_on = continues(labelled, own_words or [None] * len(labelled), byte_level)
    return tuple(
        token if token.continues == on else replace(token, continues=on)
        for token, on in zip(labelled, goes_on, strict=True)
    )


def _parts(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """(number, count) of each token among those that share a character with it (its bytes); (1, 1) for most."""
    parts: list[tuple[int, int]] = []
    i = 0
    while i < len(tokens):
        j, reach = i + 1, tokens[i].end
        while j < len(tokens) and tokens[j].start < reach and tokens[j].start < tokens[j].end:
            reach = max(reach, tokens[j].end)
            j += 1
        parts += [(k + 1, j - i) for k in range(j - i)]
        i = j
    return parts


@cache
def byte_alphabet() -> dict[str, int]:
    """GPT-2's spelling of bytes as printable characters (Radford et al. 2019, section 2.2), character to byte."""
    alphabet, shift = {}, 0
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or 174 <= byte <= 255:
            alphabet[chr(byte)] = byte
        else:
            alphabet[chr(256 + shift)] = byte
            shift += 1
    return alphabet
