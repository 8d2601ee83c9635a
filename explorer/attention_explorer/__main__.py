"""`python -m attention_explorer`."""

from __future__ import annotations

import os
import sys


def _drop_current_folder() -> None:
    """Take the current folder off the path, where `python -m` puts it first.

    A folder called `gguf` or `peft` there, full of files, would pass for the package of that name. Both packages of
    ours are imported by now, and find their modules wherever that was.
    """
    here = os.path.realpath(os.getcwd())
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != here]


if __name__ == "__main__":
    _drop_current_folder()
    from attention_explorer.app import main

    sys.exit(main())
