"""In which line of a JSON text something stands that a path names. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_KEYS = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


def line_in_json(content: bytes, path: str) -> int:
    """The line of `$.step[2].show.layer`, or of what it is in, from 1. `content` is JSON."""
    text = content.decode(errors="replace")
    wanted = tuple(key or int(number) for key, number in _KEYS.findall(path))
    at: list[str | int] = []  # the place that is being read
    deepest, line, name = 0, 1, ""
    for piece in _PIECE.finditer(text):
        mark = piece[0]
        if mark in ("{", "["):
            at.append("" if mark == "{" else 0)
        elif mark in ("}", "]"):
            at.pop()
        elif mark == "," and at and isinstance(at[-1], int):
            at[-1] += 1
        elif mark == ":" and at:
            at[-1] = name
        elif mark[0] == '"':
            name = mark[1:-1]
        depth = _alike(at[:-1] if mark in ("{", "[") else at, wanted)  # what is in it has yet to begin
        if depth > deepest and mark not in (",", "}", "]"):
            deepest, line = depth, text.count("\n", 0, piece.start()) + 1
    return line


def _alike(at: Sequence[str | int], wanted: Sequence[str | int]) -> int:
    """How many steps of the two paths are the same, from the first on."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(at, wanted, strict=False))
    return sum(1 for _ in same)
