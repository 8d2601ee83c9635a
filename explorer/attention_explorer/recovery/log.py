"""The log: a file beside the settings."""

from __future__ import annotations

import logging
import os
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from attention_explorer.settings import folder, make_folder
from attention_models.files.safe_files import keep_private, private_opener, require_regular


class Log(RotatingFileHandler):
    """Read by its owner alone: it may quote what a person typed."""

    def _open(self) -> TextIOWrapper:
        for path in (self.baseFilename, f"{self.baseFilename}.1"):
            keep_private(Path(path))
        path, code = self.baseFilename, self.encoding
        return open(path, "a", encoding=code, errors=self.errors, opener=private_opener)

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk: the window works without a log, and says nothing of it on standard error."""


def log_path() -> Path:
    """Where the log lies; the one before it has the ending .1 besides."""
    return folder() / "log.txt"


def log_to_file() -> None:
    """Keep the last two logs."""
    if not logging.getLogger().handlers:  # else the file would be opened for nobody
        logging.basicConfig(level=logging.INFO, handlers=handlers())


def handlers() -> list[logging.Handler]:
    """What the log is written to. A windowed build has no standard error."""
    found: list[logging.Handler] = []
    try:
        make_folder()
        path = log_path()
        if path.exists():
            require_regular(path.stat(), path)  # to open a pipe waits until somebody reads from it
        found.append(Log(path, maxBytes=1 << 20, backupCount=1, encoding="utf-8"))
    except OSError:
        pass  # a read-only home, or no file: the window works without a log
    if sys.stderr is not None and os.environ.get("ATTENTION_EXPLORER_DEBUG"):
        found.append(logging.StreamHandler())
    return found or [logging.NullHandler()]
