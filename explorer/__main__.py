"""`python -m explorer`."""

from __future__ import annotations

import sys
from pathlib import Path


def _drop_current_folder() -> None:
    """Take the current folder off the path, unless it is our own source tree.

    `python -m` puts it first; in a folder that has a `models` of its own (every machine-learning project) ours would
    be shadowed.
    """
    here, ours = Path.cwd().resolve(), Path(__file__).resolve().parent.parent
    if here != ours:
        sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]


if __name__ == "__main__":
    _drop_current_folder()
    from explorer.app import main

    sys.exit(main())
