"""The command: opens the window, or works without one (`--png`, `--weights`, `--decode`)."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from logging.handlers import RotatingFileHandler

from explorer.arguments import parse
from explorer.first_state import first_state
from explorer.session.state import Notice
from models.text.template_limits import ARGUMENT, serve


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0, or 1 after a sentence on standard error."""
    given = sys.argv[1:] if argv is None else list(argv)
    if given == [ARGUMENT]:  # the program has started itself
        serve()
        return 0
    try:
        args = parse(given)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if args.png or args.weights or args.decode is not None:
        from explorer.headless import run_without_window

        return run_without_window(args)
    return _run_window(args)


def _run_window(args: argparse.Namespace) -> int:
    if sys.platform == "win32":
        # torch's libraries fail to load after Qt's (WinError 1114), so there the window waits for it
        import_module("torch")
    from PySide6.QtWidgets import QApplication

    from explorer import settings as remembered
    from explorer.window.window import MainWindow

    _log_to_file()
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Attention Explorer")
    app.setDesktopFileName("attention-explorer")
    settings, sentence = remembered.load()
    notice = Notice("warning", sentence) if sentence else None
    window = MainWindow(first_state(args, settings.view, notice), settings, theme_now=args.theme)
    window.show()
    window.start()
    code = app.exec()
    if not window.stopped:
        logging.shutdown()
        os._exit(code)  # the interpreter's end aborts the process while a thread is inside torch
    return code


class Log(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk: the window works without a log, and says nothing of it on standard error."""


def _log_to_file() -> None:
    """Keep the last two logs. A windowed build has no standard error to write to."""
    from explorer.settings import folder

    handlers: list[logging.Handler] = []
    try:
        folder().mkdir(parents=True, exist_ok=True)
        handlers.append(Log(folder() / "log.txt", maxBytes=1 << 20, backupCount=1, encoding="utf-8"))
    except OSError:
        pass  # a read-only home: the window works without a log
    if sys.stderr is not None and os.environ.get("ATTENTION_EXPLORER_DEBUG"):
        handlers.append(logging.StreamHandler())
    logging.basicConfig(level=logging.INFO, handlers=handlers or [logging.NullHandler()])
