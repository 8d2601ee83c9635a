"""The command: opens the window, or works without one (`--png`, `--weights`, `--decode`)."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from explorer.arguments import parse
from models.text.template_limits import ARGUMENT, serve

if TYPE_CHECKING:
    from explorer.window.window import MainWindow


log = logging.getLogger(__name__)


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

    gc.disable()  # what is made until the window has its contents stays
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Attention Explorer")
    app.setDesktopFileName("attention-explorer")
    settings, sentence = remembered.load()
    window = MainWindow(None, settings, theme_now=args.theme)
    window.once_painted(lambda: _fill(window, args, sentence))
    window.show()
    code = app.exec()
    if not window.stopped:
        logging.shutdown()
        os._exit(code)  # the interpreter's end aborts the process while a thread is inside torch
    return code


def _fill(window: MainWindow, args: argparse.Namespace, sentence: str) -> None:
    """Put into the window on screen what the options ask for. `sentence` says what is wrong with the settings."""
    from PySide6.QtWidgets import QApplication

    from explorer.first_state import first_state
    from explorer.log import log_to_file
    from explorer.session.state import Notice

    log_to_file()
    if sentence:
        log.warning(sentence)
    notice = Notice("warning", sentence) if sentence else None
    try:
        window.fill(first_state(args, window.settings.view, notice))
    except Exception:
        QApplication.exit(1)  # nobody is left with an empty window
        raise
    gc.freeze()
    gc.enable()
    window.start()
