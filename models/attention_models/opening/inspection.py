"""What is known of a checkpoint once its files speak for themselves, and what they say that does not go together."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

from attention_models.files import devices
from attention_models.files.catalogue import WEIGHTS, Card
from attention_models.files.families import (
    auto_class,
    channels_of,
    class_head_of,
    classes_of,
    context_of,
    family_of,
    from_config,
    pair_head_of,
    refusal,
    stacks_of,
    text_config,
    vocabulary_of,
    weights_only,
    wordless,
)
from attention_models.files.memory import check_fits
from attention_models.files.names import title_of
from attention_models.files.weight_files import summary
from attention_models.opening.building import bounded
from attention_models.opening.snapshots import summary_of, title_at
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import Tensors
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import AUTO, CheckpointInfo, Placement, TrainingSteps

# Which tensors of a model are not in its files, or are others, told from the names and shapes in their headers.


Shape = tuple[int, ...]
Misshapen = tuple[str, Shape, Shape]
"""A parameter, the shape that its tensor has in the file, and the one that the config says."""


def missing_tensors(empty: PreTrainedModel, in_files: Collection[str]) -> tuple[str, ...]:
    """The parameters of `empty`, on the meta device, that no tensor of the files becomes when transformers reads them.

    Where its way of renaming cannot be followed nothing is said: loading finds out all the same.
    """
    try:
        there = _as_read(empty, in_files)
    except Exception:  # the mapping is transformers' own affair, and may move
        return ()
    aliases: dict[int, list[str]] = {}
    for name, parameter in empty.named_parameters(remove_duplicate=False):
        aliases.setdefault(id(parameter), []).append(name)  # tied ones need to be there once
    ignored = empty._keys_to_ignore_on_load_missing or ()
    missing = [names[0] for names in aliases.values() if not there.intersection(names)]
    return tuple(name for name in missing if not any(re.search(pattern, name) for pattern in ignored))


def is_of_head(empty: PreTrainedModel, name: str) -> bool:
    """Whether a parameter belongs to what stands on top of the layers, a pooler included."""
    prefix = empty.base_model_prefix
    if not prefix or not hasattr(empty, prefix):
        return False
    return not name.startswith(f"{prefix}.") or name.startswith(f"{prefix}.pooler.")


def misshapen_tensors(empty: PreTrainedModel, in_files: Mapping[str, Shape]) -> tuple[Misshapen, ...]:
    """The tensors of the files that have another shape than the parameter of `empty` which they become.

    Those that are put together or taken apart on the way are left for loading to check.
    """
    try:
        renamings, converters = _mapping(empty)
        prefix, state = empty.base_model_prefix, empty.state_dict()
        targets = {name: rename_source_key(name, renamings, converters, prefix, state) for name in in_files}
    except Exception:  # as above
        return ()
    plain = {name: target for name, (target, converter) in targets.items() if converter is None and target in state}
    pairs = [(target, in_files[name], tuple(state[target].shape)) for name, target in plain.items()]
    return tuple(sorted(pair for pair in pairs if pair[1] != pair[2]))


def _as_read(empty: PreTrainedModel, in_files: Collection[str]) -> set[str]:
    renamings, converters = _mapping(empty)
    if any(len(converter.target_patterns) > 1 for converter in converters):
        raise ValueError("a tensor becomes several, of which only one would be told")
    prefix, state = empty.base_model_prefix, empty.state_dict()
    renamed = {rename_source_key(name, renamings, converters, prefix, state)[0] for name in in_files}
    # a name that the model has is kept by transformers where a renaming leads nowhere
    return renamed | {rename_source_key(name, [], [], prefix, state)[0] for name in in_files}


def _mapping(empty: PreTrainedModel) -> tuple[list[WeightRenaming], list[WeightConverter]]:
    mapping = get_model_conversion_mapping(empty)
    return (
        [entry for entry in mapping if isinstance(entry, WeightRenaming)],
        [entry for entry in mapping if isinstance(entry, WeightConverter)],
    )


_MOST_IN_TABLES = 1 << 26


@dataclass(frozen=True, slots=True)
class Inspection:
    """A transformer that nothing yet speaks against, and what transformers needs to open it."""

    info: CheckpointInfo
    config: Any
    missing: tuple[str, ...] = ()  # tensors that it has and its files have not
    misshapen: tuple[Misshapen, ...] = ()  # tensors that do not fit its config
    is_half: bool = False  # of the model in its files

    @property
    def folder(self) -> Path:
        return Path(self.info.folder)

    @property
    def title(self) -> str:
        """What sentences call it: the folder's or the file's name, which a card does not change."""
        return self.info.gguf or title_at(title_of(self.folder), self.info.training)

    @property
    def source(self) -> dict[str, Any]:
        """Keyword arguments of every `from_pretrained`."""
        files = {"gguf_file": self.info.gguf} if self.info.gguf else {}
        return {"local_files_only": True, "trust_remote_code": False, **files}


def info_of(
    reference: str,
    folder: Path,
    architecture: str,
    config: Any,
    tensors: Tensors,
    card: Card,
    training: TrainingSteps | None = None,
) -> CheckpointInfo:
    """What a config and the headers say, under the name that the card gives it."""
    family = family_of(architecture, config)
    text = text_config(config)
    width = int(getattr(text, "hidden_size", 0) or 0)
    stacks = stacks_of(config, family)
    heads = max((stack.heads for stack in stacks), default=0)
    head_dim = getattr(text, "head_dim", None) or getattr(text, "d_kv", None) or (width // heads if heads else 0)
    return CheckpointInfo(
        reference=reference,
        name=title_at(card.title, training),
        folder=str(folder),
        family=family,
        model_type=config.model_type,
        architecture=architecture or type(config).__name__.removesuffix("Config"),
        stacks=stacks,
        width=width,
        context=context_of(config),
        vocabulary=vocabulary_of(config) if family != "vision" else classes_of(architecture, config),
        channels=channels_of(config) if family == "vision" else 0,
        parameters=tensors.parameters,
        file_bytes=tensors.file_bytes,
        summary=summary_of(card.summary, training),
        look=card.look,
        example=card.example,
        second=card.second,
        reads=card.reads,
        prefix=card.prefix,
        shipped=folder.parent == WEIGHTS,
        weights_only=weights_only(architecture, config),
        additive=getattr(config, "score", "") == "additive",
        wordless=wordless(family, architecture, config),
        class_head=class_head_of(architecture, config) if family == "encoder" else None,
        pair_head=pair_head_of(architecture, config) if family == "masked" else None,
        head_dim=int(head_dim),
        training=training,
    )


def checked(examined: Inspection, tensors: Tensors) -> Inspection:
    """Refuse a config that asks for far more than the files hold, before anything is built from it.

    A head that fills in masks or tells classes apart and is not in the files is left out: the rest is then an encoder
    without one.
    """
    info, config, title = examined.info, examined.config, examined.title
    says = f"the header of {title}" if info.gguf else "config.json"
    layers = sum(stack.layers for stack in info.stacks)
    unsuited = refusal(info.family, info.architecture, config)
    if unsuited:
        raise CheckpointError(f"{title}: {unsuited}")
    if any(stack.layers < 1 for stack in info.stacks):
        raise CheckpointError(f"{title}: {says} describes no layers. Check the number of layers in it.")
    filled = len(tensors.filled)
    if layers > max(filled, 1):
        raise CheckpointError(
            f"{title}: {says} describes {layers:,} layers, but the weight files hold only "
            f"{filled:,} tensors. The two do not belong together."
        )
    kind, options = auto_class(info, config)
    if kind is None:
        raise CheckpointError(
            f"{title}: {says} describes {config.model_type}, a part of a model that transformers "
            f"{transformers.__version__} opens only as a whole. Open the whole model."
        )
    try:
        with torch.device("meta"), bounded(filled):
            empty = from_config(kind, config, **options)
            described = sum(p.numel() for p in empty.parameters())
            tables = sum(buffer.numel() for buffer in empty.buffers())
    except Cancelled:
        raise
    except Exception as cause:
        raise CheckpointError(
            f"{title}: no model can be built from {says}: {summary(cause)}. Check the numbers in it, or fetch it again."
        ) from cause
    # tied weights are stored once, heads may be left out: a factor of two covers both
    if described > 2 * tensors.parameters + 1_000_000:
        raise CheckpointError(
            f"{title}: {says} describes {described:,} parameters, but the weight files hold only "
            f"{tensors.parameters:,}. The two do not belong together."
        )
    if tables > 2 * tensors.parameters + _MOST_IN_TABLES:  # which loading fills with numbers
        raise CheckpointError(
            f"{title}: {says} asks for tables of {tables:,} numbers beside its {tensors.parameters:,} parameters. "
            "Check the numbers in it (of positions, for one), or fetch it again."
        )
    if examined.is_half:  # the files hold the other one too
        examined = replace(examined, info=replace(info, parameters=described))
        info = examined.info
    if info.gguf:  # with names and shapes of its own, which loading checks
        return examined
    missing = missing_tensors(empty, tensors.shapes)
    if info.pair_head is not None and missing and all(is_of_head(empty, name) for name in missing):
        return checked(replace(examined, info=replace(info, pair_head=None)), tensors)  # its other head may be there
    has_head = info.family == "masked" or info.class_head is not None
    if has_head and missing and all(is_of_head(empty, name) for name in missing):
        lacking = f"{missing[0]} is not in the file"
        return replace(examined, info=replace(info, family="encoder", class_head=None, wordless=lacking))
    return replace(examined, missing=missing, misshapen=misshapen_tensors(empty, tensors.shapes))


def check_opens(examined: Inspection, placement: Placement) -> None:
    """Refuse what could be understood, and still cannot be opened here and now.

    Raises:
        CheckpointError: tensors that are not in the files, too little memory (`NoRoomError`).
    """
    info = examined.info
    if examined.misshapen:
        raise misfit(examined.title, examined.misshapen)
    if examined.missing:
        raise incomplete(examined.title, examined.missing)
    where, free = room(placement)
    check_fits(info, placement.dtype, where, free)


def room(placement: Placement) -> tuple[str, int | None]:
    """What to call the device that `placement` names, and its free bytes; None where its driver does not say.

    Raises:
        CheckpointError: there is no such device.
    """
    device, _ = devices.parse(placement)
    if device is None:
        return "all devices together", sum(found.free or 0 for found in devices.devices() if found.name != AUTO)
    return devices.label_of(device), devices.free_memory(device)[0]


def misfit(title: str, misshapen: Sequence[Misshapen]) -> CheckpointError:
    name, found, wanted = misshapen[0]
    count = "1 tensor has" if len(misshapen) == 1 else f"{len(misshapen)} tensors have"
    return CheckpointError(
        f"{title}: {count} another shape than config.json says; {name} is {found} in the file and should be "
        f"{wanted}. The two do not belong together."
    )


def incomplete(title: str, missing: Sequence[str]) -> CheckpointError:
    # transformers would fill them with random numbers; a picture of those would be a picture of noise
    what = f"{missing[0]} is not in the file" if len(missing) == 1 else _several(missing)
    return CheckpointError(
        f"{title} is incomplete: {what}. It would have to be made up at random, so the model was not opened. "
        "Fetch a checkpoint that was saved whole, with its output head."
    )


def _several(missing: Sequence[str]) -> str:
    return f"{len(missing)} tensors are not in its files, {missing[0]} first"
