"""`python -m attention_explorer`."""

from __future__ import annotations

import os
import sys


def _drop_current_folder() -> None:
    """Take the current folder off the path, where `python -m` puts it first.

    In a folder that has a `models` of its own (every machine-learning project) ours would be shadowed, and a folder
    called `gguf` or `peft`, full of files, would pass for the package of that name.
    """
    here, ours = os.path.realpath(os.getcwd()), os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    if here == ours:
        import attention_models as models  # noqa: F401  (in a source tree it is found by that entry alone)
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != here]


if __name__ == "__main__":
    _drop_current_folder()
    from attention_explorer.app import main

    sys.exit(main())
