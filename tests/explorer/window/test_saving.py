"""What the window writes, on a disk that is really full and one that can really only be read."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from string import ascii_letters

import numpy as np
import pytest
from PySide6.QtGui import QImage, QPixmap

from attention_explorer import settings
from attention_explorer.session.state import Document
from attention_explorer.settings import Settings
from attention_explorer.window.dialogs import save_picture
from tests.explorer import documents
from tests.real_disks import Disk

Writer = Callable[[Path], str]


@pytest.fixture
def noise(qapp) -> QPixmap:
    """A picture that no format makes small."""
    pixels = np.random.default_rng(0).integers(0, 256, (400, 600, 4), dtype=np.uint8)
    return QPixmap.fromImage(QImage(pixels.tobytes(), 600, 400, QImage.Format.Format_RGB32))


@pytest.mark.parametrize(("name", "format"), [("a.png", "PNG"), ("b", "PNG"), ("c.JPG", "JPEG")])
def test_a_picture_is_written_in_the_format_of_its_name(noise, tmp_path, name, format):
    assert save_picture(noise, tmp_path / name) == ""
    found = QImage(str(tmp_path / name), format)
    assert (found.width(), found.height()) == (600, 400)
    if format == "PNG":
        assert found.convertToFormat(QImage.Format.Format_RGB32) == noise.toImage().convertToFormat(
            QImage.Format.Format_RGB32
        )


def test_a_format_that_is_none(noise, tmp_path):
    assert save_picture(noise, tmp_path / "a.gguf") == (
        "No picture can be written as “.gguf”. Give a.gguf a name that ends in .png."
    )
    assert not (tmp_path / "a.gguf").exists()


@pytest.mark.parametrize("room", [0, 300_000])
def test_a_picture_on_a_disk_that_fills_up(noise, small_disk: Disk, room: int) -> None:
    path = small_disk.folder / "a.png"
    path.write_bytes(b"older")
    small_disk.fill(leave=room)
    assert save_picture(noise, path) == (
        f"The picture could not be written to {path}: the disk is full. Make room, or choose another folder."
    )
    assert path.read_bytes() == b"older"
    assert small_disk.names() == {"a.png"}


def test_a_picture_where_nothing_can_be_written(noise, small_disk: Disk) -> None:
    small_disk.forbid_writing()
    sentence = save_picture(noise, small_disk.folder / "a.png")
    assert sentence.endswith("a.png: the disk can only be read. Choose another folder.")


@pytest.mark.parametrize("room", [0, 8192])
def test_a_session_on_a_disk_that_fills_up(small_disk: Disk, room: int) -> None:
    path = small_disk.folder / "a.json"
    documents.save(Document(checkpoint="story-gpt", text="older"), path)
    small_disk.fill(leave=room)
    newer = "".join(random.Random(0).choices(ascii_letters, k=50_000))  # which no zip makes small
    with pytest.raises(ValueError, match=r"The session could not be written to .*: the disk is full\. Make room"):
        documents.save(Document(checkpoint="story-gpt", text=newer), path)
    assert documents.load(path).text == "older"
    assert small_disk.names() == {"a.json"}


def test_a_session_where_nothing_can_be_written(small_disk: Disk) -> None:
    small_disk.forbid_writing()
    with pytest.raises(ValueError, match=r"the disk can only be read\. Choose another folder\."):
        documents.save(Document(checkpoint="story-gpt", text=""), small_disk.folder / "a.json")


@pytest.mark.parametrize("broken", ["full", "read only"])
def test_settings_that_can_not_be_written_leave_the_last_ones(small_disk: Disk, broken, monkeypatch, caplog) -> None:
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(small_disk.folder))
    settings.save(Settings(theme="dark"))
    if broken == "full":
        small_disk.fill()
    else:
        small_disk.forbid_writing()
    settings.save(Settings(theme="light", recent=["/models/x" * 1000]))
    assert "settings not saved" in caplog.text
    assert settings.load() == (Settings(theme="dark"), "")
    assert small_disk.names() == {"settings.json", "settings.json.lock"}
