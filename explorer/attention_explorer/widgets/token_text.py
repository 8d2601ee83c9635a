"""How a token is written in a sentence or a tooltip."""

from __future__ import annotations

import re
import textwrap

_LONGEST = 40  # characters of one token in a sentence
_TOOLTIP_LINE = 80
ARROW = " → "
"""Between a token that went in and the word that came out."""
_LEFTWARD = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001eeff]")
_QUOTED = re.compile("“([^”]*)”")
_RIGHTWARD = re.compile("[A-Za-z\u00c0-\u024f\u0370-\u052f]")
_BARE = re.compile(rf"{_LEFTWARD.pattern}(?:[\s'’-]*{_LEFTWARD.pattern})*")
_APART, _AGAIN = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
_ISOLATE = re.compile(f"({_APART}[^{_AGAIN}]*{_AGAIN})")
_MARKS = (  # in the vocabulary, as its token is drawn, what it is
    ("Ġ", "␣", "a space"),
    ("▁", "␣", "a space"),
    ("Ċ", "⏎", "a line break"),
    ("ĉ", "⇥", "a tab"),
    ("##", "‿", "goes on with the word before it"),
)
_BYTES = re.compile("‹([0-9A-F]{2}(?:·[0-9A-F]{2})*)›")


def byte_note(label: str) -> str:
    """A line for a tooltip on what the marks in a token's label mean, with its line break; "" where there are none."""
    found = _BYTES.search(label)
    if found is None:
        return ""
    which = f"byte{'s' if '·' in found[1] else ''} {found[1].replace('·', ' ')}"
    return f"\n{found[0]}: {which} of a character that several tokens share"


def shortened(text: str) -> str:
    """`text` with its end left out where it is long: a token may be a word of thousands of letters."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def in_and_out(read: str, wrote: str) -> str:
    """ "El → gato": a token that a decoder was given, and the word it wrote then. Each in its own direction."""
    return ARROW.join(map(apart, (read, wrote)))


def apart(name: str) -> str:
    """A name that stands in a sentence without quotation marks, in its own direction: a file, a state, a checkpoint."""
    return f"{_APART}{name}{_AGAIN}" if _LEFTWARD.search(name) and not name.startswith(_APART) else name


def in_lines(sentence: str) -> str:
    """`sentence` broken into lines for a tooltip, which else is as wide as it is long."""
    return textwrap.fill(sentence, _TOOLTIP_LINE, break_long_words=False, break_on_hyphens=False)


def isolated(sentence: str) -> str:
    """`sentence` with every quoted token and every bare name in it kept apart where it is written from right to left.

    Else the numbers and quotation marks about an Arabic or Hebrew word would change places with it (Unicode UAX 9).
    """
    if not _LEFTWARD.search(sentence):
        return sentence
    kept = _QUOTED.sub(lambda quoted: f"“{apart(quoted[1])}”", sentence)
    parts = _ISOLATE.split(kept)  # what stands apart is every second one
    if not any(map(_RIGHTWARD.search, parts[::2])):
        return kept  # a word alone
    parts[::2] = [_BARE.sub(lambda bare: apart(bare[0]), part) for part in parts[::2]]
    return "".join(parts)


def piece_note(piece: str, label: str) -> str:
    """What the marks in a vocabulary's spelling mean, in brackets: " (Ġ: a space)"; "" where it has none."""
    meant = [f"{mark}: {meaning}" for mark, shown, meaning in _MARKS if mark in piece and shown in label]
    return f" ({', '.join(meant)})" if meant else ""
