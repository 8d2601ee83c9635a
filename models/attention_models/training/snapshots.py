"""Snapshots of a training on disk: weights and what the optimiser keeps, enough to go on bit for bit.

Each is one safetensors file, written whole or not at all. Together they take no more than `MOST_BYTES`: beyond that
one goes that stands close between two others, so that those that are left are spread over the whole training. The first
and the newest stay.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from attention_models.files.safe_files import is_link
from attention_models.files.training_steps import snapshot_name, steps_of
from attention_models.protocol.errors import CheckpointError

# What Adam keeps of each parameter between two steps, as tensors by name: for snapshots.


_MOMENTS = ("exp_avg", "exp_avg_sq")


def moments_of(optimizer: torch.optim.Optimizer, named: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """Its running means, as "exp_avg.NAME" and "exp_avg_sq.NAME"; there are none before the first step."""
    kept = optimizer.state
    return {f"{key}.{name}": kept[p][key] for name, p in named.items() if p in kept for key in _MOMENTS}


def take_moments(
    optimizer: torch.optim.Optimizer, named: Mapping[str, nn.Parameter], state: Mapping[str, Tensor], step: int
) -> None:
    """Be as `moments_of` told after `step` steps. Other tensors in `state` are passed by."""
    for name, p in named.items():
        optimizer.state.pop(p, None)
        if f"exp_avg.{name}" in state:
            optimizer.state[p] = {
                "step": torch.tensor(float(step)),
                **{key: state[f"{key}.{name}"].clone() for key in _MOMENTS},
            }


NEWEST = "newest.safetensors"
"""What a fine-tuning keeps beside them of its newest step alone: what learns, and what the optimiser keeps of it."""

MOST_BYTES = 256 << 20
UNFINISHED = ".unfinished"


def behind_link(folder: Path) -> str:
    """Why a training does not go into a folder whose snapshots are a link, as a sentence."""
    return (
        f"{folder} is a link, and a training would write wherever it leads. Put a folder in its place, or name another "
        "training."
    )


class Snapshots:
    """Those in one folder, by step."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        """Raises CheckpointError where `folder` is a link: a training would write wherever it leads."""
        if is_link(folder):
            raise CheckpointError(behind_link(folder))
        self.folder = folder
        self._most = most_bytes

    @property
    def steps(self) -> list[int]:
        """Ascending."""
        return list(steps_of(self.folder))

    def path(self, step: int) -> Path:
        return self.folder / snapshot_name(step)

    def put(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        """Raises OSError where the disk refuses; those that were there still are."""
        self.put_beside(self.path(step).name, tensors)
        self._thin()

    def put_beside(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Write a file that is no snapshot beside them. Raises OSError where the disk refuses."""
        self._write(name, lambda file: file.write(save(dict(tensors))))

    def copy(self, path: Path) -> None:
        """Put a copy of a file among them, under its own name. Raises OSError where the disk refuses."""
        with path.open("rb") as source:
            self._write(path.name, lambda file: shutil.copyfileobj(source, file))

    def _write(self, name: str, put: Callable[[IO[bytes]], object]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f".{name}{UNFINISHED}"
        try:
            unfinished.unlink(missing_ok=True)
            # not flushed: a snapshot that a power cut takes is one of many, and waiting for the disk costs the training
            with unfinished.open("xb") as file:  # and not where a link of that name leads
                put(file)
            unfinished.replace(self.folder / name)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    def load(self, step: int) -> dict[str, Tensor]:
        return self.load_beside(self.path(step).name)

    def load_beside(self, name: str) -> dict[str, Tensor]:
        return load_file(self.folder / name)

    def clear(self) -> None:
        for step in self.steps:
            self.path(step).unlink(missing_ok=True)

    def _thin(self) -> None:
        steps = self.steps
        sizes = {step: self.path(step).stat().st_size for step in steps}
        while len(steps) > 2 and sum(sizes[step] for step in steps) > self._most:
            gaps = {steps[i]: steps[i + 1] - steps[i - 1] for i in range(1, len(steps) - 1)}
            closest = min(gaps, key=lambda step: gaps[step])  # the one without which the gap is smallest
            self.path(closest).unlink(missing_ok=True)
            steps.remove(closest)
