"""Takes a training up again from its folder: the task, the switches and the newest snapshot, all of them checked."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import torch

from attention_models.files.safe_files import open_regular
from attention_models.files.text_stream import MOST_BYTES
from attention_models.files.training_steps import RECORD, SNAPSHOTS, snapshot_path, steps_in
from attention_models.files.weight_files import file_header, read_json, summary
from attention_models.protocol.errors import CheckpointError
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.transformer_config import SWITCHES, TransformerConfig
from attention_models.training.common import Budget
from attention_models.training.experiment import Experiment, experiment
from attention_models.training.folders import TEXT_FILE, KeptLength, length_in
from attention_models.training.settings import check_seed
from attention_models.training.training import Training
from attention_models.training.training_loop import HeldOut

_OF_TRANSFORMERS = [*SWITCHES, "vocabulary"]


class _Record(msgspec.Struct, frozen=True):
    """What is read of `training.json`."""

    task: str
    switches: dict[str, str]
    settings: dict[str, Any]
    budget: KeptLength | None
    text: str
    held_out: list[HeldOut]
    curve: list[tuple[int, float, float, float]]


@dataclass(frozen=True, slots=True)
class Resumed:
    """A training at its newest snapshot, and how long it was to take."""

    training: Training
    experiment: Experiment
    budget: Budget | None  # None where that is not known
    spent: float  # seconds of it


def resumed(folder: Path) -> Resumed:
    """The training in `folder`, at its newest snapshot.

    Raises:
        CheckpointError: no training, or one that is damaged; nothing in the folder was changed.
    """
    try:
        return _resumed(folder)
    except OSError as cause:
        raise CheckpointError(f"{folder} cannot be read ({cause.strerror or summary(cause)}).") from cause


def _resumed(folder: Path) -> Resumed:
    if not (folder / RECORD).is_file():
        raise CheckpointError(f"There is no training in {folder}: it holds no {RECORD}. Begin one with --train.")
    table = read_json(folder / RECORD, "")
    try:
        record = msgspec.convert(table, _Record)
        planned = experiment(record.task, record.switches, check_seed(record.settings["seed"]), _text(folder, record))
        if asdict(planned.settings) != record.settings:
            raise ValueError("its settings are not those of its switches")
        if planned.name != record.task:
            raise ValueError(f"its task is “{record.task}”, which is {planned.name}")
        budget, spent = length_in(record.budget)
    except (msgspec.ValidationError, KeyError, TypeError, ValueError) as cause:
        raise CheckpointError(
            f"{folder / RECORD} describes no training that could go on: {summary(cause).rstrip('.')}. Begin a new one."
        ) from cause
    other = _other_setting(planned, folder)
    if other:
        raise CheckpointError(
            f"{folder}: {other} in config.json is not that of the training in {RECORD}. The two do not belong together."
        )
    training = planned.training(folder / SNAPSHOTS)
    steps = steps_in(folder)
    if steps:
        _check(training, snapshot_path(folder, steps[-1]), steps[-1])
        training.restore(steps[-1])
    training.recall(record.held_out, record.curve)
    return Resumed(training, planned, budget, spent)


def _text(folder: Path, record: _Record) -> str:
    if not record.text:
        return ""
    with open_regular(folder / TEXT_FILE) as file:
        content = file.read(MOST_BYTES + 1)
    if hashlib.sha256(content).hexdigest() != record.text:
        raise ValueError(f"{TEXT_FILE} is not the text that it learned from")
    return content.decode()


def _other_setting(planned: Experiment, folder: Path) -> str:
    """A setting of the model that is another in the folder's config; "" where none is."""
    there, wanted = read_json(folder / "config.json", "Begin a new one."), planned.config
    names = [field.name for field in fields(wanted)] if isinstance(wanted, RecurrentConfig) else _OF_TRANSFORMERS
    left_out = object()
    # a config of transformers leaves out what is as it always is
    usual = TransformerConfig().to_dict() if isinstance(wanted, TransformerConfig) else {}
    found = {name: there.get(name, usual.get(name, left_out)) for name in names}
    return next((name for name in names if found[name] != getattr(wanted, name)), "")


def _check(training: Training, path: Path, step: int) -> None:
    """Refuse a snapshot that does not hold, in the right shapes, all that the training needs to go on.

    Raises:
        CheckpointError: the sentence says what is wrong with it.
    """
    wrong = f"The newest snapshot, {path}, "
    shapes = {name: tuple(p.shape) for name, p in training.model.named_parameters()}
    kept = ("model", "exp_avg", "exp_avg_sq") if step else ("model",)
    wanted = {f"{part}.{name}": shape for part in kept for name, shape in shapes.items()} | {"first": (2,)}
    there = file_header(path)
    missing = next((name for name in wanted if name not in there), None)
    if missing is not None:
        raise CheckpointError(f"{wrong}lacks {missing}: it is damaged, or of another training. {_ADVICE}")
    other = next((name for name in wanted if there[name] != wanted[name]), None)
    if other is not None:
        shapes_said = f"is {there[other]} and should be {wanted[other]}"
        raise CheckpointError(f"{wrong}is of another training: its {other} {shapes_said}. {_ADVICE}")
    assert training.snapshots is not None
    try:
        state = training.snapshots.load(step)
    except Exception as cause:
        raise CheckpointError(f"{wrong}cannot be read: {summary(cause)}. {_ADVICE}") from cause
    broken = next((name for name in wanted if not bool(torch.isfinite(state[name]).all())), None)
    if broken is not None or any(not state[name].is_floating_point() for name in wanted):
        raise CheckpointError(f"{wrong}holds values that are no numbers. {_ADVICE}")


_ADVICE = "Delete it to go on from the one before."
