"""Snapshots of a training as checkpoints: `my-model@400` is the model in the folder my-model as it was after step 400.

A training's folder holds config, tokenizer and its last weights; `snapshots` in it holds a safetensors file for each of
some steps, whose weights are under `model.`, beside what the optimiser keeps. No torch.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attention_models.files.safe_files import is_link
from attention_models.protocol.values import CheckpointInfo

RECORD = "training.json"
SNAPSHOTS = "snapshots"
WEIGHTS_PREFIX = "model."

_NAME = re.compile(r"step-([0-9]{8,12})\.safetensors")
_REFERENCE = re.compile(r"(.+)@([0-9]{1,12})", re.DOTALL)
_MOST_FILES = 20_000  # in a folder of snapshots; no training leaves as many
_OF_THE_TRAINING = (RECORD, "explorer.json")  # which change while it goes on, and no figure with them
_SETTINGS = (".json", ".txt", ".model", ".jinja")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a training, by its folder. There may be no snapshot of it."""

    reference: str  # of the training's folder, as it was typed
    folder: Path
    step: int

    @property
    def path(self) -> Path:
        return snapshot_path(self.folder, self.step)


def snapshot_path(folder: Path, step: int) -> Path:
    """Where the training in `folder` keeps the snapshot of `step`."""
    return folder / SNAPSHOTS / snapshot_name(step)


def snapshot_name(step: int) -> str:
    return f"step-{step:08}.safetensors"


def steps_in(folder: Path) -> tuple[int, ...]:
    """The steps, ascending, of which the training in `folder` has snapshots; none of a link, which leads outside."""
    return () if is_link(folder / SNAPSHOTS) else steps_of(folder / SNAPSHOTS)


def steps_of(snapshots: Path) -> tuple[int, ...]:
    """The steps, ascending, whose files lie in a folder of snapshots."""
    try:
        with os.scandir(snapshots) as entries:
            names = [entry.name for entry in islice(entries, _MOST_FILES)]
    except OSError:
        return ()
    found = {int(match[1]): match[0] for match in map(_NAME.fullmatch, names) if match is not None}
    return tuple(sorted(step for step, name in found.items() if name == snapshot_name(step)))


def step_of(reference: str) -> Step | None:
    """What `reference` names where it is a folder with snapshots, "@" and a step; None for all other checkpoints.

    Names of folders may hold an "@": a folder of this very name comes first.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    try:
        folder = Path(match[1]).expanduser()
        if Path(reference).expanduser().exists() or not (folder / RECORD).is_file() or not steps_in(folder):
            return None
    except (OSError, RuntimeError, ValueError):
        return None
    return Step(match[1], folder, int(match[2]))


def settings_in(folder: Path) -> list[Path]:
    """The files of a training's folder that decide, beside the weights, what its model computes."""
    return sorted(
        path
        for path in islice(folder.iterdir(), _MOST_FILES)
        if path.suffix in _SETTINGS and path.name not in _OF_THE_TRAINING and path.is_file()
    )


def weights_place(info: CheckpointInfo) -> Path:
    """The folder or the single file whose content tells one checkpoint from another."""
    folder, training = Path(info.folder), info.training
    if training is not None and training.step is not None:
        return snapshot_path(folder, training.step)
    return folder / info.gguf if info.gguf else folder


def is_snapshot(path: Path) -> bool:
    """Whether it is the file of a snapshot in a training's folder."""
    return path.parent.name == SNAPSHOTS and _NAME.fullmatch(path.name) is not None
