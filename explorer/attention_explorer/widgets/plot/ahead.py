"""Imports what draws plots before the first one is shown, so that the window does not stand still for it then."""

from __future__ import annotations

import importlib
import sys
import threading

_CANVAS = "attention_explorer.widgets.plot.canvas"


def import_ahead() -> None:
    """In a thread, as soon as it is known that a plot may follow. Nothing where it was done.

    It takes a tenth of a second, on a busy computer a whole one.
    """
    if _CANVAS not in sys.modules:
        threading.Thread(target=importlib.import_module, args=(_CANVAS,), name="import of plots", daemon=True).start()
