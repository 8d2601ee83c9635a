"""What a checkpoint is, told and checked before a weight of it is read: its config, the headers, the tokenizer.

No pickle is ever loaded and no code that comes with a checkpoint is ever run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoTokenizer
from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from models.files import devices
from models.files.adapter_files import base_of, has_adapter, read_adapter, without_base
from models.files.catalogue import WEIGHTS, Card, folder_of, read_card
from models.files.families import (
    auto_class,
    channels_of,
    class_head_of,
    classes_of,
    context_of,
    family_of,
    refusal,
    shown_part,
    stacks_of,
    text_config,
    vocabulary_of,
    weights_only,
    wordless,
)
from models.files.gguf import gc_deferred, is_gguf, missing_packages, parts_only, read_gguf
from models.files.memory import check_fits, most_tokens
from models.files.names import title_of
from models.files.weight_files import adapter, check_sizes, read_headers, read_json, summary, wrong_count
from models.files.whole_files import not_written
from models.opening.missing_tensors import Misshapen, is_of_head, misshapen_tensors, missing_tensors
from models.protocol.errors import CheckpointError
from models.protocol.hub import TOKENIZERS, HubListing, Tensors
from models.protocol.values import AUTO, AdapterInfo, CheckpointInfo, Placement
from models.text.pairs import reads_pairs
from models.text.templates import has_template
from models.text.tokenizer_checks import misfit_of, panics_raised

_SURROGATE = re.compile("[\ud800-\udfff]")  # what Python makes of a byte that is no text


@dataclass(frozen=True, slots=True)
class Examined:
    """A transformer that nothing yet speaks against, and what transformers needs to open it."""

    info: CheckpointInfo
    config: Any
    missing: tuple[str, ...] = ()  # tensors that it has and its files have not
    misshapen: tuple[Misshapen, ...] = ()  # tensors that do not fit its config

    @property
    def folder(self) -> Path:
        return Path(self.info.folder)

    @property
    def title(self) -> str:
        """What sentences call it: the folder's or the file's name, which a card does not change."""
        return self.info.gguf or title_of(self.folder)

    @property
    def source(self) -> dict[str, Any]:
        """Keyword arguments of every `from_pretrained`."""
        files = {"gguf_file": self.info.gguf} if self.info.gguf else {}
        return {"local_files_only": True, "trust_remote_code": False, **files}


def find(reference: str) -> Path:
    """The folder or the GGUF file that `reference` names.

    Raises:
        CheckpointError: there is none.
    """
    try:
        path = folder_of(reference)
        found = path.is_dir() or is_gguf(path)
    except (OSError, RuntimeError):  # a name too long, a folder that may not be read, the home of nobody ("~nobody")
        found = False
    if not found:
        raise CheckpointError(
            f"There is no checkpoint called “{reference}”: it is neither a shipped one nor a folder nor a GGUF file. "
            "Choose a folder that holds config.json and model.safetensors, or write hf://owner/name for one of Hugging "
            "Face."
        )
    if _SURROGATE.search(str(path)):
        shown = _SURROGATE.sub("\ufffd", str(path))
        raise CheckpointError(
            f"“{shown}” has bytes in its name that are no text (no UTF-8), and the libraries that read it want text. "
            "Rename it."
        )
    return path


def examine(reference: str, listing: HubListing | None = None) -> Examined:
    """Everything that config and headers say; a `listing` stands for the files of a hub that are not here yet.

    Raises:
        CheckpointError: it cannot be opened; the sentence says what is wrong, where and what to do.
    """
    path = Path(listing.folder, listing.gguf) if listing is not None else find(reference)
    try:
        if listing is not None and listing.header:
            return _examine_header(reference, path, listing)
        return _examine_gguf(reference, path) if path.is_file() else _examine_folder(reference, path, listing)
    except OSError as cause:  # taken away meanwhile, or not allowed
        raise CheckpointError(
            f"{title_of(path)} cannot be read ({cause.strerror or summary(cause)}). "
            "Check that it is still there and that you may read it."
        ) from cause


def _examine_folder(reference: str, path: Path, listing: HubListing | None) -> Examined:
    if listing is None and has_adapter(path) and not (path / "config.json").is_file():
        return _examine_adapter(reference, path)
    raw = read_json(path / "config.json", "Choose the folder that holds the model's config.json.")
    check_sizes(path)
    title = title_of(path)
    if "auto_map" in raw:
        raise CheckpointError(
            f"{title} needs program code that comes with it (auto_map in config.json). "
            "Code from a checkpoint is never run here; use a checkpoint of a family that transformers knows."
        )
    tensors = listing.tensors if listing is not None else read_headers(path)
    model_type = raw.get("model_type")
    if not isinstance(model_type, str):
        raise CheckpointError(
            f"{title}: config.json names no model type, so it is not known which code runs it. "
            "Check model_type, or fetch the checkpoint that transformers wrote."
        )
    if model_type not in transformers.CONFIG_MAPPING:
        raise CheckpointError(
            f"{title}: config.json names the model type “{model_type}”, which transformers "
            f"{transformers.__version__} does not know. Check model_type, or update transformers."
        )
    if raw.get("quantization_config"):
        raise CheckpointError(
            f"{title} has its weights packed (quantization_config in config.json), which this program does not unpack. "
            "Open the checkpoint that it was made from, or a GGUF file of it."
        )
    wrong = wrong_count(raw)
    if wrong:
        raise CheckpointError(f"{title}: {wrong}. Correct it in config.json, or fetch the file again.")
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as cause:
        raise CheckpointError(
            f"{title}: config.json cannot be understood: {summary(cause)}. Correct it, or fetch the file again."
        ) from cause
    # both may name a kernel on a hub, which is code, and would be fetched and run
    config._attn_implementation = config._experts_implementation = None
    architectures = raw.get("architectures")
    named = architectures[0] if isinstance(architectures, list) and architectures else ""
    architecture = named if isinstance(named, str) else ""
    architecture, config = shown_part(architecture, config)
    info = _info(reference, path, architecture, config, tensors, read_card(path))
    if listing is None and has_adapter(path):
        info = replace(info, adapter=_adapter_of(path, info))
    return _checked(Examined(info, config), tensors)


def _examine_adapter(reference: str, path: Path) -> Examined:
    """Of a folder with an adapter alone: the model that it was made for, where that is on this computer."""
    found = read_adapter(path)
    if found.kind.upper() != "LORA":
        raise adapter(title_of(path))
    base = base_of(found)
    if base is None:
        raise without_base(found)
    folder = find(base)
    if found.why:
        raise CheckpointError(f"{found.words}. Without it {base} can be opened by itself.")
    if not (folder / "config.json").is_file() or has_adapter(folder):
        raise CheckpointError(f"{found.name} is an adapter for {base}, which is no plain checkpoint. Open {base}.")
    examined = _examine_folder(base, folder, None)
    put_on = _adapter_of(path, examined.info)
    if put_on.why:
        raise CheckpointError(f"{put_on.words}. Without it {base} can be opened by itself.")
    info = replace(examined.info, reference=reference, name=found.name, shipped=False, adapter=put_on)
    return replace(examined, info=info)


def _adapter_of(folder: Path, info: CheckpointInfo) -> AdapterInfo:
    try:
        found = read_adapter(folder)
    except CheckpointError as error:
        return AdapterInfo(title_of(folder), str(folder), "adapter", why=summary(error).rstrip("."))
    if not found.why and info.family == "vision":
        return replace(found, why="adapters of models of text alone are read here")
    return found


def _examine_header(reference: str, path: Path, listing: HubListing) -> Examined:
    """Of the GGUF file of `listing` that will lie at `path`. transformers is shown its header with a hole behind it."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        stand_in = Path(folder, path.name)
        try:
            with stand_in.open("wb") as stream:
                stream.write(listing.header)
                stream.truncate(listing.size)
        except OSError as cause:
            raise CheckpointError(not_written(f"The header of {path.name}", Path(folder), cause)) from cause
        examined = _examine_gguf(reference, stand_in)
    return replace(examined, info=replace(examined.info, folder=str(path.parent)))


def _examine_gguf(reference: str, path: Path) -> Examined:
    header = read_gguf(path)
    if header.is_part:
        raise parts_only(path.name)
    lacking = missing_packages()
    if lacking:
        raise CheckpointError(lacking)
    if "tokenizer.ggml.model" not in header.settings:
        raise CheckpointError(
            f"{path.name} holds no tokenizer, so no text can be read. Open another file of the model."
        )
    try:
        with gc_deferred():
            config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
    except Exception as cause:
        if header.architecture in GGUF_SUPPORTED_ARCHITECTURES:  # then it is the numbers
            raise CheckpointError(
                f"{path.name}: no model can be built from its header: {summary(cause)}. Fetch it again."
            ) from cause
        raise CheckpointError(
            f"{path.name}: transformers {transformers.__version__} cannot open a GGUF file of the architecture "
            f"“{header.architecture}”: {summary(cause)}. Open the checkpoint that it was made from."
        ) from cause
    wrong = wrong_count(config.to_dict())
    if wrong:
        raise CheckpointError(f"{path.name}: its header is wrong: {wrong}. Fetch it again.")
    described, found = header.settings.get(f"{header.architecture}.block_count"), header.layers
    if isinstance(described, int) and described < found:  # transformers would leave the others out
        raise CheckpointError(
            f"{path.name}: its header describes {described:,} layers, and it holds tensors of {found:,}. "
            "The two do not belong together."
        )
    architecture = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config.model_type, "")
    card = Card(path.stem, path.parent, path.stem)
    info = replace(_info(reference, path.parent, architecture, config, header.tensors, card), gguf=path.name)
    return _checked(Examined(info, config), header.tensors)


def _info(reference: str, folder: Path, architecture: str, config: Any, tensors: Tensors, card: Card) -> CheckpointInfo:
    family = family_of(architecture, config)
    text = text_config(config)
    width = int(getattr(text, "hidden_size", 0) or 0)
    stacks = stacks_of(config, family)
    heads = max((stack.heads for stack in stacks), default=0)
    head_dim = getattr(text, "head_dim", None) or getattr(text, "d_kv", None) or (width // heads if heads else 0)
    return CheckpointInfo(
        reference=reference,
        name=card.title,
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
        summary=card.summary,
        example=card.example,
        second=card.second,
        reads=card.reads,
        prefix=card.prefix,
        shipped=folder.parent == WEIGHTS,
        weights_only=weights_only(architecture, config),
        wordless=wordless(family, architecture, config),
        class_head=class_head_of(architecture, config) if family == "encoder" else None,
        head_dim=int(head_dim),
    )


def _checked(examined: Examined, tensors: Tensors) -> Examined:
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
    if layers > max(len(tensors.shapes), 1):
        raise CheckpointError(
            f"{title}: {says} describes {layers:,} layers, but the weight files hold only "
            f"{len(tensors.shapes):,} tensors. The two do not belong together."
        )
    kind, options = auto_class(info.family, info.architecture, config, info.class_head)
    try:
        with torch.device("meta"):
            empty = kind.from_config(config, **options)
            described = sum(p.numel() for p in empty.parameters())
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
    if info.gguf:  # with names and shapes of its own, which loading checks
        return examined
    missing = missing_tensors(empty, tensors.shapes)
    has_head = info.family == "masked" or info.class_head is not None
    if has_head and missing and all(is_of_head(empty, name) for name in missing):
        lacking = f"{missing[0]} is not in the file"
        return replace(examined, info=replace(info, family="encoder", class_head=None, wordless=lacking))
    return replace(examined, missing=missing, misshapen=misshapen_tensors(empty, tensors.shapes))


# --------------------------------------------------------------------------- what else opening needs


def check_opens(examined: Examined, placement: Placement) -> None:
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


def open_tokenizer(examined: Examined) -> tuple[Any, CheckpointInfo]:
    """The tokenizer, and the info with what it adds.

    Raises:
        CheckpointError: none, a broken one, or one that belongs to another model.
    """
    folder, title, info = examined.folder, examined.title, examined.info
    if not info.gguf and not any((folder / name).is_file() for name in TOKENIZERS):
        raise no_tokenizer(title)
    try:
        with panics_raised():
            tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=True, **examined.source)
    except Exception as cause:
        if "trust_remote_code" in str(cause):
            raise CheckpointError(
                f"{title} has a tokenizer that is program code, which is never run here. "
                "Save it again as tokenizer.json."
            ) from cause
        raise CheckpointError(f"{title}: its tokenizer cannot be read: {summary(cause)}. Fetch it again.") from cause
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{title} has a tokenizer that does not tell which characters a token covers. "
            "Save it again as tokenizer.json."
        )
    wrong = misfit_of(tokenizer, info.vocabulary)
    if wrong:
        raise CheckpointError(f"{title}: {wrong}")
    bound = tokenizer.model_max_length
    if not isinstance(bound, (int, float)):  # transformers takes what stands there, and compares lengths with it
        tokenizer.model_max_length = VERY_LARGE_INTEGER
    context = info.context
    if isinstance(bound, int) and 0 < bound < 1 << 30:
        context = bound if context is None else min(bound, context)
    if info.weights_only:
        context = min(most_tokens(info.stacks), context or sys.maxsize)
    mask = tokenizer.mask_token if info.family == "masked" else None
    chat = info.family == "causal" and has_template(tokenizer)
    pairs = reads_pairs(tokenizer, info.family)
    return tokenizer, replace(info, context=context, mask_token=mask, chat=chat, pairs=pairs)


def no_tokenizer(title: str) -> CheckpointError:
    return CheckpointError(f"{title} has no tokenizer (tokenizer.json), so no text can be read. Add the file.")
