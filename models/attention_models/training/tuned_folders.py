"""A fine-tuned checkpoint as a folder that opens like any: weights, config, tokenizer, what was done, and with what."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open

from attention_models.files.adapter_files import CONFIG
from attention_models.files.catalogue import SHIPPED, read_card
from attention_models.files.names import is_elsewhere, is_hub
from attention_models.files.safe_files import open_regular, write_private
from attention_models.files.text_stream import MOST_BYTES
from attention_models.files.training_steps import RECORD, SNAPSHOTS, WEIGHTS_PREFIX, snapshot_path
from attention_models.files.weight_files import file_header, read_json, summary
from attention_models.forward.model import Model
from attention_models.protocol.errors import CheckpointError
from attention_models.training.common import Budget
from attention_models.training.finetuning import FineTuning, TuningSettings, check_trainable
from attention_models.training.folders import TEXT_FILE, KeptLength, filled, length_in, record_of, write_json
from attention_models.training.pairs_file import Source
from attention_models.training.snapshots import NEWEST
from attention_models.training.training_loop import HeldOut
from attention_models.training.tuned_parts import peft_unheard
from attention_models.training.tuning_rows import data_for, rows_of

ADAPTER = "adapter"
"""The folder with the adapter alone, within that of the merged model."""


def save_tuned(
    tuning: FineTuning, folder: Path, source: Source, budget: Budget | None = None, spent: float = 0.0
) -> None:
    """Write the tuned model; of a LoRA adapter the model that it is merged into, and `adapter` with the adapter alone.

    Args:
        source: what it is tuned on.
        budget: what the training was to take, of whose seconds `spent` are gone: for who takes it up again.

    Raises:
        OSError: the disk refuses.
    """
    model = tuning.model
    with filled(folder) as whole:
        module: Any = model.module
        if tuning.adapted is not None:
            adapter = tuning.adapted
            with peft_unheard():
                adapter.save_pretrained(whole / ADAPTER, save_embedding_layers=False)  # else it asks a hub about them
            _name_base(whole / ADAPTER / CONFIG, _base(model.info.reference, model.info.folder))
            (whole / ADAPTER / "README.md").unlink(missing_ok=True)  # a form with nothing filled in
        module.save_pretrained(whole, state_dict=tuning.weights())
        model.tokenizer.save_pretrained(whole)
        content = source.text.encode("utf-8", "replace")
        record = {
            "finetuned": _lasting(model.info.reference),
            "data": {"file": source.file, "sha256": hashlib.sha256(content).hexdigest()},
            "settings": asdict(tuning.settings),
            "budget": record_of(budget, spent),
            "steps": tuning.step_number,
            "held_out": [asdict(found) for found in tuning.held_out],
            "curve": [[point.step, point.loss, point.accuracy, point.rate] for point in tuning.points],
        }
        write_json(whole / "explorer.json", _card(tuning, source))
        write_json(whole / RECORD, record)
        write_private(whole / TEXT_FILE, content)
        shutil.rmtree(folder / ADAPTER, ignore_errors=True)


def _card(tuning: FineTuning, source: Source) -> dict[str, str]:
    model, settings = tuning.model, tuning.settings
    card = read_card(Path(model.info.folder))
    steps, held = f"{tuning.step_number:,}", [found.loss for found in tuning.held_out]
    losses = f": the loss of held-out rows went from {held[0]:.3f} to {held[-1]:.3f} nats" if held[1:] else ""
    how = {"all": "all weights", "head": "the head alone", "lora": f"a LoRA adapter of rank {settings.rank}"}
    return {
        "title": f"{model.info.name}, tuned",
        "summary": f"{model.info.name} after {steps} steps on {source.title} ({how[settings.tuned]}){losses}.",
        **{"example": card.example, "second": card.second, "prefix": card.prefix, "reads": card.reads},
    }


# --------------------------------------------------------------------------- taken up again


class _Data(msgspec.Struct, frozen=True):
    file: str  # its name; "" of a pasted text
    sha256: str


class TunedRecord(msgspec.Struct, frozen=True):
    """What is read of `training.json`."""

    finetuned: str  # the checkpoint that it began as
    data: _Data
    settings: TuningSettings
    budget: KeptLength | None
    held_out: list[HeldOut]
    curve: list[tuple[int, float, float, float]]


@dataclass(frozen=True, slots=True)
class ResumedTuning:
    """A fine-tuning at its newest snapshot, and how long it was to take."""

    tuning: FineTuning
    source: Source
    budget: Budget | None  # None where that is not known
    spent: float  # seconds of it


def is_tuned(folder: Path) -> bool:
    """Whether there is a training in `folder`, and it is a fine-tuning."""
    try:
        return "finetuned" in read_json(folder / RECORD, "")
    except (OSError, CheckpointError):
        return False


def read_tuned(folder: Path) -> TunedRecord:
    """Raises CheckpointError: no record of a fine-tuning, or a damaged one."""
    try:
        record = msgspec.convert(read_json(folder / RECORD, ""), TunedRecord)
        if not (record.finetuned.isprintable() and record.data.file.isprintable()):  # a terminal may show them
            raise msgspec.ValidationError("it names what no file is called")
        if is_elsewhere(record.finetuned):
            raise msgspec.ValidationError(f"it began as {record.finetuned}, a place on another computer, not touched")
        return record
    except (OSError, msgspec.ValidationError) as cause:
        raise CheckpointError(
            f"{folder / RECORD} describes no fine-tuning that could go on: {summary(cause)}. Fine-tune again."
        ) from cause


def source_in(record: TunedRecord, folder: Path) -> Source:
    """What the model in `folder` learned from, as it was then.

    Raises:
        CheckpointError: it is not there, or was changed.
    """
    path = folder / TEXT_FILE
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as cause:
        raise CheckpointError(f"{path}, which it learned from, cannot be read ({cause.strerror}).") from cause
    if hashlib.sha256(content).hexdigest() != record.data.sha256:
        raise CheckpointError(f"{path} is not what it learned from: it was changed. Fine-tune again.")
    return Source(content.decode("utf-8", "replace"), Path(record.data.file).name)


def resumed_tuning(record: TunedRecord, folder: Path, model: Model) -> ResumedTuning:
    """The fine-tuning in `folder` of `model`, the checkpoint that it began as, at its newest snapshot.

    Raises:
        ExplorerError: what lies there is damaged, or of another checkpoint; nothing in the folder was changed.
    """
    check_trainable(model)
    source, settings = source_in(record, folder), record.settings
    rows = rows_of(model, data_for(model, source), settings.seed)
    tuning = FineTuning(model, rows, settings, folder / SNAPSHOTS)
    restore_tuned(tuning, record, folder)
    try:
        budget, spent = length_in(record.budget)
    except ValueError as cause:
        raise CheckpointError(f"{folder / RECORD}: {summary(cause)}. Fine-tune again.") from cause
    return ResumedTuning(tuning, source, budget, spent)


def restore_tuned(tuning: FineTuning, record: TunedRecord, folder: Path) -> None:
    """Let `tuning`, which has just begun, be as it was when it was last kept in `folder`.

    Raises:
        CheckpointError: what lies there is damaged, or of another training.
    """
    try:
        _check_base(tuning, folder)
        _check_newest(tuning, folder / SNAPSHOTS / NEWEST)
        tuning.restore()
    except CheckpointError as cause:
        raise CheckpointError(f"{folder} cannot be gone on with: {cause}") from cause
    except (OSError, KeyError, RuntimeError, ValueError, SafetensorError) as cause:
        raise CheckpointError(f"{folder} cannot be gone on with: {summary(cause)}. Fine-tune again.") from cause
    tuning.recall(record.held_out, record.curve)


def _check_base(tuning: FineTuning, folder: Path) -> None:
    """Refuse a checkpoint that is not, number for number, the one of step 0: what does not learn is not kept anew."""
    path = snapshot_path(folder, 0)
    if not path.is_file():
        return
    file_header(path)
    with safe_open(path, framework="pt") as there:
        names = set(there.keys())
        for name, tensor in tuning.weights().items():
            kept = WEIGHTS_PREFIX + name
            if kept not in names or not torch.equal(there.get_tensor(kept), tensor.cpu()):
                raise CheckpointError(
                    f"{tuning.model.info.name} is not as it was: its {name} is another. Fine-tune again."
                )


def _check_newest(tuning: FineTuning, path: Path) -> None:
    """Refuse what does not hold, in the right shapes, all that the training needs to go on, in finite numbers."""
    there = file_header(path)
    with safe_open(path, framework="pt") as file:
        step = float(file.get_tensor("numbers")[0])
        wanted = tuning.kept_shapes(step > 0)
        wrong = next((name for name, shape in wanted.items() if there.get(name) != shape), None)
        if wrong is not None:
            raise CheckpointError(f"{path.name} lacks {wrong}, or has it in another shape. Fine-tune again.")
        infinite = next((name for name in wanted if not bool(torch.isfinite(file.get_tensor(name)).all())), None)
        if infinite is not None:
            raise CheckpointError(f"{path.name} holds values in {infinite} that are no numbers. Fine-tune again.")


def _name_base(path: Path, base: str) -> None:
    table: Mapping[str, object] = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**table, "base_model_name_or_path": base})


def _base(reference: str, folder: str) -> str:
    """What an adapter calls the checkpoint that it is put on, from wherever it lies."""
    if is_hub(reference):
        return reference.removeprefix("hf://").partition("@")[0]
    return reference if Path(folder).name == reference else str(Path(folder).absolute())


def _lasting(reference: str) -> str:
    """The same checkpoint by a name that holds in any working folder."""
    is_name = is_hub(reference) or reference in SHIPPED
    return reference if is_name else str(Path(reference).expanduser().absolute())
