"""Names on a hub, as people type and paste them."""

from __future__ import annotations

from pathlib import Path

import pytest

from attention_models.files.catalogue import folder_of, read_card
from attention_models.files.names import HubName, is_elsewhere, is_hub, parse, title_of
from attention_models.protocol.errors import CheckpointError


@pytest.mark.parametrize(
    ("typed", "repository", "revision", "file"),
    [
        ("openai-community/gpt2", "openai-community/gpt2", "", ""),
        ("  gpt2 ", "gpt2", "", ""),
        ("a/b@v1.0", "a/b", "v1.0", ""),
        ("a/b@refs/pr/3", "a/b", "refs/pr/3", ""),
        ("hf://a/b", "a/b", "", ""),
        ("hf://a/b@0123abc", "a/b", "0123abc", ""),
        ("https://huggingface.co/openai-community/gpt2", "openai-community/gpt2", "", ""),
        ("https://huggingface.co/a/b/tree/main", "a/b", "main", ""),
        ("https://huggingface.co/a/b/blob/v2/config.json?x=1", "a/b", "v2", ""),
        ("a/b:m-Q4_K_M.gguf", "a/b", "", "m-Q4_K_M.gguf"),
        (" hf://a/b@v1:sub dir/m ñ.GGUF ", "a/b", "v1", "sub dir/m ñ.GGUF"),
        ("https://huggingface.co/a/b/blob/main/m.gguf", "a/b", "main", "m.gguf"),
        ("https://huggingface.co/a/b/resolve/v2/x%20y/m.gguf?download=true", "a/b", "v2", "x y/m.gguf"),
    ],
)
def test_parse(typed: str, repository: str, revision: str, file: str) -> None:
    name = parse(typed)
    assert (name.repository, name.revision, name.file) == (repository, revision, file)
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


@pytest.mark.parametrize(
    "typed",
    [
        "a/b:",
        "a/b:Q4_K_M",
        "a/b@v1:model.safetensors",
        "a/b:../m.gguf",
        "a/b:/m.gguf",
        "a/b:x//m.gguf",
        "a/b:./m.gguf",
        "a/b:x\\m.gguf",
        "a/b:c:m.gguf",
        "a/b:<b>m.gguf",
        "a/b:m\n.gguf",
        "a/b:1/2/3/4/5/m.gguf",
        "a/b:" + "m" * 200 + ".gguf",
        "hf://a/b:.gguf",
    ],
)
def test_no_file_of_a_repository(typed: str) -> None:
    with pytest.raises(CheckpointError, match=r"names no GGUF file.*owner/name:model-Q4_K_M\.gguf"):
        parse(typed)


def test_title_is_what_a_person_calls_it() -> None:
    assert parse("a/b@v1").title == "b"
    assert parse("a/b:sub/m.gguf").title == "m.gguf"
    assert parse("a/b@v1").with_file("m.gguf").reference == "hf://a/b@v1:m.gguf"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("hf://someone/tiny-model", "hf download someone/tiny-model”"),
        ("hf://someone/tiny-model:sub/m.gguf", "hf download someone/tiny-model sub/m.gguf”"),
    ],
)
def test_not_here_yet(reference: str, words: str) -> None:
    with pytest.raises(CheckpointError, match=r"not on this computer yet") as caught:
        folder_of(reference)
    assert words in str(caught.value)


def test_a_snapshot_is_called_by_its_repository(tmp_path: Path) -> None:
    folder = tmp_path / "models--someone--tiny-model" / "snapshots" / ("0" * 40)
    assert title_of(folder) == "tiny-model"
    assert read_card(folder).title == "tiny-model"
    assert title_of(tmp_path / "mine") == "mine"


@pytest.mark.parametrize(
    "place", ["/home/me/model", "~/model.gguf", "./model", "../model", "C:\\models\\mine", "hf:///tmp/x"]
)
def test_a_place_on_this_computer_is_told_from_a_name(place: str) -> None:
    with pytest.raises(CheckpointError, match="is opened by its place"):
        parse(place)


def test_what_was_pasted_by_mistake_is_not_repeated_whole() -> None:
    with pytest.raises(CheckpointError, match="is no name on a hub") as caught:
        parse("x" * 9999)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "place",
    [
        *(
            "\\\\server\\share\\model",
            "//server/share",
            "/\\server/share",
            "\\/server\\share",
            "\\\\?\\UNC\\server\\share",
        ),
        *("\\??\\UNC\\server\\share", "\\\\.\\pipe\\x", "file:///home/me", "FILE://server/share", "file:\\\\server\\x"),
        *("https://example.org/model", "smb://server/share", "sftp:\\\\server", "HTTP://x"),
    ],
)
def test_a_share_or_an_address_is_told_by_its_text(place: str) -> None:
    assert is_elsewhere(place)


@pytest.mark.parametrize(
    "place",
    [
        *(
            "",
            "story-gpt",
            "/home/me/model",
            "~/model",
            "./a",
            "C:\\models\\mine",
            "C:/models",
            "c:model",
            "my:model@400",
        ),
        *("hf://owner/name@main:a.gguf", "sample:chelsea", "python:model", "files/model", "a//b", "models/http://x"),
    ],
)
def test_all_else_is_on_this_computer_or_the_programs_own(place: str) -> None:
    assert not is_elsewhere(place)
