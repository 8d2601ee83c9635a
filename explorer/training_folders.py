"""Where a window keeps a model while it learns: a folder beside the settings, named by the process that it belongs to.

In it lies the model's own, named by what it learns: the window shows that name. It goes when another training takes
its place, or at close when the person has saved it. One that was not saved stays, and other windows can go on with it.
"""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import msgspec

from explorer.owners import is_left_behind, own_mark
from explorer.session.training import LeftTraining
from explorer.settings import folder
from models.files.regular_files import open_regular
from models.files.training_steps import snapshot_path, steps_in
from models.protocol.training_messages import MOST_BYTES, Asked, AskedTuning

MOST_LEFT = 3
"""Trainings that were not saved, of which the oldest go: each may take a quarter of a gigabyte."""
_TRAINING = "-[0-9]{1,6}"
_ASKED = "asked.json"
_numbers = itertools.count(1)


def trainings_folder() -> Path:
    return folder() / "training"


def new_folder(asked: Asked | AskedTuning) -> Path:
    """Where the model of that training is to lie: nothing is there before `make`, which may wait for the disk."""
    return _free() / asked.name


def make(path: Path, asked: Asked | AskedTuning) -> None:
    """Make what `new_folder` gave. Raises OSError where the disk refuses."""
    _make_private(path.parent)
    (path.parent / _ASKED).write_bytes(msgspec.json.encode(asked))
    path.mkdir()


def own_folder() -> Path:
    """An empty folder of this process. One of no training stays no longer than it.

    Raises:
        OSError: the disk refuses.
    """
    path = _free()
    _make_private(path)
    return path


def _make_private(path: Path) -> None:
    trainings_folder().mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700)


def _free() -> Path:
    """A name of this process that it has not given before. A process that fell may have had the same."""
    paths = (trainings_folder() / f"{own_mark()}-{number}" for number in _numbers)
    return next(path for path in paths if not os.path.lexists(path))


def take(left: LeftTraining) -> Path:
    """Make a training that was left behind one of this process: the folder where its model lies now.

    Raises:
        OSError: another window was faster, or the disk refuses.
    """
    there, path = Path(left.folder), own_folder()
    path.rmdir()
    there.parent.rename(path)
    return path / there.name


def remove(path: Path) -> None:
    """Delete what `new_folder` gave, with all that is in it. What cannot be deleted is left behind."""
    shutil.rmtree(path.parent, ignore_errors=True)


def left_behind() -> tuple[LeftTraining, ...]:
    """Trainings of this computer's ended processes, the newest first.

    Those that have learned nothing, and what is older than `MOST_LEFT`, are deleted.
    """
    found = []
    try:
        entries = list(trainings_folder().iterdir())
    except OSError:
        return ()
    for path in entries:
        if is_left_behind(path.name, _TRAINING):
            left = _left_in(path)
            if left is None:
                shutil.rmtree(path, ignore_errors=True)
            else:
                found.append(left)
    found.sort(key=lambda left: left.written, reverse=True)
    for old in found[MOST_LEFT:]:
        remove(Path(old.folder))
    return tuple(found[:MOST_LEFT])


def is_private(reference: str) -> bool:
    """Whether a checkpoint's name is that of a folder that goes with the window."""
    return Path(reference).parent.parent == trainings_folder()


def _left_in(path: Path) -> LeftTraining | None:
    """The training in a folder that was left behind; None where there is none to go on with."""
    try:
        with open_regular(path / _ASKED) as file:
            asked = msgspec.json.decode(file.read(MOST_BYTES), type=Asked | AskedTuning)
        model = path / asked.name
        step = max(steps_in(model), default=0)
        if not step or model.parent != path:
            return None
        return LeftTraining(str(model), asked, step, snapshot_path(model, step).stat().st_mtime)
    except (OSError, ValueError):
        return None
