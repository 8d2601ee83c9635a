"""Settings on disk: what comes back, what is refused, and that a refusal is told and harms nothing."""

from __future__ import annotations

import json
import os
import sys

import pytest

from explorer import settings
from explorer.session.view_options import ViewOptions
from explorer.settings import MOST_RECENT, Settings


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
    assert [path.name for path in settings_folder.iterdir()] == ["settings.json"]


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
    assert sentence.endswith("The window starts with its defaults.")


def test_fields_of_a_newer_version_are_left_alone(settings_folder):
    (settings_folder / "settings.json").write_text('{"theme": "dark", "telepathy": true}')
    assert settings.load() == (Settings(theme="dark"), "")


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
