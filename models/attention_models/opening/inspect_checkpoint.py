"""What a checkpoint is, told and checked before a weight of it is read: its config, the headers, the tokenizer.

No pickle is ever loaded and no code that comes with a checkpoint is ever run.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import transformers
from transformers import AutoConfig
from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from attention_models.files.adapter_files import base_of, has_adapter, is_adapter, read_adapter, without_base
from attention_models.files.bounds import Accounted, out_of_bounds, too_long_header
from attention_models.files.catalogue import Card, folder_of, read_card
from attention_models.files.families import settings_of, shown_part, text_part
from attention_models.files.gguf import GgufHeader, is_gguf, missing_packages, parts_only, read_gguf
from attention_models.files.gguf_reading import reading_once
from attention_models.files.names import SUFFIX, title_of, whole_of
from attention_models.files.safe_files import not_written
from attention_models.files.training_steps import snapshot_path
from attention_models.files.weight_files import (
    adapter,
    check_not_empty,
    check_texts,
    read_headers,
    read_json,
    summary,
    wrong_count,
)
from attention_models.opening.inspection import Inspection, checked, info_of
from attention_models.opening.snapshots import title_at, training_of, weights_header
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import HubListing
from attention_models.protocol.values import AdapterInfo
from attention_models.textbook import pretrained as pretrained  # lets transformers know the textbook transformer

# What a GGUF file is, told from its header.


def inspect_gguf_header(reference: str, path: Path, listing: HubListing) -> Inspection:
    """Of the GGUF file of `listing` that will lie at `path`. transformers is shown its header with a hole behind it."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        stand_in = Path(folder, path.name)
        try:
            with stand_in.open("wb") as stream:
                stream.write(listing.header)
                stream.truncate(listing.size)
        except OSError as cause:
            raise CheckpointError(not_written(f"The header of {path.name}", Path(folder), cause)) from cause
        examined = inspect_gguf(reference, stand_in)
    return replace(examined, info=replace(examined.info, folder=str(path.parent)))


def inspect_gguf(reference: str, path: Path) -> Inspection:
    header = read_gguf(path)
    check_not_empty(path.name, header.tensors.shapes)
    if header.is_part:
        raise parts_only(path.name)
    lacking = missing_packages()
    if lacking:
        raise CheckpointError(lacking)
    if "tokenizer.ggml.model" not in header.settings:
        raise CheckpointError(
            f"{path.name} holds no tokenizer, so no text can be read. Open another file of the model."
        )
    wrong = _out_of_bounds(header)
    if wrong:
        raise CheckpointError(f"{path.name}: its header is wrong: {wrong}. Fetch it again.")
    try:
        with reading_once():
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
    info = replace(info_of(reference, path.parent, architecture, config, header.tensors, card), gguf=path.name)
    return checked(Inspection(info, config), header.tensors)


def _out_of_bounds(header: GgufHeader) -> str:
    """What its header says that its tensors do not account for, as a clause; "" where there is nothing."""
    accounted = Accounted.by(header.tensors)
    if too_long := too_long_header(header.length, accounted):
        return too_long
    for name, count in header.texts.items():
        if count > accounted.most:
            return f"{name[:80]} has {count:,} entries, and {accounted.words}"
    prefix = f"{header.architecture}."
    numbers = {key: value for key, value in header.settings.items() if key.startswith(prefix)}
    return out_of_bounds(numbers, {key.rpartition(".")[2] for key in numbers}, accounted)


_SURROGATE = re.compile("[\ud800-\udfff]")  # what Python makes of a byte that is no text


def find(reference: str) -> Path:
    """The folder or the GGUF file that `reference` names.

    Raises:
        CheckpointError: there is none.
    """
    if not reference.strip():  # the current folder to `Path`
        raise CheckpointError("No checkpoint is named. Choose a shipped one, or a folder that holds its config.json.")
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
    return path.absolute()  # what is found there is said in scripts, which run in other folders


def inspect_checkpoint(reference: str, listing: HubListing | None = None) -> Inspection:
    """Everything that config and headers say; a `listing` stands for the files of a hub that are not here yet.

    Raises:
        CheckpointError: it cannot be opened; the sentence says what is wrong, where and what to do.
    """
    path = Path(listing.folder, listing.gguf) if listing is not None else find(reference)
    try:
        if listing is not None and listing.header:
            return inspect_gguf_header(reference, path, listing)
        return inspect_gguf(reference, path) if path.is_file() else _examine_folder(reference, path, listing)
    except OSError as cause:  # taken away meanwhile, or not allowed
        raise CheckpointError(
            f"{title_of(path)} cannot be read ({cause.strerror or summary(cause)}). "
            "Check that it is still there and that you may read it."
        ) from cause


def _examine_folder(reference: str, path: Path, listing: HubListing | None) -> Inspection:
    if is_adapter(path):
        return _examine_adapter(reference, path, listing)
    raw = read_json(path / "config.json", "Choose the folder that holds the model's config.json.")
    title = title_of(path)
    if "auto_map" in raw:
        raise CheckpointError(
            f"{title} needs program code that comes with it (auto_map in config.json). "
            "Code from a checkpoint is never run here; use a checkpoint of a family that transformers knows."
        )
    training = training_of(reference, path) if listing is None else None
    if training is not None and training.step is not None:
        tensors, title = weights_header(snapshot_path(path, training.step)), title_at(title, training)
    else:
        tensors = listing.tensors if listing is not None else read_headers(path)
    accounted = Accounted.by(tensors)
    check_texts(path, accounted)
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
    wrong = wrong_count(raw) or out_of_bounds(raw, settings_of(transformers.CONFIG_MAPPING[model_type]), accounted)
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
    text, whole = text_part(architecture, config), whole_of(reference)
    if whole is not None and text is None:
        raise CheckpointError(f"{title} has no text half of its own. Open {whole}, without {SUFFIX}.")
    both = config
    architecture, config = text if whole is not None and text is not None else shown_part(architecture, config)
    info = info_of(reference, path, architecture, config, tensors, read_card(path), training)
    if whole is not None:
        info = replace(info, name=f"{info.name}, text half")
    elif text is not None:
        info = replace(info, text_part=f"{reference}{SUFFIX}")
    if listing is None and has_adapter(path):
        info = replace(info, adapter=_adapter_of(path))
    return checked(Inspection(info, config, is_half=config is not both), tensors)


def _examine_adapter(reference: str, path: Path, listing: HubListing | None) -> Inspection:
    """Of a folder with an adapter alone: the model that it was made for, where that is on this computer."""
    found = _adapter_of(path, listing)
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
    info = replace(examined.info, reference=reference, name=found.name, shipped=False, adapter=found)
    return replace(examined, info=info)


def _adapter_of(folder: Path, listing: HubListing | None = None) -> AdapterInfo:
    try:
        return read_adapter(folder, None if listing is None else listing.tensors.shapes)
    except CheckpointError as error:
        return AdapterInfo(title_of(folder), str(folder), "adapter", why=summary(error).rstrip("."))
