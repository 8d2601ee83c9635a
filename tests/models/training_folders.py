"""Folders of small trainings with snapshots, as `--train` leaves them."""

from __future__ import annotations

from pathlib import Path

from attention_models.files.training_steps import SNAPSHOTS
from attention_models.training.common import Budget
from attention_models.training.experiment import experiment
from attention_models.training.folders import save
from attention_models.training.training import Training

SMALL = {"width": "16", "heads": "2", "layers": "1"}
RECURRENT = {"embedding": "8", "hidden": "12"}
OF_ALL = {"batch": "8", "snapshot_every": "2"}


def trained(folder: Path, steps: int = 6, task: str = "copy:4", seed: int = 0, **switches: str) -> Training:
    """Train into `folder`, with a snapshot every second step."""
    size = RECURRENT if switches.get("model") == "recurrent" else SMALL
    planned = experiment(task, {**OF_ALL, **size, **switches}, seed)
    folder.mkdir(exist_ok=True)
    training = planned.training(folder / SNAPSHOTS)
    training.run(Budget(steps=steps))
    training.measure()
    save(training, planned, folder)
    return training
