"""Which tokens of two runs stand for each other.

Both are taken apart into characters (a special token, or one of white space alone, counts as one), and these into
words. Words are aligned with the fewest of them added, left out or replaced (Levenshtein 1966). Where two words are the
same, so are their characters, one by one; a replaced word stands as a whole for the other. A place then is the fewest
whole tokens of both that begin and end together, so that tokenizers need have nothing in common.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Cancelled, ShouldStop, never
from attention_models.protocol.two_runs import AlignedAxis, AlignedBy, AlignedPlace
from attention_models.protocol.values import Token
from attention_models.text.common_start import common_start

MOST_CELLS = 1 << 24
"""Of the table of two texts' differing words: 4,096 of each (64 MB)."""

# scripts that put no space between words: each character is one
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+|\S")

_WRITTEN = -1
"""In the place of a segment: of tokens that stand in no text that was given."""

Kind = Literal["text", "special", "space"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Word:
    kind: Kind
    key: str  # two words of one key are the same
    span: Span  # of its characters


@dataclass(frozen=True, slots=True)
class _Taken:
    """Tokens taken apart."""

    words: tuple[_Word, ...]
    spans: tuple[Span, ...]  # of each token, in characters
    count: int  # of characters


@dataclass(frozen=True, slots=True)
class _Step:
    """From one place where both may be cut to the next: (characters of A, of B) up to there."""

    a: int
    b: int
    same: bool  # what lies before it is the same in both


def align(a: Sequence[Token], b: Sequence[Token], should_stop: ShouldStop = never) -> AlignedAxis:
    """Which of the tokens `a` and `b` stand for each other; every token of both is in one place.

    Raises:
        InputError: the two differ in too many words.
        Cancelled: `should_stop()` was true.
    """
    if [_without_id(token) for token in a] == [_without_id(token) for token in b]:
        return align_places(len(a), "place")
    left, right = _taken(a), _taken(b)
    steps = list(_steps(left, right, should_stop))
    is_one_text = all(step.same for step in steps)
    return AlignedAxis(tuple(_places(left, right, steps)), "characters" if is_one_text else "words")


def align_places(count: int, by: AlignedBy = "patches") -> AlignedAxis:
    """Each of one run with the same of the other: patches of pictures that lie in the same rows and columns, say."""
    return AlignedAxis(tuple(AlignedPlace((i, i + 1), (i, i + 1)) for i in range(count)), by)


def _without_id(token: Token) -> tuple[object, ...]:
    return token.piece, token.text, token.start, token.end, token.special, token.segment, token.padding


def _spelled(tokens: Sequence[Token]) -> list[Token]:
    """Tokens that a model wrote by their ids cover no text: they are taken to cover what is drawn of them."""
    spelled: list[Token] = []
    end = 0
    for token in tokens:
        if not token.special and token.start == token.end and not token.text:
            text = token.label.lstrip("␣‿")
            start = end if token.continues else end + 1
            end = start + len(text)
            token = replace(token, text=text or " ", start=start, end=end if text else start + 1, segment=_WRITTEN)
        spelled.append(token)
    return spelled


def _taken(tokens: Sequence[Token]) -> _Taken:
    """The characters and words of some tokens. A character of several tokens (the bytes of an emoji) is one."""
    tokens = _spelled(tokens)
    written: list[str] = []  # text to find words in; a blank where neighbours are none
    place: list[int] = []  # of each character of it, which character it is; -1 of a blank
    alone: dict[int, _Word] = {}  # special tokens and white space, by their character
    seen: dict[tuple[int, int], int] = {}
    spans: list[Span] = []
    texts = [i for i, token in enumerate(tokens) if not token.special]
    count = 0
    for i, token in enumerate(tokens):
        if token.special or not token.text.strip():
            side = "start" if not texts or i < texts[0] else "end" if i > texts[-1] else "between"
            key = "padding" if token.padding else side if token.special else token.text
            alone[count] = _Word("special" if token.special else "space", key, (count, count + 1))
            spans.append((count, count + 1))
            written.append(" ")
            place.append(-1)
            count += 1
            continue
        covered = []
        for offset, character in enumerate(token.text, start=token.start):
            if character.isspace():
                continue
            where = seen.get((token.segment, offset))
            if where is None:
                where = seen[token.segment, offset] = count
                if (token.segment, offset - 1) not in seen:
                    written.append(" ")
                    place.append(-1)
                written.append(_plain(character))
                place.append(where)
                count += 1
            covered.append(where)
        spans.append((min(covered), max(covered) + 1))
    found = [
        _Word("text", match[0], (place[match.start()], place[match.end() - 1] + 1))
        for match in _WORD.finditer("".join(written))
    ]
    words = sorted([*found, *alone.values()], key=lambda word: word.span)
    return _Taken(tuple(words), tuple(spans), count)


def _plain(character: str) -> str:
    """A character without case and accent: some tokenizers take them away, and a word stays the same word."""
    return (unicodedata.normalize("NFKD", character)[:1] or character).lower()[:1] or character


def _steps(a: _Taken, b: _Taken, should_stop: ShouldStop) -> Iterator[_Step]:
    """Every place where both may be cut, in order, the end last."""
    i = j = 0
    for left, right in _edits(a.words, b.words, should_stop):
        if left is not None and right is not None and left.key == right.key and left.kind == right.kind:
            for _ in range(left.span[1] - left.span[0]):
                i, j = i + 1, j + 1
                yield _Step(i, j, True)
            continue
        i = i if left is None else left.span[1]
        j = j if right is None else right.span[1]
        kinds = {word.kind for word in (left, right) if word is not None}
        yield _Step(i, j, kinds != {"text"})  # a special token more makes no other text


def _places(a: _Taken, b: _Taken, steps: Sequence[_Step]) -> Iterator[AlignedPlace]:
    whole = [_uncut(a), _uncut(b)]
    at, same = [0, 0], True
    for n, step in enumerate(steps):
        same = same and step.same
        if n < len(steps) - 1 and (whole[0][step.a] or whole[1][step.b]):
            continue
        ends = [_tokens_until(a.spans, at[0], step.a), _tokens_until(b.spans, at[1], step.b)]
        if ends != at:
            is_shared = at[0] < ends[0] and at[1] < ends[1]
            yield AlignedPlace((at[0], ends[0]), (at[1], ends[1]), same and is_shared)
        at, same = ends, True


def _uncut(side: _Taken) -> list[bool]:
    """Of each place between characters, whether it is within a token."""
    inside = [False] * (side.count + 1)
    for first, end in side.spans:
        for k in range(first + 1, end):
            inside[k] = True
    return inside


def _tokens_until(spans: Sequence[Span], first: int, end: int) -> int:
    """Behind the last of the tokens from `first` that end by the character `end`."""
    while first < len(spans) and spans[first][1] <= end:
        first += 1
    return first


Edit = tuple[_Word | None, _Word | None]


def _edits(a: Sequence[_Word], b: Sequence[_Word], should_stop: ShouldStop) -> Iterator[Edit]:
    """Words of both in order: equal or replaced together, added or left out beside None."""
    names: dict[tuple[Kind, str], int] = {}
    left, right = ([names.setdefault((word.kind, word.key), len(names)) for word in side] for side in (a, b))
    start = common_start(left, right)
    end = common_start(left[start:][::-1], right[start:][::-1])
    yield from zip(a[:start], b[:start], strict=True)
    yield from _shortest(a[start : len(a) - end], b[start : len(b) - end], should_stop)
    yield from zip(a[len(a) - end :], b[len(b) - end :], strict=True)


def _shortest(a: Sequence[_Word], b: Sequence[_Word], should_stop: ShouldStop) -> list[Edit]:
    if len(a) * len(b) > MOST_CELLS:
        raise InputError(
            f"The two texts differ in {len(a):,} and {len(b):,} words, too many to say which stands for which. "
            "Compare shorter texts, or texts that are more alike."
        )
    # edits from the words after the first i to those after the first j: of several ways the one that replaces first
    table = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    table[:, -1], left = np.arange(len(a), -1, -1), np.arange(len(b), -1, -1, dtype=np.int32)
    table[-1] = left
    keys = np.array([f"{word.kind} {word.key}" for word in b], dtype=object)
    kinds = np.array([word.kind for word in b], dtype=object)
    costs = []
    for word in a:
        # a word does not stand for a special token: that would cost as much as one less and one more
        cost = np.where(keys == f"{word.kind} {word.key}", 0, np.where(kinds == word.kind, 1, 2)).astype(np.int8)
        costs.append(cost)
    for i in range(len(a) - 1, -1, -1):
        if should_stop():
            raise Cancelled
        best = np.minimum(table[i + 1, :-1] + 1, table[i + 1, 1:] + costs[i])
        row = np.concatenate([best, [len(a) - i]])
        table[i] = np.minimum.accumulate((row - left)[::-1])[::-1] + left  # and words added, any number
    found: list[Edit] = []
    i = j = 0
    while i < len(a) or j < len(b):
        both = i < len(a) and j < len(b)
        if both and costs[i][j] < 2 and table[i, j] == table[i + 1, j + 1] + costs[i][j]:
            found.append((a[i], b[j]))
            i, j = i + 1, j + 1
        elif i < len(a) and table[i, j] == table[i + 1, j] + 1:
            found.append((a[i], None))
            i += 1
        else:
            found.append((None, b[j]))
            j += 1
    return found
