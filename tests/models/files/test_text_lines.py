"""Texts from the lines of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from attention_models.files.text_stream import MOST_BYTES, lines_of, read_lines
from attention_models.protocol.batch import MOST_TEXTS
from attention_models.protocol.errors import ExplorerError


def test_lines_that_say_something_without_white_space_around_them() -> None:
    assert lines_of(" a b \r\n\n\tc\rd\u2028e\n", "it") == ("a b", "c", "d\u2028e")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no line that says anything"),
        (b" \n\n", "has no line that says anything"),
        (b"caf\xe9\n", r"is not text in UTF-8 \(byte 3\)"),
        (b"a\0b", "is no text: it holds zero bytes"),
        (b"a\n" * (MOST_TEXTS + 1), "has 257 lines with text, and 256 texts"),
        (b"a" * (MOST_BYTES + 1), "is larger than 8 MB"),
    ],
)
def test_a_file_that_is_none_is_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(ExplorerError, match=rf"^a\.txt {words}"):
        read_lines(tmp_path / "a.txt")


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.txt"):
        with pytest.raises(ExplorerError, match="could not be read"):
            read_lines(path)
