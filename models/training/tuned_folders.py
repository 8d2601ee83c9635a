"""A fine-tuned checkpoint as a folder that opens like any: weights, config, tokenizer, and what was done."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from safetensors import SafetensorError

from models.files.adapter_files import CONFIG
from models.files.catalogue import read_card
from models.files.names import is_hub
from models.files.training_steps import RECORD
from models.files.weight_files import read_json, summary
from models.protocol.errors import CheckpointError
from models.training.course import HeldOut
from models.training.finetuning import FineTuning, peft_unheard
from models.training.folders import filled, write_json

ADAPTER = "adapter"
"""The folder with the adapter alone, within that of the merged model."""


def save_tuned(tuning: FineTuning, folder: Path, data: str) -> None:
    """Write the tuned model; of a LoRA adapter the model that it is merged into, and `adapter` with the adapter alone.

    Args:
        data: what it is tuned on, as "poems.txt".

    Raises:
        OSError: the disk refuses.
    """
    model, settings = tuning.model, tuning.settings
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
        card = read_card(Path(model.info.folder))
        steps, held = f"{tuning.step_number:,}", [found.loss for found in tuning.held_out]
        losses = f": the loss of held-out rows went from {held[0]:.3f} to {held[-1]:.3f} nats" if held[1:] else ""
        how = {"all": "all weights", "head": "the head alone", "lora": f"a LoRA adapter of rank {settings.rank}"}
        said = {
            "title": f"{model.info.name}, tuned",
            "summary": f"{model.info.name} after {steps} steps on {data} ({how[settings.tuned]}){losses}.",
            **{"example": card.example, "prefix": card.prefix, "reads": card.reads},
        }
        record = {
            "finetuned": model.info.reference,
            "data": data,
            "settings": asdict(settings),
            "steps": tuning.step_number,
            "held_out": [asdict(found) for found in tuning.held_out],
            "curve": [[point.step, point.loss, point.accuracy, point.rate] for point in tuning.points],
        }
        write_json(whole / "explorer.json", said)
        write_json(whole / RECORD, record)
        shutil.rmtree(folder / ADAPTER, ignore_errors=True)


class _Record(msgspec.Struct, frozen=True):
    """What is read of `training.json`."""

    held_out: list[HeldOut]
    curve: list[tuple[int, float, float, float]]


def restore_tuned(tuning: FineTuning, folder: Path) -> None:
    """Let `tuning`, which has just begun, be as it was when it was last kept in `folder`.

    Raises:
        CheckpointError: what lies there is damaged, or of another training.
    """
    try:
        record = msgspec.convert(read_json(folder / RECORD, ""), _Record)
        tuning.restore()
    except (OSError, KeyError, RuntimeError, ValueError, SafetensorError) as cause:
        raise CheckpointError(f"{folder} cannot be gone on with: {summary(cause)}. Fine-tune again.") from cause
    tuning.recall(record.held_out, record.curve)


def _name_base(path: Path, base: str) -> None:
    table = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**table, "base_model_name_or_path": base})


def _base(reference: str, folder: str) -> str:
    """What an adapter calls the checkpoint that it is put on, from wherever it lies."""
    if is_hub(reference):
        return reference.removeprefix("hf://").partition("@")[0]
    return reference if Path(folder).name == reference else str(Path(folder).absolute())
