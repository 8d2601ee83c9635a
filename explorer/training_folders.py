"""Where a window keeps a model while it learns: a folder beside the settings, named by the process that it belongs to.

In it lies the model's own, named by what it learns: the window shows that name. It goes when another training takes
its place, or at close; one whose process was killed goes at the next start.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from explorer.owners import is_left_behind, own_mark
from explorer.settings import folder

_TRAINING = "-[0-9]{1,6}"


def trainings_folder() -> Path:
    return folder() / "training"


def new_folder(name: str) -> Path:
    """An empty folder of this process, for a model of that name. Raises OSError where the disk refuses."""
    trainings_folder().mkdir(parents=True, exist_ok=True)
    for number in range(1, 1_000_000):
        path = trainings_folder() / f"{own_mark()}-{number}"
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            (path / name).mkdir()
            return path / name
    raise AssertionError("no process has a million trainings")


def remove(path: Path) -> None:
    """Delete what `new_folder` gave, with all that is in it. What cannot be deleted is left behind."""
    shutil.rmtree(path.parent, ignore_errors=True)


def remove_left_behind() -> None:
    """Delete the folders of this computer's ended processes."""
    try:
        entries = list(trainings_folder().iterdir())
    except OSError:
        return
    for path in entries:
        if is_left_behind(path.name, _TRAINING):
            shutil.rmtree(path, ignore_errors=True)


def is_private(reference: str) -> bool:
    """Whether a checkpoint's name is that of a folder that goes with the window."""
    return Path(reference).parent.parent == trainings_folder()
