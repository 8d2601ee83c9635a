"""What an administrator presets holds until a person chooses something else; a broken file is told of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attention_explorer import settings
from attention_explorer.presets import Presets, presets, presets_path
from attention_explorer.settings import Settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "presets.toml"
    monkeypatch.setenv("ATTENTION_EXPLORER_PRESETS", str(path))
    return path


def test_without_a_file_nothing_is_preset(file):
    assert presets() == (Presets(), "")
    assert settings.load() == (Settings(), "")


def test_what_is_preset_holds_where_nothing_was_chosen(file):
    file.write_text('theme = "dark"\noffline = true\ncheckpoints = "/srv/models"\n', encoding="utf-8")
    assert presets() == (Presets(theme="dark", offline=True, checkpoints="/srv/models"), "")
    found, sentence = settings.load()
    assert (found.theme, found.offline, sentence) == ("dark", True, "")


def test_what_a_person_chose_stays_and_what_they_did_not_follows_the_file(file, settings_folder):
    file.write_text('theme = "dark"\noffline = true\n', encoding="utf-8")
    found, _ = settings.load()
    before = settings.copy_of(found)
    found.theme = "light"
    assert settings.save(found, before) == ""
    assert "offline" not in json.loads((settings_folder / "settings.json").read_text())
    file.write_text('theme = "system"\n', encoding="utf-8")
    again, _ = settings.load()
    assert (again.theme, again.offline) == ("light", False)


@pytest.mark.parametrize(
    "content", [b"theme = ", b'theme = "pink"', b"offline = 3", b'thema = "dark"', b"\xff\xfe", b"#" * 70_000]
)
def test_a_file_that_cannot_be_used_is_named_and_passed_over(file, content):
    file.write_bytes(content)
    found, sentence = settings.load()
    assert found == Settings()
    assert sentence.startswith(f"The presets in {file} could not be read (")


def test_the_file_lies_in_the_place_for_all_users(monkeypatch):
    monkeypatch.delenv("ATTENTION_EXPLORER_PRESETS", raising=False)
    assert presets_path().name == "presets.toml"
    assert presets_path().parent.name == "attention-explorer"
    assert not presets_path().is_relative_to(Path.home())
