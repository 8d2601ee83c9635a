"""Pictures of the window as files."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QPixmap

from attention_models.files.whole_files import not_written, write_whole

FORMAT = "PNG"


def save_picture(picture: QPixmap, path: Path) -> str:
    """Write a picture whole or not at all, in the format that the name ends in, else as PNG.

    Returns a sentence for the person where it could not be written, "" where it was.
    """
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not picture.save(buffer, path.suffix.removeprefix(".").upper() or FORMAT):
        return f"No picture can be written as “{path.suffix}”. Give {path.name} a name that ends in .png."
    try:
        write_whole(path, bytes(buffer.data().data()))
    except OSError as error:
        return not_written("The picture", path, error)
    return ""
