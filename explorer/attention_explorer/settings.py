"""What is remembered between starts: the layout, the theme, view options and recent folders."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import platformdirs
from msgspec import Meta
from msgspec.structs import replace

from attention_explorer import json_files
from attention_explorer.look.theme import ThemeName
from attention_explorer.presets import presets
from attention_explorer.session.view_options import ViewOptions
from attention_models.files.safe_files import FILE_MODE, keep_private, not_written, private_folder, write_whole

log = logging.getLogger(__name__)

LAYOUT_VERSION = 2
"""Raised when panels change places or names: an older layout is then not restored."""

MOST_RECENT = 8
SMALLEST_TEXT, LARGEST_TEXT = 0.75, 2.0
"""What text can be scaled by."""
NAME = "settings.json"
_MOST_BYTES = 1 << 20
_FURTHEST = 1 << 20  # pixels
_PATIENCE = 1.0  # seconds
_PRESET = ("theme", "offline")
"""What an administrator may preset: written only where a person has chosen something else."""
_LISTS = ("recent", "recent_sessions", "recent_texts")


class Floated(msgspec.Struct, frozen=True):
    """Where a panel floats in a window of its own: pixels of the desktop, and whether it fills its screen."""

    x: Annotated[int, Meta(ge=-_FURTHEST, le=_FURTHEST)]
    y: Annotated[int, Meta(ge=-_FURTHEST, le=_FURTHEST)]
    width: Annotated[int, Meta(ge=1, le=_FURTHEST)]
    height: Annotated[int, Meta(ge=1, le=_FURTHEST)]
    is_maximised: bool = False


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=False):
    """One settings file. Unknown fields of a newer version are left as they are."""

    version: Literal[1] = 1
    theme: ThemeName = "system"
    text_scale: float = 1.0
    geometry: bytes = b""
    layout: bytes = b""
    layout_version: int = LAYOUT_VERSION
    floated: Annotated[dict[str, Floated], Meta(max_length=200)] = {}  # by the panel's name, as it floated last
    seal: str = ""  # SHA-256 of geometry and layout in the file: Qt crashes on some that were damaged
    recent: list[str] = []
    recent_sessions: list[str] = []
    recent_texts: list[str] = []  # files that were read as a corpus, or that roles were found on
    tour: Literal["new", "later", "never", "done"] = "new"  # what became of the offer to show the window
    tour_step: int = 0  # where it was left
    offline: bool = False  # no hub is asked
    not_for_audience: Annotated[list[str], Meta(max_length=200)] = []  # names of panels
    view: ViewOptions = ViewOptions()


def folder() -> Path:
    """Where the settings and the log lie: `ATTENTION_EXPLORER_HOME`, or the platform's own place."""
    home = os.environ.get("ATTENTION_EXPLORER_HOME")
    return Path(home) if home else Path(platformdirs.user_config_dir("attention-explorer", appauthor=False))


def make_folder(part: str = "") -> Path:
    """`folder()`, or a part of it, made for its owner alone; what an earlier version left open to others is closed.

    A folder of the person's own, named by `ATTENTION_EXPLORER_HOME`, keeps its mode where it is there already.

    Raises:
        OSError: the disk refuses.
    """
    path = folder() / part
    private_folder(path)
    if part or not os.environ.get("ATTENTION_EXPLORER_HOME"):
        keep_private(path)
    return path


def load() -> tuple[Settings, str]:
    """The settings, and a sentence for the person where the file could not be used ("" otherwise).

    A file that cannot be used, broken or of a newer version, is kept beside: saving does not write over it.
    """
    path = folder() / NAME
    preset, said = presets()
    first = Settings(theme=preset.theme, offline=preset.offline)
    try:
        if not path.is_file():
            return first, said
        content = json_files.read(path, _MOST_BYTES)
        settings, members = json_files.decode(content, Settings), json_files.decode(content, dict[str, msgspec.Raw])
    except (OSError, ValueError) as error:
        said = f"The settings in {path} could not be read ({error})."
        return first, f"{said} {_put_aside(path)} The window starts with its defaults."
    for name in _PRESET:
        if name not in members:
            setattr(settings, name, getattr(first, name))
    if settings.seal not in ("", _seal(settings.geometry, settings.layout)):
        settings.geometry = settings.layout = b""
        said = f"The places of the panels in {path} are damaged. They are as at first; all else is as it was."
    settings.seal = ""
    settings.text_scale = min(LARGEST_TEXT, max(SMALLEST_TEXT, settings.text_scale))
    settings.tour_step = max(0, settings.tour_step)
    for name in _LISTS:
        setattr(settings, name, getattr(settings, name)[:MOST_RECENT])
    return settings, said


def save(settings: Settings, before: Settings | None = None) -> str:
    """Write what has changed since `before` (all, without it), and leave what other windows have written.

    The file is written whole or not at all. Returns a sentence where the disk refuses, which is logged too: closing
    must not fail over it.
    """
    path = folder() / NAME
    try:
        make_folder()
        with _locked(path):
            keep_private(path)
            write_whole(path, json_files.encode(_merged(path, settings, before)), private=True)
    except OSError as error:
        log.warning("settings not saved: %s", error)
        return not_written("The settings", path, error)
    return ""


def with_recent(recent: list[str], reference: str) -> list[str]:
    """`recent` with `reference` first."""
    return [reference, *(other for other in recent if other != reference)][:MOST_RECENT]


def copy_of(settings: Settings) -> Settings:
    """As it is now, to be compared with later."""
    return replace(settings, **{name: list(getattr(settings, name)) for name in _LISTS})


def _merged(path: Path, settings: Settings, before: Settings | None) -> dict[str, msgspec.Raw]:
    """The file's members with ours in the place of those that we have changed. Those of newer versions stay."""
    there, members = Settings(), dict[str, msgspec.Raw]()
    if path.exists():
        try:
            content = json_files.read(path, _MOST_BYTES)
            there, members = json_files.decode(content, Settings), json_files.decode(content, dict[str, msgspec.Raw])
        except ValueError:
            _put_aside(path)
    else:
        before = None  # there is nothing that another window could have written
    ours = copy_of(settings)
    for name in _LISTS if before is not None else ():
        setattr(ours, name, merged_list(getattr(settings, name), getattr(before, name), getattr(there, name)))
    encoded = json_files.decode(msgspec.json.encode(ours), dict[str, msgspec.Raw])
    preset, _ = presets()
    for name, value in encoded.items():
        if name in _PRESET and name not in members and getattr(settings, name) == getattr(preset, name):
            continue
        if before is None or name in _LISTS or getattr(settings, name) != getattr(before, name) or name not in members:
            members[name] = value
    geometry, layout = (msgspec.json.decode(bytes(members[name]), type=bytes) for name in ("geometry", "layout"))
    members["seal"] = msgspec.Raw(msgspec.json.encode(_seal(geometry, layout)))
    return members


def _seal(geometry: bytes, layout: bytes) -> str:
    return hashlib.sha256(geometry + b"|" + layout).hexdigest()


def merged_list(ours: list[str], was: list[str], theirs: list[str]) -> list[str]:
    """A list of what was opened lately, from one that was made of `was` here and one that was made of it elsewhere.

    First what came to the front here, then what is there, without what was taken out here.
    """
    fresh = [item for place, item in enumerate(ours) if item not in was or place < was.index(item)]
    taken_out = {item for item in was if item not in ours} if len(ours) < MOST_RECENT else set()
    rest = [item for item in dict.fromkeys([*theirs, *ours]) if item not in fresh and item not in taken_out]
    return [*fresh, *rest][:MOST_RECENT]


def _put_aside(path: Path) -> str:
    """Give a file that cannot be used another name, and say which."""
    number = 1
    while (aside := path.with_name(f"{path.name}.kept-{number}")).exists():
        number += 1
    try:
        path.rename(aside)
    except OSError as error:
        return f"It stays where it is ({(error.strerror or str(error)).lower()})."
    return f"It is kept as {aside.name}."


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """While another window writes, wait for a moment, and then go on: a lock that is stuck must not hold this one."""
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=_PATIENCE, mode=FILE_MODE)
    try:
        lock.acquire()
    except Timeout:
        log.warning("the settings are locked by another program")
    try:
        yield
    finally:
        lock.release()
