"""What explorer.json says of a checkpoint; a wrong one is left aside."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from attention_models import open_checkpoint
from attention_models.files.catalogue import read_card, shipped
from attention_models.opening.open import describe
from tests.models.opening.damage import NAME


def test_card_of_a_folder(folder: Path) -> None:
    (folder / "explorer.json").write_text(json.dumps({"title": "Mine", "example": "Tom", "prefix": 5, "other": 1}))
    info = open_checkpoint(folder).info
    assert (info.name, info.example, info.prefix) == ("Mine", "Tom", "")


@pytest.mark.parametrize(
    ("reads", "known"),
    [("en", "en"), ("deu", "deu"), ("English", ""), ("EN", ""), ("e", ""), ("en\n", ""), (5, ""), (None, ""), ([], "")],
)
def test_a_card_says_which_language_is_read(folder: Path, reads: object, known: str) -> None:
    (folder / "explorer.json").write_text(json.dumps({"title": "Mine", "reads": reads}))
    assert open_checkpoint(folder).info.reads == known
    assert read_card(folder).title == "Mine"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"5", b"\xff\xfe", b"[" * 60_000, b'{"title": "' + b"x" * 70_000 + b'"}']
)
def test_card_is_a_courtesy(folder: Path, content: bytes) -> None:
    (folder / "explorer.json").write_bytes(content)
    assert read_card(folder).title == NAME


def test_cards_of_the_shipped() -> None:
    for card in shipped():
        assert card.folder.is_dir()
        assert card.summary
        assert card.example or card.name.startswith("vit-")


def test_a_card_that_is_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "explorer.json")
    assert describe(str(folder)).example == ""
