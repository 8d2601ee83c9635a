"""How a token is written in a sentence or a tooltip."""

from __future__ import annotations

import re

_LONGEST = 40  # characters of one token in a sentence
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
