"""What can be opened, what is in it, and why something can not be.

A checkpoint is a folder as transformers writes it: `config.json`, `*.safetensors`, a tokenizer. Everything that can
be said from the config and the headers is said, and every bound checked, before a weight is read. No pickle is ever
loaded and no code that comes with a checkpoint is ever run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoTokenizer
from transformers.utils import logging as transformers_logging

from models import devices
from models.capture import IMPLEMENTATION
from models.catalogue import WEIGHTS, Card, folder_of, read_card, title_of
from models.errors import CheckpointError
from models.families import (
    context_of,
    family_of,
    opening,
    refusal,
    stacks_of,
    text_config,
    vocabulary_of,
    weights_only,
)
from models.given import check_given, most_tokens
from models.model import Model
from models.textbook.checkpoint import MODEL_TYPE, open_recurrent
from models.values import CheckpointInfo, Placement
from models.weight_files import TOKENIZERS, Tensors, brief, read_headers, read_json

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def describe(reference: str) -> CheckpointInfo:
    """Everything that can be said of a checkpoint without reading its weights.

    Raises:
        CheckpointError: it can not be opened; the sentence says what is wrong, where and what to do.
    """
    return _examine(reference)[0]


def open_checkpoint(reference: str | Path, *, device: str = "cpu", dtype: str = "float32") -> Model:
    """Open a shipped checkpoint by name, or any checkpoint folder, in eval mode.

    Args:
        device: as torch names it ("cuda:0", "mps"), or "auto" to spread the layers over all devices by accelerate.
        dtype: "float32", "bfloat16" or "float16". The textbook models stay in float32 on the CPU.

    Raises:
        CheckpointError: it can not be opened; the sentence says what is wrong, where and what to do.
    """
    recurrent = _recurrent(str(reference))
    if recurrent is not None:
        return recurrent
    where, number = devices.parse(Placement(device, dtype))
    info, config = _examine(str(reference))
    folder = Path(info.folder)
    if info.family == "vision":
        raise CheckpointError(f"{info.name} looks at pictures; the panels for that are not part of this version.")
    tokenizer = _tokenizer(folder)
    _check_vocabulary(folder, tokenizer, info)
    model = Model(_with_tokenizer(info, tokenizer), _weights(folder, config, info, where, number), tokenizer)
    if model.info.weights_only:
        check_given(model)
    return model


def _recurrent(reference: str) -> Model | None:
    """The textbook model called `reference`; None where it is another kind of checkpoint."""
    try:
        folder = _folder(reference)
        raw = read_json(folder / "config.json", "")
    except CheckpointError:
        return None  # said better by those who look for a transformer
    if raw.get("model_type") != MODEL_TYPE:
        return None
    read_headers(folder)
    return open_recurrent(folder, raw, reference)


# --------------------------------------------------------------------------- before loading


def _folder(reference: str) -> Path:
    try:
        folder = folder_of(reference)
        found = folder.is_dir()
    except (OSError, RuntimeError):  # a name too long, a folder that may not be read, the home of nobody ("~nobody")
        found = False
    if not found:
        raise CheckpointError(
            f"There is no checkpoint called “{reference}”: it is neither a shipped one nor a folder. "
            "Choose a folder that holds config.json and model.safetensors."
        )
    return folder


def _examine(reference: str) -> tuple[CheckpointInfo, Any]:
    folder = _folder(reference)
    raw = read_json(folder / "config.json", "Choose the folder that holds the model's config.json.")
    if "auto_map" in raw:
        raise CheckpointError(
            f"{title_of(folder)} needs program code that comes with it (auto_map in config.json). "
            "Code from a checkpoint is never run here; use a checkpoint of a family that transformers knows."
        )
    tensors = read_headers(folder)
    model_type = raw.get("model_type")
    if not isinstance(model_type, str) or model_type not in transformers.CONFIG_MAPPING:
        raise CheckpointError(
            f"{title_of(folder)}: config.json names the model type “{model_type}”, which transformers "
            f"{transformers.__version__} does not know. Check model_type, or update transformers."
        )
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as cause:
        raise CheckpointError(f"{title_of(folder)}: config.json can not be understood: {brief(cause)}.") from cause
    info = _info(reference, folder, raw, config, tensors, read_card(folder))
    _check_size(folder, config, info, tensors)
    return info, config


def _info(
    reference: str, folder: Path, raw: dict[str, Any], config: Any, tensors: Tensors, card: Card
) -> CheckpointInfo:
    architectures = raw.get("architectures")
    named = architectures[0] if isinstance(architectures, list) and architectures else ""
    architecture = named if isinstance(named, str) else ""
    family = family_of(architecture, config)
    return CheckpointInfo(
        reference=reference,
        name=card.title,
        folder=str(folder),
        family=family,
        model_type=config.model_type,
        architecture=architecture or type(config).__name__.removesuffix("Config"),
        stacks=stacks_of(config, family),
        width=int(getattr(text_config(config), "hidden_size", 0) or 0),
        context=context_of(config),
        vocabulary=vocabulary_of(config),
        parameters=tensors.parameters,
        file_bytes=tensors.file_bytes,
        summary=card.summary,
        example=card.example,
        reads=card.reads,
        prefix=card.prefix,
        shipped=folder.parent == WEIGHTS,
        weights_only=weights_only(architecture, config),
    )


def _check_size(folder: Path, config: Any, info: CheckpointInfo, tensors: Tensors) -> None:
    """Refuse a config that asks for far more than the files hold, before anything is built from it."""
    layers = sum(stack.layers for stack in info.stacks)
    if any(stack.layers < 1 for stack in info.stacks):
        raise CheckpointError(f"{title_of(folder)}: config.json describes no layers. Check the number of layers in it.")
    if layers > max(len(tensors.shapes), 1):
        raise CheckpointError(
            f"{title_of(folder)}: config.json describes {layers:,} layers, but the weight files hold only "
            f"{len(tensors.shapes):,} tensors. The two do not belong together."
        )
    unsuited = refusal(info.family, info.architecture, config)
    if unsuited:
        raise CheckpointError(f"{title_of(folder)}: {unsuited}")
    kind, options = opening(info.family, info.architecture, config)
    try:
        with torch.device("meta"):
            empty = kind.from_config(config, **options)
            described = sum(p.numel() for p in empty.parameters())
    except Exception as cause:
        raise CheckpointError(
            f"{title_of(folder)}: no model can be built from its config.json: {brief(cause)}."
        ) from cause
    # tied weights are stored once, heads may be left out: a factor of two covers both
    if described > 2 * tensors.parameters + 1_000_000:
        raise CheckpointError(
            f"{title_of(folder)}: config.json describes {described:,} parameters, but the weight files hold only "
            f"{tensors.parameters:,}. The two do not belong together."
        )


# --------------------------------------------------------------------------- loading


def _tokenizer(folder: Path) -> Any:
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise CheckpointError(
            f"{title_of(folder)} has no tokenizer (tokenizer.json), so no text can be read. Add the file."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False, use_fast=True)
    except Exception as cause:
        raise CheckpointError(
            f"{title_of(folder)}: its tokenizer can not be read: {brief(cause)}. Fetch it again."
        ) from cause
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{title_of(folder)} has a tokenizer that does not tell which characters a token covers. "
            "Save it again as tokenizer.json."
        )
    return tokenizer


def _check_vocabulary(folder: Path, tokenizer: Any, info: CheckpointInfo) -> None:
    if info.vocabulary and len(tokenizer) > info.vocabulary:
        raise CheckpointError(
            f"{title_of(folder)}: its tokenizer knows {len(tokenizer):,} tokens, the model only {info.vocabulary:,}. "
            "They do not belong together."
        )


def _with_tokenizer(info: CheckpointInfo, tokenizer: Any) -> CheckpointInfo:
    bound = tokenizer.model_max_length
    context = info.context
    if isinstance(bound, int) and 0 < bound < 1 << 30:
        context = bound if context is None else min(bound, context)
    if info.weights_only:
        context = min(most_tokens(info.stacks), context or sys.maxsize)
    mask = tokenizer.mask_token if info.family == "masked" else None
    return replace(info, context=context, mask_token=mask)


def _weights(
    folder: Path, config: Any, info: CheckpointInfo, device: torch.device | None, dtype: torch.dtype
) -> torch.nn.Module:
    transformers_logging.disable_progress_bar()  # a second or two, and nowhere to draw it
    kind, options = opening(info.family, info.architecture, config)
    try:
        module, report = kind.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            weights_only=True,
            dtype=dtype,
            **({"device_map": "auto"} if device is None else {}),
            attn_implementation="eager" if info.weights_only else IMPLEMENTATION,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below, in a sentence that names one
            **options,
        )
        if device is not None and device.type != "cpu":
            module.to(device)
    except Exception as cause:
        if devices.is_out_of_memory(cause):
            raise  # its own sentence, with other devices to choose from
        raise CheckpointError(f"{title_of(folder)} can not be loaded: {brief(cause)}.") from cause
    missing = sorted(report.get("missing_keys", ()))
    mismatched = sorted(report.get("mismatched_keys", ()))
    if mismatched:
        name, found, wanted = mismatched[0] if isinstance(mismatched[0], tuple) else (mismatched[0], "?", "?")
        raise CheckpointError(
            f"{title_of(folder)}: {len(mismatched)} tensors have another shape than config.json says; {name} is "
            f"{tuple(found)} in the file and should be {tuple(wanted)}. The two do not belong together."
        )
    if missing:
        # transformers would fill them with random numbers; a picture of those would be a picture of noise
        raise CheckpointError(
            f"{title_of(folder)} is incomplete: {len(missing)} tensors are not in its files, {missing[0]} first. "
            "They would have to be made up at random, so the model was not opened."
        )
    assert isinstance(module, torch.nn.Module)
    broken = [name for name, p in module.named_parameters() if not p.is_meta and not bool(torch.isfinite(p).all())]
    if broken:
        raise CheckpointError(
            f"{title_of(folder)} is broken: {len(broken)} of its tensors hold values that are no numbers "
            f"(NaN or infinite), {broken[0]} first. Every figure would be meaningless, so the model was not opened."
        )
    left_over = _left_over_layers(report.get("unexpected_keys", ()), module)
    if left_over:
        raise CheckpointError(
            f"{title_of(folder)}: its files hold more layers than config.json describes; {left_over[0]} would be "
            "left out. The two do not belong together."
        )
    return module


def _left_over_layers(unexpected: Iterable[str], module: torch.nn.Module) -> list[str]:
    """Of the tensors that the model has no place for, those that are one more of what it has (h.8 beside h.0)."""
    known = {_NUMBER.sub("#", name) for name in module.state_dict()}
    return sorted(name for name in unexpected if _NUMBER.sub("#", name) in known)
