"""Several texts, one a line: from a file, or from what was copied."""

from __future__ import annotations

from pathlib import Path

from attention_models.files.regular_files import open_regular
from attention_models.protocol.batch import MOST_TEXTS
from attention_models.protocol.errors import ExplorerError

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
