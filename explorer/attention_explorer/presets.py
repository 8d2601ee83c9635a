"""What an administrator presets for everybody on a computer: a file in the platform's place for all its users.

A preset holds as long as a person has chosen nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import platformdirs

from attention_explorer.look.theme import ThemeName

NAME = "presets.toml"
_MOST_BYTES = 1 << 16


class Presets(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`presets.toml`."""

    theme: ThemeName = "system"
    offline: bool = False  # no hub is asked
    checkpoints: str = ""  # a folder of checkpoints, which may lie on a share; they are listed when one is chosen


def presets_path() -> Path:
    """Where the file lies: what `ATTENTION_EXPLORER_PRESETS` names, else the platform's place for all users.

    /etc/xdg/attention-explorer on Linux, C:\\ProgramData\\attention-explorer on Windows,
    /Library/Application Support/attention-explorer on a Mac.
    """
    named = os.environ.get("ATTENTION_EXPLORER_PRESETS")
    return Path(named) if named else Path(platformdirs.site_config_dir("attention-explorer", appauthor=False)) / NAME


def presets() -> tuple[Presets, str]:
    """What is preset, and a sentence for the person where the file cannot be used ("" otherwise)."""
    path = presets_path()
    try:
        if not path.is_file():
            return Presets(), ""
        from attention_models.files.toml_files import (
            decode_toml,  # the window waits for no module that it does not need
        )

        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError("it is too long")
        return msgspec.convert(decode_toml(content.decode("utf-8-sig")), Presets), ""
    except (OSError, ValueError) as error:
        return Presets(), f"The presets in {path} could not be read ({error}). The program starts without them."
