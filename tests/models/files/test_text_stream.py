"""Texts from a file: lines, tables, JSON lines; and what is said of one that holds none."""

from __future__ import annotations

import json
import os

import pytest

from attention_models.files import text_stream
from attention_models.files.text_stream import TextLine, TextStream
from attention_models.protocol.errors import InputError


def read(path):
    return [(line.number, line.text, line.second) for line in TextStream(path)]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "Tom.\n\n  Anna. \r\nBen.", [(1, "Tom.", None), (3, "Anna.", None), (4, "Ben.", None)]),
        ("a.txt", "\ufeffTom.\n", [(1, "Tom.", None)]),
        ("a.txt", "one\ttwo\n", [(1, "one\ttwo", None)]),  # a table has its own ending
        ("a.csv", "Tom, or Anna\nBen,x\n", [(1, "Tom", "or Anna"), (2, "Ben", "x")]),
        ("a.csv", 'id,text\n7,"Tom, ""he""\nsaid"\n8,Anna\n', [(3, 'Tom, "he"\nsaid', None), (4, "Anna", None)]),
        ("a.csv", "premise,label,hypothesis\nTom sat.,1,He sat.\n", [(2, "Tom sat.", "He sat.")]),
        ("a.tsv", "Good day.\tBuenos días.\nNo.\n", [(1, "Good day.", "Buenos días."), (2, "No.", None)]),
        ("a.tsv", 'He said "no\tNo dijo\n', [(1, 'He said "no', "No dijo")]),  # a quote is a quote
        ("a.jsonl", '"Tom."\n\n["Tom.", "Anna."]\n', [(1, "Tom.", None), (3, "Tom.", "Anna.")]),
        ("a.jsonl", '{"text": "Tom."}\n{"text": "a", "second": "b", "n": 1}', [(1, "Tom.", None), (2, "a", "b")]),
        ("a.jsonl", json.dumps("half \ud800 of one"), [(1, "half ? of one", None)]),
    ],
)
def test_every_format(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content.encode())
    assert read(path) == expected


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"", "no line that says anything"),
        ("a.txt", b" \n\n\t\n", "no line that says anything"),
        ("a.csv", b"text\n", "no line that says anything"),
        ("a.txt", b"Tom.\nA\0nna.\n", "line 2 holds zero bytes"),
        ("a.txt", b"Tom.\n\xff\xfe\n", "line 2 has other bytes"),
        ("a.txt", b"Tom.\n" + b"a" * 100_001 + b"\n", "line 2 is longer than 100,000 characters"),
        ("a.txt", b"a" * 900_000, "line 1 is longer than 100,000 characters"),
        ("a.txt", b"\xc3\xa9" * 300_000, "line 1 is longer than 100,000 characters"),
        ("a.jsonl", b'"Tom."\n{"text": \n', "line 2 is no JSON"),
        ("a.jsonl", b'"Tom."\n{"id": 3}\n', "line 2 has no text"),
        ("a.jsonl", b"[" * 5000 + b"\n", "line 1 is no JSON"),
        ("a.jsonl", b"[1, 2]\n", "line 1 has no text"),
        ("a.csv", b'text\n"Tom\n', "line 2 is no row of a table"),
    ],
)
def test_bad_files_are_said_by_their_line(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as error:
        read(path)
    assert str(error.value).startswith(name)
    assert str(error.value).endswith(".")


def test_what_is_no_file_is_refused_at_once(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        TextStream(tmp_path / "none.txt")
    with pytest.raises(InputError, match="cannot be read"):
        TextStream(tmp_path)
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(InputError, match="pipe"):
        TextStream(tmp_path / "pipe.txt")


def test_it_is_read_a_line_at_a_time_and_says_how_far(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {i}\n" for i in range(100)))
    stream = TextStream(path)
    first = next(iter(stream))
    assert first == TextLine(1, "line 0")
    assert 0 < stream.share < 0.05
    assert len(list(stream)) == 100  # and again from its beginning
    assert stream.share == 1.0
    assert text_stream.LONGEST_LINE == 100_000
