"""Settings on disk: what comes back, what is refused, and that a refusal is told and harms nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attention_explorer import settings
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.settings import MOST_RECENT, Settings

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_saved_comes_back(settings_folder):
    kept = Settings(
        theme="dark",
        text_scale=1.25,
        geometry=b"\x00\xffgeometry",
        layout=b"\x01layout",
        recent=["/models/übung", "C:\\models\\a"],
        view=ViewOptions(colour_map="magma", mean_column=True, normalisation="row"),
    )
    settings.save(kept)
    assert settings.load() == (kept, "")
    assert {path.name for path in settings_folder.iterdir()} == {"settings.json", "settings.json.lock"}


def test_without_a_file_there_are_defaults_and_nothing_to_say(settings_folder):
    assert settings.load() == (Settings(), "")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b'{"version": 2}',
        b'{"theme": "pink"}',
        b'{"text_scale": "large"}',
        b'{"text_scale": 1e999}',
        b'{"recent": [1]}',
        b'{"layout": "not base64!"}',
        b'{"view": {"colour_map": "jet"}}',
        b'{"view": {"top": 0}}',
        b'{"view": {"top": 100000}}',
        b'{"view": {"normalisation": "diagonal"}}',
        b"[" * 100_000,
        b" " * ((1 << 20) + 1),
    ],
    ids=lambda content: content[:40].decode("latin-1").strip() or "blank",
)
def test_a_file_that_cannot_be_used_is_named_and_the_defaults_serve(settings_folder, content):
    path = settings_folder / "settings.json"
    path.write_bytes(content)
    found, sentence = settings.load()
    assert found == Settings()
    assert str(path) in sentence
    assert sentence.endswith("It is kept as settings.json.kept-1. The window starts with its defaults.")
    assert (settings_folder / "settings.json.kept-1").read_bytes() == content
    settings.save(Settings(theme="dark"))
    assert (settings_folder / "settings.json.kept-1").read_bytes() == content
    path.write_bytes(content)
    assert "It is kept as settings.json.kept-2." in settings.load()[1]


def test_fields_of_a_newer_version_are_left_alone(settings_folder):
    (settings_folder / "settings.json").write_text('{"theme": "dark", "telepathy": true}')
    assert settings.load() == (Settings(theme="dark"), "")
    settings.save(Settings(theme="light"))
    assert json.loads((settings_folder / "settings.json").read_text())["telepathy"] is True


def test_a_file_that_broke_while_the_window_was_open_is_kept_too(settings_folder):
    before, _ = settings.load()
    (settings_folder / "settings.json").write_text("{ half")
    settings.save(Settings(theme="dark"), before)
    assert settings.load() == (Settings(theme="dark"), "")
    assert (settings_folder / "settings.json.kept-1").read_text() == "{ half"


def test_of_two_windows_neither_undoes_what_the_other_has_changed(settings_folder):
    settings.save(Settings(recent=["/a", "/b"]))
    (one, _), (other, _) = settings.load(), settings.load()
    one_before, other_before = settings.copy_of(one), settings.copy_of(other)
    one.theme = "dark"
    one.recent = settings.with_recent(one.recent, "/one")
    settings.save(one, one_before)
    other.text_scale = 1.5
    other.recent = settings.with_recent(other.recent, "/other")
    settings.save(other, other_before)
    assert settings.load() == (Settings(theme="dark", text_scale=1.5, recent=["/other", "/one", "/a", "/b"]), "")


@pytest.mark.parametrize(
    ("ours", "was", "theirs", "merged"),
    [
        (["/a", "/b"], ["/a", "/b"], ["/c", "/a", "/b"], ["/c", "/a", "/b"]),
        (["/b", "/a"], ["/a", "/b"], ["/c", "/a", "/b"], ["/b", "/c", "/a"]),
        (["/a"], ["/a", "/b"], ["/c", "/a", "/b"], ["/c", "/a"]),
        ([], ["/a", "/b"], ["/a", "/b"], []),
        (["/x"], [], ["/y"], ["/x", "/y"]),
    ],
)
def test_lists_of_what_was_opened_lately(ours, was, theirs, merged):
    assert settings.merged_list(ours, was, theirs) == merged


SAVER = """
import sys
from attention_explorer import settings
mine, _ = settings.load()
before = settings.copy_of(mine)
for number in range(8):
    mine.recent_sessions = settings.with_recent(mine.recent_sessions, f"/{sys.argv[1]}{number % 4}")
    assert settings.save(mine, before) == ""
    before = settings.copy_of(mine)
"""


def test_programs_that_save_at_once_lose_nothing_of_each_other(settings_folder):
    settings.save(Settings())
    savers = [subprocess.Popen([sys.executable, "-c", SAVER, name], cwd=ROOT) for name in "ab"]
    assert [saver.wait() for saver in savers] == [0, 0]
    assert set(settings.load()[0].recent_sessions) == {f"/{name}{number}" for name in "ab" for number in range(4)}


def test_places_of_panels_that_were_damaged_are_left_out_for_qt_would_crash(settings_folder):
    settings.save(Settings(theme="dark", layout=b"as it was", geometry=b"here"))
    path = settings_folder / "settings.json"
    damaged = json.loads(path.read_text())
    damaged["layout"] = "AAAA"
    path.write_text(json.dumps(damaged))
    found, sentence = settings.load()
    assert found == Settings(theme="dark")
    assert sentence.startswith(f"The places of the panels in {path} are damaged.")
    del damaged["seal"]  # as an earlier version wrote it
    path.write_text(json.dumps(damaged))
    assert settings.load() == (Settings(theme="dark", layout=bytes(3), geometry=b"here"), "")


def test_the_mark_that_some_editors_write_first_is_no_fault(settings_folder):
    (settings_folder / "settings.json").write_text('{"theme": "dark"}', encoding="utf-8-sig")
    assert settings.load() == (Settings(theme="dark"), "")


def test_wild_numbers_are_brought_into_range(settings_folder):
    (settings_folder / "settings.json").write_text(
        json.dumps({"text_scale": 900.0, "recent": [f"/{i}" for i in range(50)]})
    )
    found, sentence = settings.load()
    assert sentence == ""
    assert found.text_scale == 2.0
    assert len(found.recent) == MOST_RECENT


def test_a_disk_that_refuses_is_no_reason_to_fail(settings_folder, caplog):
    (settings_folder / "settings.json").mkdir()
    settings.save(Settings(theme="dark"))
    assert "settings not saved" in caplog.text
    assert settings.load() == (Settings(), "")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_file_that_may_not_be_read_is_told(settings_folder):
    path = settings_folder / "settings.json"
    path.write_text("{}")
    path.chmod(0)
    assert "could not be read" in settings.load()[1]


def test_a_save_that_breaks_off_leaves_the_last_one(settings_folder, monkeypatch):
    settings.save(Settings(theme="dark"))

    def full_disk(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full_disk)
    settings.save(Settings(theme="light"))
    assert settings.load()[0].theme == "dark"


def test_the_last_opened_folder_comes_first_and_once():
    recent = settings.with_recent(["/a", "/b", "/c"], "/b")
    assert recent == ["/b", "/a", "/c"]
    assert len(settings.with_recent([f"/{i}" for i in range(MOST_RECENT)], "/new")) == MOST_RECENT
