"""Faults of the program that nobody caught: they reach the log, and a notice says that there was one."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from PySide6.QtCore import QObject, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from attention_explorer.recovery import crashes


def tell_of_crashes(window: QWidget) -> QMessageBox | None:
    """Show the dialog where there is something to tell; it holds nothing up."""
    fallen = crashes.left_behind()
    if not fallen:
        return None
    newest, *_ = [crashes.told(path) for path in fallen]
    return _dialog(window, newest)


def _dialog(window: QWidget, path: Path) -> QMessageBox:
    box = QMessageBox(window)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle("The program fell")
    box.setText("Attention Explorer ended unexpectedly the last time.")
    box.setInformativeText(
        f"What it was at stands in {path}. To report it, send that file and what attention-explorer --diagnose prints."
    )
    box.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    show = box.addButton("Show the folder", QMessageBox.ButtonRole.ActionRole)
    box.addButton(QMessageBox.StandardButton.Close)
    show.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent))))
    box.setModal(False)
    box.show()
    return box


log = logging.getLogger(__name__)

_TOLD_AGAIN = (10, 100, 1000, 10_000)


class Faults(QObject):
    """Listens to what Python does with an exception that left a slot, a thread or a destructor.

    Without it one would end on standard error, which a program without a console does not have.
    """

    found = Signal(str)
    """A sentence for the person, in the thread of this object."""

    _found = Signal(str)  # emitted in any thread

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._is_telling = False
        self._times: Counter[object] = Counter()
        self._found.connect(self._tell, Qt.ConnectionType.QueuedConnection)

    @contextmanager
    def caught(self) -> Iterator[None]:
        before = sys.excepthook, threading.excepthook, sys.unraisablehook
        sys.excepthook, threading.excepthook, sys.unraisablehook = self._in_slot, self._in_thread, self._unraisable
        try:
            yield
        finally:
            sys.excepthook, threading.excepthook, sys.unraisablehook = before

    def _in_slot(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._log("in the window", kind, error, trace)
        sys.__excepthook__(kind, error, trace)
        if not self._is_telling:  # else telling of one would make the next, without end
            self._found.emit(self._sentence(kind))

    def _in_thread(self, args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread is not None else "of the system"
        self._log(f"in the thread {name}", args.exc_type, args.exc_value, args.exc_traceback)
        if args.exc_type is not SystemExit:
            self._found.emit(self._sentence(args.exc_type))

    def _unraisable(self, it: Any) -> None:
        """Nothing came of it but a line in the log: what a destructor does concerns nobody's work."""
        where = f"{it.err_msg or 'in a destructor'} ({it.object!r})"
        self._log(where, it.exc_type, it.exc_value, it.exc_traceback)

    def _log(
        self, where: str, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        origin = traceback.extract_tb(trace)[-1:]  # what is raised in every painting would fill the log
        fault = (kind, *((frame.filename, frame.lineno) for frame in origin))
        self._times[fault] += 1
        times = self._times[fault]
        if times == 1:
            log.error("a fault %s", where, exc_info=(kind, error or kind(), trace))
        elif times in _TOLD_AGAIN:
            log.error("%s %s for the %dth time", kind.__name__, where, times)

    def _sentence(self, kind: type[BaseException]) -> str:
        from attention_explorer.recovery.log import log_path  # the first paint need not wait for it

        return (
            f"Something went wrong in the program ({kind.__name__}). What you did last may have had no effect; "
            f"details are in the log, {log_path()}."
        )

    def _tell(self, sentence: str) -> None:
        self._is_telling = True
        try:
            self.found.emit(sentence)
        finally:
            self._is_telling = False
