"""Where a window keeps a model while it learns: a folder beside the settings, named by the process that it belongs to.

In it lies the model's own, named by what it learns: the window shows that name. It is deleted once the person has saved
all of it, or discards it. One that was not saved stays, and this window or another can go on with it.
"""

from __future__ import annotations

import itertools
import logging
import os
import shutil
from collections.abc import Collection
from pathlib import Path

import msgspec

from attention_explorer.recovery.owners import is_left_behind, own_mark
from attention_explorer.session.training import LeftTraining
from attention_explorer.settings import folder, make_folder
from attention_models.files.safe_files import FOLDER_MODE, open_regular, write_private
from attention_models.files.training_steps import snapshot_path, steps_in
from attention_models.protocol.training_messages import MOST_BYTES, Asked, AskedTuning

log = logging.getLogger(__name__)

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
    write_private(path.parent / _ASKED, msgspec.json.encode(asked))
    path.mkdir(FOLDER_MODE)


def own_folder() -> Path:
    """An empty folder of this process. One of no training stays no longer than it.

    Raises:
        OSError: the disk refuses.
    """
    path = _free()
    _make_private(path)
    return path


def _make_private(path: Path) -> None:
    make_folder(path.parent.name)
    path.mkdir(FOLDER_MODE)


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


def discard(left: LeftTraining) -> None:
    """Delete a training that a person does not want. Nothing is done where another window has gone on with it."""
    try:
        remove(take(left))
    except OSError as error:
        log.warning("%s was not discarded: %s", left.folder, error)


def last_step(path: Path) -> int:
    """The last step that can be gone on from in what `new_folder` gave; 0 where nothing was learned."""
    return max(steps_in(path), default=0)


def left_behind(own: Collection[Path] = ()) -> tuple[LeftTraining, ...]:
    """Trainings of this computer's ended processes, and those of `own`, the newest first.

    Folders of ended processes in which nothing was learned are deleted, and no others.
    """
    found, parents = [], {path.parent for path in own}
    try:
        entries = list(trainings_folder().iterdir())
    except OSError:
        return ()
    for path in entries:
        is_own = path in parents
        if is_own or is_left_behind(path.name, _TRAINING):
            left = _left_in(path)
            if left is not None:
                found.append(left)
            elif _holds_a_training(path):
                log.warning("%s holds a training that cannot be gone on with; it is kept", path)
            elif not is_own:
                shutil.rmtree(path, ignore_errors=True)
    return tuple(sorted(found, key=lambda left: left.written, reverse=True))


def is_private(reference: str) -> bool:
    """Whether a checkpoint's name is that of a folder that goes with the window."""
    return Path(reference).parent.parent == trainings_folder()


def _holds_a_training(path: Path) -> bool:
    """Whether something was learned in a folder, readable or not. One of an experiment has nothing asked for in it."""
    if not os.path.lexists(path / _ASKED):
        return False
    try:
        return any(last_step(model) for model in path.iterdir())
    except OSError:
        return True  # that cannot be told


def _left_in(path: Path) -> LeftTraining | None:
    """The training in a folder that was left behind; None where there is none to go on with."""
    try:
        with open_regular(path / _ASKED) as file:
            asked = msgspec.json.decode(file.read(MOST_BYTES), type=Asked | AskedTuning)
        model = path / asked.name
        step = last_step(model)
        if not step or model.parent != path:
            return None
        return LeftTraining(str(model), asked, step, snapshot_path(model, step).stat().st_mtime)
    except (OSError, ValueError):
        return None
