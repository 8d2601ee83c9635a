"""What is dropped on a window or a dialog: a checkpoint, a picture, a file of texts, or a session."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData

from attention_explorer.session.lesson_files import is_lesson
from attention_models.files.safe_files import open_regular
from attention_models.files.sample_pictures import SUFFIXES
from attention_models.files.text_stream import SUFFIXES as TEXTS


def checkpoint_in(mime: QMimeData) -> str | None:
    """The folder or GGUF file that is being dropped; for other files, the one folder that all of them lie in."""
    found = set()
    for url in mime.urls():
        if not url.isLocalFile():
            return None
        path = Path(url.toLocalFile())
        found.add(str(path if path.is_dir() or path.suffix.lower() == ".gguf" else path.parent))
    return found.pop() if len(found) == 1 else None


def picture_in(mime: QMimeData) -> str | None:
    """The one picture that is being dropped."""
    path = _one_file_in(mime)
    return str(path) if path is not None and path.suffix.lower() in SUFFIXES else None


def texts_in(mime: QMimeData) -> str | None:
    """The one file of texts that is being dropped, by its name."""
    path = _one_file_in(mime)
    return str(path) if path is not None and path.suffix.lower() in TEXTS else None


def corpus_in(mime: QMimeData) -> str | None:
    """The one file of texts that is being dropped, and is no part of a checkpoint, as vocab.txt is."""
    path = texts_in(mime)
    return path if path is not None and not (Path(path).parent / "config.json").exists() else None


def session_in(mime: QMimeData) -> str | None:
    """The one session file that is being dropped."""
    path = _one_file_in(mime)
    if path is None:
        return None
    return str(path) if path.suffix.lower() == ".attn" or _is_older_session(path) else None


def lesson_in(mime: QMimeData) -> str | None:
    """The one lesson that is being dropped."""
    path = _one_file_in(mime)
    return str(path) if path is not None and is_lesson(path.name) else None


def _one_file_in(mime: QMimeData) -> Path | None:
    """What is being dropped, where that is one file."""
    urls = mime.urls()
    path = Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
    return path if path is not None and path.is_file() else None


def _is_older_session(path: Path) -> bool:
    """Whether a JSON file is a session of an earlier version, and not of a checkpoint."""
    if path.suffix.lower() != ".json":
        return False
    try:
        with open_regular(path) as stream:
            return b'"attention-explorer"' in stream.read(1024)
    except OSError:
        return False
