"""Where the tokens of a tokenizer that tells no offsets stand in a text, found from what it decodes to.

What a token decodes to may depend on its neighbours (a space before a word, the bytes of one character), so each token
is what the text decoded so far grows by. Where tokens decode to more than the text (a start token's name) or to other
characters (lower case, no accents), the two are aligned, and what has no counterpart stands for no text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from attention_models.text.common_start import common_start

Span = tuple[int, int]
Decode = Callable[[Sequence[int]], str]

_WINDOW, _KEPT = 64, 16  # tokens decoded at once, and how many of them before those that are new
_APART = 48  # characters that may be skipped on either side before the two agree again
_AGREE = 3  # characters that make an agreement
_MOST_GAPS = 100  # beyond, what is decoded is another text


@dataclass(frozen=True, slots=True)
class Placed:
    """`spans` are (start, end) of each token; of one that stands for no text both are the place where it stands."""

    spans: tuple[Span, ...]
    no_text: tuple[bool, ...]
    whole: bool  # every character that is no white space is covered by some token


def place(ids: Sequence[int], decode: Decode, text: str, special: Container[int] = ()) -> Placed:
    """Which characters of `text` each token covers; a character of several tokens is covered by each.

    `special` are ids that are known to stand for no text, unless their name stands in it.
    """
    ranges, decoded = _growth(ids, decode)
    where = _aligned(decoded, text)
    found: list[Span | None] = []
    for start, end in ranges:
        written = [i for i in range(start, end) if not decoded[i].isspace()]
        places = [where[i] for i in range(start, end) if where[i] >= 0]
        # the space before an unknown word is not the word
        seen = any(where[i] >= 0 for i in written) or not written
        found.append((places[0], places[-1] + 1) if places and seen else None)
    return _with_gaps(found, [id_ in special for id_ in ids], text)


def place_bytes(pieces: Sequence[bytes], text: str) -> Placed | None:
    """As `place`, of tokens that are known to the byte; None where together they are not the text."""
    if b"".join(pieces) != text.encode():
        return None
    character = [i for i, c in enumerate(text) for _ in c.encode()]  # of each byte
    spans, at = list[Span](), 0
    for piece in pieces:
        covered = character[at : at + len(piece)]
        here = covered[0] if covered else (character[at] if at < len(character) else len(text))
        spans.append((here, covered[-1] + 1 if covered else here))
        at += len(piece)
    return Placed(tuple(spans), tuple(not piece for piece in pieces), True)


def _growth(ids: Sequence[int], decode: Decode) -> tuple[list[Span], str]:
    """The range of the decoded text that each token makes, and that text."""
    ranges, decoded = list[Span](), ""
    first, offset, before = 0, 0, ""  # the window's first token, where its text begins, and that text so far
    for n in range(len(ids)):
        if n - first >= _WINDOW:
            first = n - _KEPT
            before = _decoded(ids[first:n], decode, "")
            offset = len(decoded) - len(before)
        now = _decoded(ids[first : n + 1], decode, before)
        same = len(before) if now.startswith(before) else common_start(before, now)
        if same < len(before):  # a character whose last byte came, or a space that is taken back
            begun = offset + same
            end = offset + max(len(now), same)
            ranges = [(min(a, begun), min(max(b, begun + 1), end)) if b > begun else (a, b) for a, b in ranges]
        decoded = decoded[: offset + same] + now[same:]
        ranges.append((offset + same, offset + len(now)))
        before = now
    return ranges, decoded


def _decoded(ids: Sequence[int], decode: Decode, before: str) -> str:
    try:
        return decode(ids)
    except Exception:  # half of a character, for a strict one; the whole was decoded by the caller
        return before + "\ufffd"


def _aligned(decoded: str, text: str) -> list[int]:
    """Where each character of `decoded` stands in `text`, -1 for one that does not."""
    if decoded == text:
        return list(range(len(text)))
    where = [-1] * len(decoded)
    left, right = [_plain(c) for c in decoded], [_plain(c) for c in text]
    i = j = gaps = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            where[i] = j
            i, j = i + 1, j + 1
            continue
        gaps += 1
        skipped = _skip(left, right, i, j) if gaps <= _MOST_GAPS else None
        if skipped is None:
            break
        i, j = i + skipped[0], j + skipped[1]
    return where


def _skip(left: list[str], right: list[str], i: int, j: int) -> tuple[int, int] | None:
    """How much to leave out on both sides, as little as may be, until they agree; None where they do not."""
    for both in range(1, 2 * _APART):
        for of_left in range(max(0, both - _APART), min(both, _APART) + 1):
            a, b = i + of_left, j + both - of_left
            count = min(_AGREE, len(left) - a)
            if count > 0 and left[a : a + count] == right[b : b + count]:
                return of_left, both - of_left
    return None


def _plain(char: str) -> str:
    """A character without case and accent, which some tokenizers take away."""
    return (unicodedata.normalize("NFKD", char)[:1] or char).lower()[:1] or char


def _with_gaps(found: list[Span | None], special: list[bool], text: str) -> Placed:
    """A lone token between two that are placed stands for the word between them, as an unknown one does."""
    spans, no_text = list[Span](), list[bool]()
    end = 0
    for n, span in enumerate(found):
        if span is None:
            following = next((later[0] for later in found[n + 1 :] if later is not None), len(text))
            alone = (n == 0 or found[n - 1] is not None) and (n + 1 == len(found) or found[n + 1] is not None)
            gap = text[end:following] if following > end else ""
            if gap.strip() and alone and not special[n]:
                start = end + len(gap) - len(gap.lstrip())
                span = start, start + len(gap.strip())
        no_text.append(span is None)
        spans.append((end, end) if span is None else span)
        end = max(end, spans[-1][1])
    covered = {i for a, b in spans for i in range(a, b)}
    whole = all(i in covered or c.isspace() or unicodedata.combining(c) for i, c in enumerate(text))
    return Placed(tuple(spans), tuple(no_text), whole)
