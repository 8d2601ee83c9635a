"""TOML that is not trusted. tomllib takes time and memory that grow with the square of the parts of a dotted key."""

from __future__ import annotations

import re
import tomllib
from typing import Any

DEEPEST_KEY = 16
"""Parts of a dotted key; of a table's name too."""

# Comments and strings, whose dots are none of a key's; dots; and what no key goes beyond. Nothing is tried twice.
_PARTS = re.compile(
    r"""
      \#[^\n]*
    | \"{3}(?:[^"\\]|\\.|"(?!""))*+(?:\"{3,5}|\Z)
    | '{3}(?:[^']|'(?!''))*+(?:'{3,5}|\Z)
    | "(?:[^"\\\n]|\\[^\n])*+"?
    | '[^'\n]*+'?
    | (?P<dot>\.)
    | (?P<end>[\n,={}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)


def decode_toml(text: str) -> dict[str, Any]:
    """The table that `text` spells. What it takes grows with its length alone: the caller bounds that.

    Raises:
        tomllib.TOMLDecodeError: it spells none, or is nested too deep, "(at line 3, column 1)" at its end where known.
    """
    dots = 0
    for part in _PARTS.finditer(text):
        if part["end"]:
            dots = 0
        elif part["dot"]:
            dots += 1
            if dots == DEEPEST_KEY:
                line = text.count("\n", 0, part.start()) + 1
                column = part.start() - text.rfind("\n", 0, part.start())
                raise tomllib.TOMLDecodeError(
                    f"A key has more than {DEEPEST_KEY} parts with dots between them (at line {line}, column {column})"
                )
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("It is nested too deep") from error
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # of `int`, with advice for programmers
        found = re.search(r"[\d_]{4000,}", text)
        line = text.count("\n", 0, found.start()) + 1 if found else 1
        raise tomllib.TOMLDecodeError(f"A number has thousands of digits (at line {line}, column 1)") from error
