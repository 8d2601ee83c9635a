"""What is dropped on a window or a dialog: a checkpoint, or a picture."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData

from models.files.sample_pictures import SUFFIXES


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
    urls = mime.urls()
    path = Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
    return str(path) if path is not None and path.suffix.lower() in SUFFIXES and path.is_file() else None
