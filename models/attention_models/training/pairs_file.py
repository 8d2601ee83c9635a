"""What a model is fine-tuned on, as a person has it: a text, or a table whose rows have an input and an output."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attention_models.files.text_stream import read_text
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.training_messages import AskedTuning

MOST_ROWS = 100_000
MOST_LETTERS = 100_000
"""Characters of a column. A tokenizer takes seconds for much more, of which no model reads all."""

_MOST_QUOTED = 40  # characters
_HEADERS = ({"input", "output"}, {"source", "target"}, {"prompt", "answer"})
_LEAST_LINES, _TABLE_SHARE = 10, 0.9  # with so many lines, of which so many have a tab, it is a table with faults

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Source:
    """What was given to learn from."""

    text: str
    file: str = ""  # its name; "" where the text was pasted

    @property
    def name(self) -> str:
        """As a sentence begins."""
        return self.file or "The text"

    @property
    def title(self) -> str:
        return self.file or "a pasted text"

    @property
    def suffix(self) -> str:
        return Path(self.file).suffix.lower()

    @property
    def lines(self) -> list[str]:
        """Those that say something, and those that do not."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @property
    def has_commas(self) -> bool:
        """Whether columns, where there are any, are parted by commas: its first line has no tab."""
        return self.suffix != ".tsv" and "\t" not in self.text.lstrip("\r\n").partition("\n")[0]

    def check_not_empty(self) -> None:
        """Raises ExplorerError."""
        if not self.text.strip():
            raise ExplorerError(f"{self.name} is empty: there is nothing to learn from it.")


def read_source(path: Path) -> Source:
    """Raises ExplorerError: no file, or one that is too large or no text."""
    return Source(read_text(path, "a text, or rows of columns"), path.name)


def source_of(asked: AskedTuning) -> Source:
    """Raises ExplorerError as `read_source`."""
    return read_source(Path(asked.file)) if asked.file else Source(asked.text)


def data_in(source: Source) -> str | Pairs:
    """The text, or its rows of two columns: of a .csv or .tsv file, or where every line has a tab.

    Raises:
        ExplorerError: nothing, or a row that has no two columns.
    """
    source.check_not_empty()
    if not _is_table(source):
        return "\n".join(source.lines)
    by_commas = source.suffix == ".csv" and source.has_commas
    rows = []
    for number, row in rows_in(source, by_commas):
        if len(row) != 2:
            raise ExplorerError(misshapen(source, number, row, "an input and an output", by_commas))
        rows.append((row[0], row[1]))
    if rows and {column.lower() for column in rows[0]} in _HEADERS:
        del rows[0]
    return tuple(rows)


def _is_table(source: Source) -> bool:
    lines = [line for line in source.lines if line.strip()]
    if source.suffix in (".csv", ".tsv") or all(line.count("\t") == 1 for line in lines):
        return True
    tabs = sum(line.strip().count("\t") == 1 for line in lines)
    return len(lines) >= _LEAST_LINES and tabs >= _TABLE_SHARE * len(lines)


def rows_in(source: Source, by_commas: bool) -> Iterator[tuple[int, Sequence[str]]]:
    """Each row that says something with the number of its line, its columns without the blanks around them.

    Raises:
        ExplorerError: no CSV, a column that is empty or too long, or more rows than are learned from.
    """
    rows = _by_commas(source) if by_commas else _by_tabs(source)
    for count, (number, row) in enumerate(rows, 1):
        if count > MOST_ROWS + 1:  # one may be a heading
            raise ExplorerError(f"{source.name} has more than {MOST_ROWS:,} rows, the most that are learned from.")
        columns = [column.strip() for column in row]
        if not all(columns):
            raise ExplorerError(f"{source.name}, line {number:,}, has an empty column. Fill it, or delete the row.")
        longest = max(map(len, columns))
        if longest > MOST_LETTERS:
            raise ExplorerError(
                f"{source.name}, line {number:,}, has a column of {longest:,} characters, and {MOST_LETTERS:,} are "
                "taken at most. Shorten it."
            )
        yield number, columns


def misshapen(source: Source, number: int, row: Sequence[str], what: str, by_commas: bool) -> str:
    """What is said of a row that is not `what` it should be."""
    columns, between = f"{len(row)} column{'s' if len(row) != 1 else ''}", "a comma" if by_commas else "a tab"
    quotes = " A column with commas in it stands in quotes." if by_commas and len(row) > 2 else ""
    return f"{source.name}, line {number:,}, has {columns}: each row is {what}, with {between} between them.{quotes}"


def quoted(text: str) -> str:
    """`text` for a sentence that a terminal may show: short, and without signs that it would obey."""
    shown = "".join(c if c.isprintable() else " " for c in text[:_MOST_QUOTED])
    return shown if len(text) <= _MOST_QUOTED else f"{shown[:-1]}…"


def _by_tabs(source: Source) -> Iterator[tuple[int, list[str]]]:
    return ((i, line.split("\t")) for i, line in enumerate(source.lines, 1) if line.strip())


def _by_commas(source: Source) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO("\n".join(source.lines)), strict=True)
    begins = 1  # a row in quotes may take several lines
    try:
        for row in reader:
            if any(column.strip() for column in row):
                yield begins, row
            begins = reader.line_num + 1
    except csv.Error as cause:
        raise ExplorerError(f"{source.name}, line {begins:,}, is no CSV ({cause}). Check its quotes.") from cause
