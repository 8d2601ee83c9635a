"""What the folder of a training says of its snapshots, and their weights: checked, then put into a model. No pickle."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from attention_models.files.catalogue import read_card
from attention_models.files.fingerprint import hash_of_file
from attention_models.files.training_steps import RECORD, WEIGHTS_PREFIX, settings_in, snapshot_path, step_of, steps_in
from attention_models.files.weight_files import check_not_empty, file_header, summary, weight_files
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import Tensors
from attention_models.protocol.values import CheckpointInfo, TrainingSteps


def training_of(reference: str, folder: Path) -> TrainingSteps | None:
    """The snapshots that belong to the checkpoint `reference`, which lies in `folder`; None where there are none.

    Raises:
        CheckpointError: there is none of the step that is asked for.
        OSError: a file cannot be read.
    """
    asked, steps = step_of(reference), steps_in(folder)
    if not steps or not (folder / RECORD).is_file():
        return None
    if asked is None:
        return TrainingSteps(reference, steps, None, settings_hash(folder))
    if asked.step not in steps:
        raise CheckpointError(f"{folder.name} has no snapshot of step {asked.step:,}. {_said(steps)}")
    return TrainingSteps(asked.reference, steps, asked.step, settings_hash(folder))


def settings_hash(folder: Path) -> str:
    """SHA-256 of config and tokenizer: where it is the same, two steps of a training differ by their weights alone."""
    listed = "".join(f"{file.name} {hash_of_file(file)}\n" for file in settings_in(folder))
    return hashlib.sha256(listed.encode()).hexdigest()


def at_step(info: CheckpointInfo, training: TrainingSteps) -> CheckpointInfo:
    """What is said of the end of `training` as it is said of one of its steps, or of the end now.

    Raises:
        OSError: a file cannot be read.
    """
    folder = Path(info.folder)
    card = read_card(folder)
    return replace(
        info,
        reference=training.at(training.step),
        name=title_at(card.title, training),
        summary=summary_of(card.summary, training),
        file_bytes=_weights_bytes(folder, training),
        training=training,
    )


def title_at(title: str, training: TrainingSteps | None) -> str:
    """What to call a checkpoint whose folder is called `title`."""
    return title if training is None or training.step is None else f"{title}, step {training.step:,}"


def summary_of(summary: str, training: TrainingSteps | None) -> str:
    """What a card says of the whole, or, of a snapshot, what that is."""
    if training is None or training.step is None:
        return summary
    return f"A snapshot of a training, after step {training.step:,}. The last one is of step {training.steps[-1]:,}."


def weights_header(path: Path) -> Tensors:
    """Names and shapes of the weights in a snapshot, without the prefix that they have there.

    Raises:
        CheckpointError: a damaged file, or one without weights.
        OSError: it is not there.
    """
    there = file_header(path)
    shapes = {name.removeprefix(WEIGHTS_PREFIX): there[name] for name in there if name.startswith(WEIGHTS_PREFIX)}
    if not shapes:
        raise CheckpointError(f"{path} holds no weights under “{WEIGHTS_PREFIX}”: no training wrote it.")
    check_not_empty(path.name, shapes)
    return Tensors(shapes, path.stat().st_size)


def _weights_bytes(folder: Path, training: TrainingSteps) -> int:
    """Of the files that hold the weights of a step, or of the end."""
    files = weight_files(folder) if training.step is None else [snapshot_path(folder, training.step)]
    return sum(file.stat().st_size for file in files)


def read_weights(info: CheckpointInfo) -> dict[str, Tensor]:
    """The weights of one step of a training by the name of the parameter, on the CPU as they are in the file.

    Raises:
        CheckpointError: a damaged file.
        OSError: it is not there.
    """
    folder, training = Path(info.folder), info.training
    is_snapshot = training is not None and training.step is not None
    if training is not None and training.step is not None:
        path, prefix = snapshot_path(folder, training.step), WEIGHTS_PREFIX
    else:
        (path, *others), prefix = weight_files(folder), ""
        if others:
            raise CheckpointError(f"{folder.name} has its weights in several files, and no training here writes that.")
    names = weights_header(path).shapes if is_snapshot else file_header(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(prefix + name) for name in names}
    except Exception as cause:
        raise CheckpointError(f"{path} cannot be read: {summary(cause)}. Choose another step.") from cause


def fitted(module: nn.Module, read: Mapping[str, Tensor], title: str) -> dict[nn.Parameter, Tensor]:
    """`read` as the values of the parameters of `module`, each on its device and in its number format.

    Raises:
        CheckpointError: a tensor that is missing, too many, of another shape, or holds what is no number.
    """
    aliases: dict[nn.Parameter, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        aliases.setdefault(parameter, []).append(name)  # tied ones need to be there once
    found: dict[nn.Parameter, Tensor] = {}
    for parameter, names in aliases.items():
        there = [name for name in names if name in read]
        if not there:
            raise CheckpointError(f"{title} is incomplete: {names[0]} is not in the file.")
        name = there[0]
        if read[name].shape != parameter.shape:
            shapes = f"{tuple(read[name].shape)} in the file and should be {tuple(parameter.shape)}"
            raise CheckpointError(f"{title}: {name} is {shapes}. It is a snapshot of another training.")
        found[parameter] = read[name].to(parameter.device, parameter.dtype)
        if not bool(torch.isfinite(found[parameter]).all()):
            raise CheckpointError(f"{title} is broken: {name} holds values that are no numbers. Choose another step.")
    known = {name for names in aliases.values() for name in names} | {name for name, _ in module.named_buffers()}
    strange = next((name for name in read if name not in known), None)
    if strange is not None:
        raise CheckpointError(f"{title} holds {strange}, for which its config has no place.")
    return found


@contextmanager
def holding(weights: Mapping[nn.Parameter, Tensor]) -> Iterator[None]:
    """While it lasts, parameters have other values: no tensor is copied."""
    before = {parameter: parameter.data for parameter in weights}
    put(weights)
    try:
        yield
    finally:
        put(before)


def put(weights: Mapping[nn.Parameter, Tensor]) -> None:
    """Let parameters be these tensors."""
    for parameter, tensor in weights.items():
        parameter.data = tensor


def _said(steps: tuple[int, ...]) -> str:
    if len(steps) == 1:
        return f"There is one, of step {steps[0]:,}."
    if len(steps) <= 8:
        return f"There are those of steps {', '.join(f'{step:,}' for step in steps[:-1])} and {steps[-1]:,}."
    between = {b - a for a, b in pairwise(steps)}
    every = f", every {between.pop():,} steps" if len(between) == 1 else ""
    return f"There are {len(steps):,}, from step {steps[0]:,} to {steps[-1]:,}{every}."
