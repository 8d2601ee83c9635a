"""What is taken from a drop: a checkpoint's folder or GGUF file, or a picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QUrl

from attention_explorer.chooser.drops import checkpoint_in, corpus_in, picture_in


def dropped(*urls: str) -> QMimeData:
    mime = QMimeData()
    mime.setUrls([QUrl(url) for url in urls])
    return mime


def local(path: Path) -> str:
    return QUrl.fromLocalFile(str(path)).toString()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mi modelo ñ"
    folder.mkdir()
    for name in ("config.json", "m.gguf", "M.GGUF", "cat.png"):
        (folder / name).write_text("x")
    return folder


def test_a_folder_is_itself_and_a_file_stands_for_its_folder(folder):
    assert checkpoint_in(dropped(local(folder))) == str(folder)
    assert checkpoint_in(dropped(local(folder / "config.json"))) == str(folder)


def test_files_of_one_folder_stand_for_it(folder):
    assert checkpoint_in(dropped(*(local(folder / name) for name in ("config.json", "model.safetensors")))) == str(
        folder
    )
    assert checkpoint_in(dropped(*(local(folder / name) for name in ("m.gguf", "M.GGUF")))) is None


@pytest.mark.parametrize("name", ["m.gguf", "M.GGUF"])
def test_a_gguf_file_is_itself(folder, name):
    assert checkpoint_in(dropped(local(folder / name))) == str(folder / name)


def test_a_picture(folder):
    assert picture_in(dropped(local(folder / "cat.png"))) == str(folder / "cat.png")
    assert picture_in(dropped(local(folder / "config.json"))) is None
    assert picture_in(dropped(local(folder / "none.png"))) is None


def test_a_file_of_texts_unless_it_belongs_to_a_checkpoint(folder, tmp_path):
    for place in (tmp_path, folder):
        (place / "vocab.txt").write_text("the\n")
    assert corpus_in(dropped(local(tmp_path / "vocab.txt"))) == str(tmp_path / "vocab.txt")
    assert corpus_in(dropped(local(folder / "vocab.txt"))) is None
    assert corpus_in(dropped(local(tmp_path / "gone.txt"))) is None


@pytest.mark.parametrize("urls", [(), ("https://huggingface.co/a/b",), ("file:///a/x", "file:///b/y")])
def test_nothing_that_could_be_opened(urls):
    assert checkpoint_in(dropped(*urls)) is None
    assert picture_in(dropped(*urls)) is None
