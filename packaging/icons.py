"""The program's icon in the forms that platforms want, drawn from resources/icons/attention-explorer.svg."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

from contents import ROOT

SIZES = (16, 24, 32, 48, 64, 128, 256, 512)
DRAWN = ROOT / "resources" / "icons" / "attention-explorer.svg"


def make(folder: Path) -> None:
    """Write attention-explorer-<size>.png, .ico and .icns."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PIL import Image
    from PySide6.QtCore import QBuffer, QIODevice, QSize
    from PySide6.QtGui import QGuiApplication, QImageReader

    app = QGuiApplication.instance() or QGuiApplication([])
    pictures = []
    for size in SIZES:
        reader = QImageReader(str(DRAWN))
        reader.setScaledSize(QSize(size, size))
        drawn = reader.read()
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        if drawn.isNull() or not drawn.save(buffer, "PNG"):
            raise OSError(f"{DRAWN} cannot be drawn: {reader.errorString()}")
        content = bytes(buffer.data().data())
        (folder / f"attention-explorer-{size}.png").write_bytes(content)
        pictures.append(Image.open(BytesIO(content)))
    pictures[-2].save(folder / "attention-explorer.ico", sizes=[(s, s) for s in SIZES if s <= 256])
    pictures[-1].save(folder / "attention-explorer.icns")
    del app
