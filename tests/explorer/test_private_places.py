"""What the program keeps of a person's texts is read by that person alone, whatever the umask leaves open."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_explorer import settings
from attention_explorer.recovery import crashes, training_folders
from attention_explorer.recovery.autosaves import autosave_folder, own_path
from attention_explorer.recovery.log import handlers, log_path
from attention_explorer.session import attn
from attention_explorer.session.kept import KeptState, SessionFile
from attention_explorer.session.state import Document
from attention_explorer.window.recovery import _make_folder as make_autosave_folder
from attention_models.files.own_cache import cache_folder, keep_arrays
from attention_models.files.safe_files import write_whole
from attention_models.protocol.training_messages import Asked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def keep_something() -> None:
    """Let each part of the program write what it keeps, as in a session of work."""
    settings.save(settings.Settings(recent_texts=["/home/anna/diary.txt"]))
    (handler,) = handlers()
    handler.emit(logging.makeLogRecord({"msg": "a text that was typed"}))
    handler.doRollover()  # type: ignore[attr-defined]
    handler.emit(logging.makeLogRecord({"msg": "and another"}))
    handler.close()
    path = own_path()
    make_autosave_folder(path)
    attn.save(SessionFile(KeptState(Document(text="Dear diary"))), path)
    asked = Asked("reverse:4")
    training_folders.make(training_folders.new_folder(asked), asked)
    keep_arrays("roles", "0" * 16, {})


def test_all_that_is_kept_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "not there yet" / "explorer"
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(home))
    keep_something()
    with crashes.watched():
        found = {path.relative_to(home).parts[0]: path for path in home.rglob("*")}
        assert {"settings.json", "log.txt", "log.txt.1", "autosave", "training", "cache", "crashes"} <= set(found)
        modes = {str(path): (path.is_dir(), mode_of(path)) for path in (home.parent, home, *home.rglob("*"))}
    assert {name: mode for name, mode in modes.items() if mode != (mode[0], 0o700 if mode[0] else 0o600)} == {}


def test_what_an_earlier_version_left_open_is_closed(settings_folder: Path) -> None:
    keep_something()
    own = [settings_folder / "settings.json", log_path(), autosave_folder(), training_folders.trainings_folder()]
    for path in own:
        path.chmod(0o755 if path.is_dir() else 0o644)
    keep_something()
    assert [mode_of(path) & 0o077 for path in own] == [0] * len(own)


def test_a_folder_of_the_persons_own_keeps_its_mode(settings_folder: Path) -> None:
    settings_folder.chmod(0o755)
    keep_something()
    assert mode_of(settings_folder) == 0o755
    assert mode_of(cache_folder()) == 0o700


def test_a_session_that_is_saved_is_private_until_it_is_shared(tmp_path: Path) -> None:
    session, path = SessionFile(KeptState(Document(text="Dear diary"))), tmp_path / "mine.attn"
    attn.save(session, path)
    assert mode_of(path) == 0o600
    path.chmod(0o644)  # for a class
    attn.save(session, path)
    assert mode_of(path) == 0o644


def test_tables_and_pictures_are_made_to_be_shared(tmp_path: Path) -> None:
    write_whole(tmp_path / "table.csv", b"")
    assert mode_of(tmp_path / "table.csv") == 0o644
