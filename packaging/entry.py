"""Where the frozen program starts: what has to be in place before anything else is imported."""

from __future__ import annotations

import multiprocessing
import os
import sys


def _without_console() -> None:
    """A program without a console has no standard streams, and libraries write to them all the same."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (open as long as the process)


def _libraries_of_others() -> None:
    """Programs that are started from here (a browser) are to find their own libraries, not those of the bundle."""
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
        before = os.environ.pop(f"{name}_ORIG", None)
        if before is not None:
            os.environ[name] = before
        else:
            os.environ.pop(name, None)


def _say_in_a_box(error: BaseException) -> None:
    """Windows only: why a program without a console did not start."""
    if sys.platform == "win32":
        import ctypes

        sentence = f"Attention Explorer could not start.\n\n{type(error).__name__}: {error}"
        ctypes.windll.user32.MessageBoxW(None, sentence, "Attention Explorer", 0x10)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    is_silent = sys.stderr is None
    _without_console()
    _libraries_of_others()
    try:
        from attention_explorer.app import main

        code = main()
    except Exception as error:
        if is_silent:
            _say_in_a_box(error)
        raise
    sys.exit(code)
