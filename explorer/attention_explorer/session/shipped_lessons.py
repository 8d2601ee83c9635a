"""The lessons that come along, as a menu lists them: without reading, and checking, what is in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from attention_explorer.paths import resource

ENDING = ".lesson"
"""Of lessons made in the window."""
TOML = ".toml"

OPENED = f"Lessons (*{ENDING} *{TOML})"
"""What a dialog lists."""

_TITLE = re.compile(r'^title = "([^"]+)"', re.MULTILINE)
_MINUTES = re.compile(r"^minutes = (\d+)", re.MULTILINE)


def is_lesson(path: str) -> bool:
    """Whether a path names a lesson by its ending."""
    return path.lower().endswith((ENDING, TOML))


@cache
def shipped_lessons() -> tuple[Path, ...]:
    """Those that come along, in their order."""
    return tuple(sorted(resource("lessons").glob(f"*{TOML}")))


def heading_of(path: Path) -> str:
    """Title and length of one that comes along, as its first lines have them."""
    text = path.read_text("utf-8")
    title, minutes = _TITLE.search(text), _MINUTES.search(text)
    assert title is not None
    assert minutes is not None
    return f"{title[1]} ({minutes[1]} minutes)"
