"""What a model is fine-tuned on, as a person has it: a text, or two columns, an input and an output in each row."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from models.files.text_lines import read_text
from models.protocol.errors import ExplorerError
from models.protocol.training_messages import AskedTuning

MOST_ROWS = 100_000
_HEADERS = ({"input", "output"}, {"source", "target"}, {"prompt", "answer"})

Pairs = tuple[tuple[str, str], ...]


def read_data(path: Path) -> str | Pairs:
    """The text in a file, or its rows of two columns: a .csv or .tsv file, or one with a tab in every line.

    Raises:
        ExplorerError: no file, one that is too large or no text, or a row that has no two columns.
    """
    return _data_in(read_text(path, "as a text, or as two columns"), path.name, path.suffix.lower())


def data_of(asked: AskedTuning) -> str | Pairs:
    """What is asked to be learned: a file, or a text that was pasted, each line of which may have two columns.

    Raises:
        ExplorerError: as from `read_data`.
    """
    return read_data(Path(asked.file)) if asked.file else _data_in(asked.text, "The text", "")


def _data_in(text: str, name: str, suffix: str) -> str | Pairs:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise ExplorerError(f"{name} is empty: there is nothing to learn from it.")
    lines = [line for line in text.split("\n") if line.strip()]
    if suffix not in (".csv", ".tsv") and not all(line.count("\t") == 1 for line in lines):
        return text
    return _pairs(name, text, suffix == ".csv" and "\t" not in lines[0])


def _pairs(name: str, text: str, by_commas: bool) -> Pairs:
    between = "a comma" if by_commas else "a tab"
    found: list[tuple[str, str]] = []
    if by_commas:
        reader = csv.reader(io.StringIO(text), strict=True)
        try:
            rows = [(reader.line_num, row) for row in reader if row]
        except csv.Error as cause:
            raise ExplorerError(f"{name}, line {reader.line_num:,}, is no CSV ({cause}). Check its quotes.") from cause
    else:
        rows = [(i, line.split("\t")) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    for number, row in rows:
        if len(row) != 2 or not all(column.strip() for column in row):
            what = f"{len(row)} column{'s' if len(row) != 1 else ''}" if len(row) != 2 else "an empty column"
            raise ExplorerError(
                f"{name}, line {number:,}, has {what}: each row is an input and an output, with {between} between them."
            )
        found.append((row[0].strip(), row[1].strip()))
    if found and {column.lower() for column in found[0]} in _HEADERS:
        del found[0]
    if len(found) > MOST_ROWS:
        raise ExplorerError(f"{name} has {len(found):,} rows, and {MOST_ROWS:,} are learned from at most. Give fewer.")
    return tuple(found)
