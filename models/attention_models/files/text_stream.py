"""Many texts from a file, one after the other: lines, a table, or JSON lines. No torch.

Nothing but the line that is being read is held, whatever the size of the file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from attention_models.files.safe_files import open_regular
from attention_models.protocol.batch import MOST_TEXTS
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import ExplorerError, InputError

# Several texts, one a line: from a file, or from what was copied.


MOST_BYTES = 8 << 20


def read_lines(path: str | Path) -> tuple[str, ...]:
    """The lines of a UTF-8 file that say something.

    Raises:
        ExplorerError: no such file, one that is no text, or one with no line or too many.
    """
    return lines_of(read_text(path, "one text a line"), Path(path).name)


def read_text(path: str | Path, form: str) -> str:
    """The text of a UTF-8 file. `form` is what the sentences ask for: "one text a line".

    Raises:
        ExplorerError: no such file, one that is too large, or one that is no text.
    """
    path = Path(path)
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as cause:
        raise ExplorerError(f"{path.name} could not be read ({cause.strerror}).") from cause
    if len(content) > MOST_BYTES:
        raise ExplorerError(f"{path.name} is larger than {MOST_BYTES >> 20} MB. Give a smaller one.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise ExplorerError(
            f"{path.name} is not text in UTF-8 (byte {cause.start:,}). Save it as UTF-8, {form}."
        ) from cause
    if "\0" in text:
        raise ExplorerError(f"{path.name} is no text: it holds zero bytes. Give a file of text, {form}.")
    return text


def lines_of(text: str, what: str) -> tuple[str, ...]:
    """The lines of `text` that say something, without white space around them. `what` is what an error calls it.

    Raises:
        ExplorerError: there is none, or more than are run at once.
    """
    lines = tuple(line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.strip())
    if not lines:
        raise ExplorerError(f"{what} has no line that says anything. Give one text a line.")
    if len(lines) > MOST_TEXTS:
        raise ExplorerError(
            f"{what} has {len(lines):,} lines with text, and {MOST_TEXTS} texts are run at once at most. Give fewer."
        )
    return lines


# What is said of a file of texts that cannot be read, or is not UTF-8.


def decoded(content: bytes, name: str) -> str:
    """The text of a file called `name`, without a byte order mark. Raises InputError where it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise not_utf8(name, content.count(b"\n", 0, cause.start) + 1) from cause


def not_utf8(name: str, line: int) -> InputError:
    return InputError(f"{name} is not UTF-8 text: line {line:,} has other bytes. Save it as UTF-8.")


def unread(name: str, cause: OSError) -> InputError:
    said = (cause.strerror or type(cause).__name__).lower()
    return InputError(f"{name} cannot be read: {said}. Choose another file.")


SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson")
"""Of files of texts; a file of any other name is read as lines."""

CONLLU = (".conllu", ".conll")
"""Of files of sentences with their dependency edges, which `attention_models.roles.probe` reads."""

LONGEST_LINE = 100_000
"""Characters; a line that is longer is no text that a model reads at once."""

_FIRST = ("text", "first", "sentence", "source", "sentence1", "premise", "question")
_SECOND = ("second", "pair", "target", "sentence2", "hypothesis", "answer")


@dataclass(frozen=True, slots=True)
class TextLine:
    """A text, or a pair of texts, and the line of the file on which it ends, counted from 1."""

    number: int
    text: str
    second: str | None = None

    @property
    def prompt(self) -> str | Pair:
        return self.text if self.second is None else Pair(self.text, self.second)


class TextStream:
    """The texts of a file, in its order; blank lines are passed over.

    .csv and .tsv: with a header the columns “text” and, for pairs, “second” (other usual names too); without one the
    first column and the second. .jsonl: a string, a list of two, or an object with “text” and maybe “second”, a line.
    Anything else: a text a line.

    Attributes:
        name: the file's name, for sentences.
        size: of the file, in bytes.
        share: how much of the file is read, 0 to 1.
    """

    def __init__(self, path: str | Path) -> None:
        """Raises InputError where there is no such file, or it cannot be read."""
        self.path = Path(path).expanduser()
        self.name = self.path.name
        self.share = 0.0
        try:
            with open_regular(self.path) as file:
                self.size = file.seek(0, 2)
        except OSError as cause:
            raise unread(self.name, cause) from cause

    def __iter__(self) -> Iterator[TextLine]:
        """Raises InputError: the line that cannot be read, by its number; or a file in which there is none."""
        suffix, lines = self.path.suffix.lower(), self.lines()
        if suffix in (".csv", ".tsv"):
            texts = self._of_table(lines, "," if suffix == ".csv" else "\t")
        elif suffix in (".jsonl", ".ndjson"):
            texts = self._of_json(lines)
        else:
            texts = (TextLine(number, line.strip()) for number, line in lines)
        found = False
        for text in texts:
            if text.text.strip():
                found = True
                yield text
        if not found:
            raise InputError(f"{self.name} has no line that says anything. Give one text a line.")
        self.share = 1.0

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line, without its end, and its number. Raises InputError: the line that cannot be read."""
        self.share = 0.0
        try:
            with open_regular(self.path) as file:
                yield from self._lines(file)
        except OSError as cause:
            raise unread(self.name, cause) from cause

    def _lines(self, file: IO[bytes]) -> Iterator[tuple[int, str]]:
        number, read = 0, 0
        while raw := file.readline(4 * LONGEST_LINE + 8):
            number += 1
            read += len(raw)
            self.share = min(1.0, read / max(1, self.size))
            if b"\0" in raw:
                raise InputError(f"{self.name} is no text: line {number:,} holds zero bytes. Give a file of texts.")
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as cause:
                if len(raw) > 4 * LONGEST_LINE:
                    raise self._too_long(number) from cause
                raise not_utf8(self.name, number) from cause
            if len(line) > LONGEST_LINE:
                raise self._too_long(number)
            yield number, line

    def _of_table(self, lines: Iterable[tuple[int, str]], delimiter: str) -> Iterator[TextLine]:
        number = 0

        def content() -> Iterator[str]:
            nonlocal number
            for at, line in lines:
                number = at
                yield line + "\n"

        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
        columns: tuple[int, int] | None = None
        try:
            for row in csv.reader(content(), delimiter=delimiter, quoting=quoting, strict=delimiter == ","):
                if columns is None:
                    named = [cell.strip().lower() for cell in row]
                    first = next((named.index(name) for name in _FIRST if name in named), None)
                    columns = (0, 1) if first is None else (first, _second_column(named, first))
                    if first is not None:
                        continue
                cells = [row[i].strip() if 0 <= i < len(row) else "" for i in columns]
                yield TextLine(number, cells[0], cells[1] or None)
        except csv.Error as cause:
            raise InputError(f"{self.name}: line {number:,} is no row of a table ({cause}). Correct it.") from cause

    def _of_json(self, lines: Iterable[tuple[int, str]]) -> Iterator[TextLine]:
        for number, line in lines:
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as cause:
                raise InputError(f"{self.name}: line {number:,} is no JSON. Write one value a line.") from cause
            yield self._of_value(number, value)

    def _of_value(self, number: int, value: Any) -> TextLine:
        if isinstance(value, dict):
            second = next((value[name] for name in _SECOND if name in value), None)
            value = [next((value[name] for name in _FIRST if name in value), None), second]
        if isinstance(value, str):
            value = [value]
        first, second = (*value, None, None)[:2] if isinstance(value, list) else (None, None)
        if not isinstance(first, str) or not isinstance(second, (str, type(None))):
            raise InputError(
                f"{self.name}: line {number:,} has no text. Write a string, or an object with “text” and, for a pair, "
                "“second”."
            )
        return TextLine(number, _whole(first), None if second is None else _whole(second))

    def _too_long(self, number: int) -> InputError:
        return InputError(
            f"{self.name}: line {number:,} is longer than {LONGEST_LINE:,} characters. Divide it into several texts."
        )


def _second_column(named: list[str], first: int) -> int:
    return next((named.index(name) for name in _SECOND if name in named and named.index(name) != first), -1)


def _whole(text: str) -> str:
    """Without halves of characters, which JSON can spell and no tokenizer reads."""
    return text.encode("utf-8", "replace").decode()
