"""What `--diagnose` says of Qt: its platform, screens and fonts. Begins an application where there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from PySide6.QtCore import QLocale, qVersion
from PySide6.QtGui import QFontDatabase, QFontInfo, QGuiApplication
from PySide6.QtWidgets import QApplication

from attention_explorer.window.display import NO_FONT, qt_messages_logged


def qt_facts() -> Iterator[str]:
    with qt_messages_logged():
        app = QApplication.instance() or QApplication(sys.argv[:1])
        yield f"Qt {qVersion()}, platform {QGuiApplication.platformName()}, style {QApplication.style().objectName()}"
        for screen in QGuiApplication.screens():
            size = screen.size()
            scale, dots = screen.devicePixelRatio(), screen.logicalDotsPerInch()
            yield f"screen {size.width()} x {size.height()}, scale {scale:g}, {dots:.0f} dots an inch"
        family = QFontInfo(QApplication.font()).family()
        families = len(QFontDatabase.families())
        yield f"font {family}, one of {families:,}" if family else NO_FONT
        yield f"language {QLocale.system().name()}"
        del app
