"""Names on a hub, as people type and paste them."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.catalogue import folder_of, read_card, title_of
from models.errors import CheckpointError
from models.hub_names import HubName, is_hub, parse


@pytest.mark.parametrize(
    ("typed", "repository", "revision"),
    [
        ("openai-community/gpt2", "openai-community/gpt2", ""),
        ("  gpt2 ", "gpt2", ""),
        ("a/b@v1.0", "a/b", "v1.0"),
        ("a/b@refs/pr/3", "a/b", "refs/pr/3"),
        ("hf://a/b", "a/b", ""),
        ("hf://a/b@0123abc", "a/b", "0123abc"),
        ("https://huggingface.co/openai-community/gpt2", "openai-community/gpt2", ""),
        ("https://huggingface.co/a/b/tree/main", "a/b", "main"),
        ("https://huggingface.co/a/b/blob/v2/config.json?x=1", "a/b", "v2"),
    ],
)
def test_parse(typed: str, repository: str, revision: str) -> None:
    name = parse(typed)
    assert (name.repository, name.revision) == (repository, revision)
    assert is_hub(name.reference)
    assert parse(name.reference) == name


@pytest.mark.parametrize(
    "typed",
    [
        "",
        " ",
        "a b",
        "a/b/c",
        "../x",
        "a/..",
        "/etc/passwd",
        "a/b@",
        "a/b@../x",
        "a/b@x..y",
        "a--b/c",
        "hf://",
        "ü/b",
        "C:\\models\\x",
        "http://[",
        "https://huggingface.co/",
        "a/" + "b" * 200,
        "a\0b",
        "-a/b",
        "a/b@-x",
    ],
)
def test_no_name(typed: str) -> None:
    if typed == "a/b@":  # an empty revision is none
        assert parse(typed) == HubName("a/b")
        return
    with pytest.raises(CheckpointError, match="owner/name"):
        parse(typed)


def test_not_here_yet() -> None:
    with pytest.raises(CheckpointError, match="not on this computer yet"):
        folder_of("hf://someone/tiny-model")


def test_a_snapshot_is_called_by_its_repository(tmp_path: Path) -> None:
    folder = tmp_path / "models--someone--tiny-model" / "snapshots" / ("0" * 40)
    assert title_of(folder) == "tiny-model"
    assert read_card(folder).title == "tiny-model"
    assert title_of(tmp_path / "mine") == "mine"
