"""Snapshots of a training on disk: weights and what the optimiser keeps, enough to go on bit for bit.

Each is one safetensors file, written whole or not at all. Together they take no more than `MOST_BYTES`: beyond that
one goes that stands close between two others, so that those that are left are spread over the whole training. The first
and the newest stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save
from torch import Tensor

from models.files.training_steps import snapshot_name, steps_of

NEWEST = "newest.safetensors"
"""What a fine-tuning keeps beside them of its newest step alone: what learns, and what the optimiser keeps of it."""

MOST_BYTES = 256 << 20
UNFINISHED = ".unfinished"


class Snapshots:
    """Those in one folder, by step."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
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
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f".{name}{UNFINISHED}"
        try:
            # not flushed: a snapshot that a power cut takes is one of many, and waiting for the disk costs the training
            unfinished.write_bytes(save(dict(tensors)))
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
