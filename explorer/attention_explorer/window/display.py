"""Why there is no window, or none that can be read: said in a sentence, where Qt would abort or draw empty boxes."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, QMessageLogContext, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QFontInfo
from PySide6.QtWidgets import QApplication

from attention_explorer import console
from attention_explorer.missing_libraries import missing_library
from attention_models.protocol.errors import DisplayError

log = logging.getLogger(__name__)

WITHOUT_WINDOW = "--png, --weights and --decode work without a window."

NO_FONT = "No font is installed on this computer, so no text can be shown. Install one, as fonts-dejavu-core on Debian."

_OFFSCREEN_NOISE = "This plugin does not support"  # (raise|propagateSizeHints)(), of every window
_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
}


@contextmanager
def qt_messages_logged() -> Iterator[None]:
    """What Qt has to say goes to the log, and to standard error if there is one.

    What makes Qt abort, above all that no window can be shown, is said in a sentence and ends the process with exit
    code 1.
    """
    warnings: list[str] = []  # kept until the application is there: they tell why it cannot be

    def on_message(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
        begins = QApplication.startingUp()
        if kind == QtMsgType.QtFatalMsg:
            sentence = why_no_window(os.environ, "\n".join([*warnings, message])) if begins else message
            if logging.root.handlers:
                log.critical("Qt: %s", sentence)
            console.complain(sentence)
            os._exit(1)
        if message.startswith(_OFFSCREEN_NOISE):
            return
        if begins:
            warnings.append(message)
            return
        if logging.root.handlers:
            log.log(_LEVELS.get(kind, logging.WARNING), "Qt: %s", message)
        console.complain(message)

    before = qInstallMessageHandler(on_message)
    try:
        yield
    finally:
        qInstallMessageHandler(before)


def why_no_window(environment: os._Environ[str] | dict[str, str], said: str) -> str:
    """A sentence on why Qt could not begin. `said` is what it wrote before it gave up."""
    platform = environment.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if platform and f'Could not find the Qt platform plugin "{platform}"' in said:
        return f"QT_QPA_PLATFORM asks Qt for “{platform}”, which it does not have. Leave it out, or say xcb or wayland."
    if sys.platform.startswith("linux"):
        names = [name for name in ("DISPLAY", "WAYLAND_DISPLAY") if environment.get(name)]
        missing = missing_library(_loading("libqwayland.so" if names == ["WAYLAND_DISPLAY"] else "libqxcb.so"))
        if missing:
            return f"No window can be shown. {missing} {WITHOUT_WINDOW}"
        if not names and platform in ("", "xcb", "wayland"):
            return f"There is no display to show a window on: DISPLAY and WAYLAND_DISPLAY are not set. {WITHOUT_WINDOW}"
        if names:
            given = " and ".join(f"{name}={environment[name]}" for name in names)
            return f"The display does not answer ({given}). {WITHOUT_WINDOW}"
    return f"No window can be shown: {said.strip()}"


def check_display() -> None:
    """Try in a process of its own whether Qt can begin here: where it cannot, it aborts the process it is in.

    Raises DisplayError with the sentence that the command line gives.
    """
    begin = "from PySide6.QtGui import QGuiApplication; QGuiApplication([])"
    tried = subprocess.run(
        [sys.executable, "-c", begin], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    if tried.returncode != 0:
        raise DisplayError(missing_library(tried.stderr) or why_no_window(os.environ, tried.stderr))


def _loading(plugin: str) -> str:
    """What the loader says when it loads one of Qt's platform plugins; "" where that succeeds."""
    path = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)) / "platforms" / plugin
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        return str(error)
    return ""


def why_unreadable() -> str:
    """A sentence where there is no font to write with; "" where there is."""
    return "" if QFontInfo(QApplication.font()).family() else NO_FONT
