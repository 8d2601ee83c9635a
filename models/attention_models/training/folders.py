"""A trained model as a folder that opens like any checkpoint: weights, config, tokenizer, and what was done."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from transformers.utils import logging

from attention_models.files.safe_files import UNFINISHED, is_link, write_private
from attention_models.files.training_steps import RECORD, SNAPSHOTS, steps_in
from attention_models.forward.recurrent_model import MOST_TOKENS
from attention_models.textbook.pretrained import TextbookModel
from attention_models.textbook.tokenizer import tokenizer_of
from attention_models.textbook.transformer_config import TransformerConfig
from attention_models.training.common import Budget
from attention_models.training.experiment import Experiment
from attention_models.training.snapshots import behind_link
from attention_models.training.training import Training

# How long a training was to take, as the record in its folder has it.


class KeptLength(msgspec.Struct, frozen=True):
    """What is read of it."""

    seconds: float | None
    steps: int | None
    spent: float  # seconds that are gone of it


def record_of(budget: Budget | None, spent: float) -> dict[str, float | None] | None:
    """What a record holds of it; `spent` are the seconds that are gone."""
    return None if budget is None else {**asdict(budget), "spent": round(spent, 3)}


def length_in(kept: KeptLength | None) -> tuple[Budget | None, float]:
    """The budget, and the seconds that are gone of it. Raises ValueError where a record has no whole one."""
    return (None, 0.0) if kept is None else (Budget(kept.seconds, kept.steps), max(0.0, kept.spent))


TEXT_FILE = "training.data"
"""The text that a training's rows are of, in UTF-8."""


def why_not(folder: Path) -> str:
    """Why a training cannot be saved in `folder`, as a sentence; "" where it can: nothing that was learned is lost."""
    try:
        return _why_not(folder)
    except OSError as error:  # a name of 300 letters
        return f"{str(folder)[:80]}… cannot be looked at ({error.strerror}). Name another folder."


def _why_not(folder: Path) -> str:
    if folder.is_file():
        return f"{folder} is a file. Name a folder that the model goes into."
    if not folder.parent.is_dir():
        return f"There is no folder {folder.parent}. Make it, or name another."
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RECORD).is_file():
        return f"{folder} holds files that no training wrote, and nothing is put between them. Name another folder."
    if is_link(folder / SNAPSHOTS):
        return behind_link(folder / SNAPSHOTS)
    if (folder / RECORD).is_file() and max(steps_in(folder), default=1) > 0:
        return f"{folder} holds another training, which would be lost. Name another folder, or delete that one first."
    return ""


def save(
    training: Training, experiment: Experiment, folder: Path, budget: Budget | None = None, spent: float = 0.0
) -> None:
    """Write the model as it is now; each file takes its place whole, the config last.

    `budget` is what the training was to take, of whose seconds `spent` are gone: for who takes it up again.

    Raises:
        OSError: the disk refuses.
    """
    config = training.config
    shape, context = "encoder-decoder", MOST_TOKENS
    if isinstance(config, TransformerConfig):
        shape, context = config.shape, config.context
    tokenizer = tokenizer_of(training.rows.alphabet, shape, context)
    with filled(folder) as whole:
        if isinstance(training.model, TextbookModel):
            training.model.save_pretrained(whole)
        else:
            write_json(whole / "config.json", training.model.config.to_dict())
            state = training.model.state_dict()
            save_file({name: t.contiguous() for name, t in state.items()}, whole / "model.safetensors")
        tokenizer.save_pretrained(whole)
        write_json(whole / "explorer.json", _card(training, experiment))
        write_json(whole / RECORD, _record(training, experiment, budget, spent))
        if experiment.text:
            write_private(whole / TEXT_FILE, experiment.text.encode())


@contextmanager
def filled(folder: Path) -> Iterator[Path]:
    """A folder to write a model into, with its `RECORD`. When the block ends all of it goes into `folder`.

    Each file takes its place whole, the config last. If the block fails, `folder` is as it was.

    Raises:
        OSError: the disk refuses.
    """
    logging.disable_progress_bar()
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=UNFINISHED) as made:
        whole = Path(made)
        try:
            yield whole
        except SafetensorError as error:  # it does not say which of the disk's refusals it was
            raise OSError(errno.ENOSPC if shutil.disk_usage(folder).free < 1 << 20 else 0, str(error)) from error
        for path in whole.rglob("*.safetensors"):
            path.chmod((whole / RECORD).stat().st_mode)  # safetensors gives it to its owner alone
        for path in sorted(whole.iterdir(), key=lambda path: path.name == "config.json"):
            path.replace(folder / path.name)


def write_json(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _card(training: Training, experiment: Experiment) -> dict[str, object]:
    last = training.held_out[-1] if training.held_out else None
    right = f" {last.sequences_right:.1%} of {last.rows} held-out rows came out right." if last is not None else ""
    name, _, _ = experiment.name.partition(":")
    kind = "transformer" if isinstance(training.config, TransformerConfig) else "recurrent model"
    return {
        "title": name,
        "summary": f"A textbook {kind} that learned to {experiment.title}, {training.step_number:,} steps.{right}",
        "example": experiment.example,
        "prefix": "",
    }


def _record(training: Training, experiment: Experiment, budget: Budget | None, spent: float) -> dict[str, object]:
    return {
        "task": experiment.name,
        "switches": dict(experiment.switches),
        "budget": record_of(budget, spent),
        "text": hashlib.sha256(experiment.text.encode()).hexdigest() if experiment.text else "",
        "settings": asdict(experiment.settings),
        "steps": training.step_number,
        "held_out": [asdict(found) for found in training.held_out],
        "curve": [
            [point.step, round(point.loss, 5), round(point.accuracy, 5), point.rate]
            for point in training.points
            if point.step % 10 == 0
        ],
        "torch": torch.__version__,
    }
