"""What is remembered between starts: the layout, the theme, view options and recent folders."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Literal

import msgspec
import platformdirs

from explorer import json_files
from explorer.session.view_options import ViewOptions
from explorer.theme import ThemeName
from models.files.whole_files import write_whole

log = logging.getLogger(__name__)

LAYOUT_VERSION = 2
"""Raised when panels change places or names: an older layout is then not restored."""

MOST_RECENT = 8
_MOST_BYTES = 1 << 20


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=False):
    """One settings file. Unknown fields of a newer version are ignored, wrong ones replace the file by the defaults."""

    version: Literal[1] = 1
    theme: ThemeName = "system"
    text_scale: float = 1.0
    geometry: bytes = b""
    layout: bytes = b""
    layout_version: int = LAYOUT_VERSION
    recent: list[str] = []
    offline: bool = False  # no hub is asked
    view: ViewOptions = ViewOptions()


def folder() -> Path:
    """Where the settings and the log lie: `ATTENTION_EXPLORER_HOME`, or the platform's own place."""
    home = os.environ.get("ATTENTION_EXPLORER_HOME")
    return Path(home) if home else Path(platformdirs.user_config_dir("attention-explorer", appauthor=False))


def load() -> tuple[Settings, str]:
    """The settings, and a sentence for the person where the file could not be used ("" otherwise)."""
    path = folder() / "settings.json"
    try:
        if not path.is_file():
            return Settings(), ""
        settings = json_files.decode(json_files.read(path, _MOST_BYTES), Settings)
    except (OSError, ValueError) as error:
        return Settings(), f"The settings in {path} could not be read ({error}). The window starts with its defaults."
    settings.text_scale = min(2.0, max(0.75, settings.text_scale))
    settings.recent = settings.recent[:MOST_RECENT]
    return settings, ""


def save(settings: Settings) -> None:
    """Write the settings whole or not at all. A disk that refuses is logged: closing must not fail over it."""
    path = folder() / "settings.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json_files.encode(settings))
    except OSError as error:
        log.warning("settings not saved: %s", error)


def with_recent(recent: list[str], reference: str) -> list[str]:
    """`recent` with `reference` first."""
    return [reference, *(other for other in recent if other != reference)][:MOST_RECENT]
