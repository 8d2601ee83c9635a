"""The command: opens the window, or works without one (`--png`, `--weights`, `--save`, `--decode`).

It imports little at its top, so that Ctrl+C finds `main` running.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own would take as long to import as all else here

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from attention_explorer.window.faults import Faults
    from attention_explorer.window.window import MainWindow


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0, or 1 after a sentence on standard error.

    A signal closes the window as a person would, with exit code 0; a command that one breaks off ends by that signal
    (`console.run`).
    """
    try:
        from attention_explorer import console
    except KeyboardInterrupt:
        return 130
    return console.run(lambda: _run(sys.argv[1:] if argv is None else list(argv)))


def _run(given: list[str]) -> int:
    from attention_explorer import console
    from attention_explorer.missing_libraries import missing_library

    try:
        return _do(given)
    except ImportError as error:
        sentence = missing_library(str(error))
        if not sentence:
            raise
        console.complain(sentence)
        return 1


def _do(given: list[str]) -> int:
    from attention_explorer import console
    from attention_explorer.cli.arguments import parse
    from attention_models.files.helper_work import TRY_CHECKPOINTS
    from attention_models.files.own_process import end_with_input
    from attention_models.protocol.experiment_messages import EXPERIMENT_HERE
    from attention_models.protocol.training_messages import TRAIN_HERE
    from attention_models.text.template_limits import ARGUMENT, serve

    if given in ([ARGUMENT], [TRY_CHECKPOINTS], [TRAIN_HERE], [EXPERIMENT_HERE]):  # the program has started itself
        end_with_input()
    if given == [ARGUMENT]:
        serve()
        return 0
    if given == [TRY_CHECKPOINTS]:
        from attention_models.opening.trial_process import serve as try_checkpoints  # which needs torch

        try_checkpoints()
        return 0
    if given == [TRAIN_HERE]:
        from attention_models.training.training_process import serve as train_here

        train_here()
        return 0
    if given == [EXPERIMENT_HERE]:
        from attention_models.training.experiment_process import serve as run_experiment_here

        run_experiment_here()
        return 0
    try:
        args = parse(given)
    except ValueError as error:
        console.complain(str(error))
        return 1
    if args.diagnose:
        from attention_explorer.cli.diagnose import diagnose

        return diagnose()
    if args.self_test is not None:
        return _test_itself(args.self_test)
    if args.without_window:
        from attention_explorer.cli.headless import run_without_window

        return run_without_window(args)
    return _run_window(args)


def _torch_before_qt() -> None:
    """Windows: torch's libraries fail to load after Qt's (WinError 1114), so there the window waits for it."""
    if sys.platform == "win32":
        from importlib import import_module

        import_module("torch")


def _test_itself(more: str) -> int:
    _torch_before_qt()
    from attention_explorer.cli.self_test import self_test
    from attention_explorer.window.display import qt_messages_logged

    with qt_messages_logged():
        return self_test(more)


def _run_window(args: argparse.Namespace) -> int:
    _torch_before_qt()
    from attention_explorer.window.display import qt_messages_logged

    with qt_messages_logged():
        return _run_loop(args)


def _run_loop(args: argparse.Namespace) -> int:
    import gc
    import logging
    import os

    from PySide6.QtGui import QIcon
    from PySide6.QtWidgets import QApplication

    from attention_explorer import console
    from attention_explorer import settings as remembered
    from attention_explorer.paths import resource
    from attention_explorer.recovery import crashes
    from attention_explorer.window.display import why_unreadable
    from attention_explorer.window.ending import closing_on_signals
    from attention_explorer.window.faults import Faults
    from attention_explorer.window.window import MainWindow

    gc.disable()  # what is made until the window has its contents stays
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Attention Explorer")
    app.setDesktopFileName("attention-explorer")
    app.setWindowIcon(QIcon(str(resource("icons/attention-explorer.svg"))))
    if unreadable := why_unreadable():
        console.complain(unreadable)
    settings, sentence = remembered.load()
    window = MainWindow(None, settings, theme_now=args.theme)
    faults = Faults(window)
    window.once_painted(lambda: _fill(window, faults, args, sentence))
    window.show()
    with crashes.watched(), faults.caught(), closing_on_signals(window):
        code = app.exec()
    if not window.stopped:
        logging.shutdown()
        os._exit(code)  # the interpreter's end aborts the process while a thread is inside torch
    return code


def _fill(window: MainWindow, faults: Faults, args: argparse.Namespace, sentence: str) -> None:
    """Put into the window on screen what the options ask for. `sentence` says what is wrong with the settings."""
    import gc
    import logging
    from pathlib import Path

    from PySide6.QtWidgets import QApplication

    from attention_explorer.cli.first_state import first_state
    from attention_explorer.recovery.log import log_to_file
    from attention_explorer.session.intents import Show
    from attention_explorer.session.kept import is_short_text
    from attention_explorer.session.state import Notice
    from attention_explorer.window.faults import tell_of_crashes
    from attention_models.opening.trial_process import start_for

    log_to_file()
    if sentence:
        logging.getLogger(__name__).warning(sentence)
    notice = Notice("warning", sentence) if sentence else None
    try:
        window.fill(first_state(args, window.settings.view, notice))
    except Exception:
        QApplication.exit(1)  # nobody is left with an empty window
        raise
    faults.found.connect(lambda fault: window.session.dispatch(Show(Notice("error", fault))))
    gc.freeze()  # it stays off: the GUI thread alone looks for garbage (`attention_explorer.compute.bridge`)
    if is_short_text(args.session or ""):
        window.first_text = args.session
    elif args.session is not None:
        window.first_session = Path(args.session).expanduser()
    start_for(window.session.state.document.checkpoint)
    window.start()
    tell_of_crashes(window)
