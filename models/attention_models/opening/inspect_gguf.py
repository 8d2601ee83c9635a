"""What a GGUF file is, told from its header."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import transformers
from transformers import AutoConfig
from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from attention_models.files.bounds import Accounted, out_of_bounds, too_long_header
from attention_models.files.catalogue import Card
from attention_models.files.gguf import GgufHeader, missing_packages, parts_only, read_gguf
from attention_models.files.gguf_reading import reading_once
from attention_models.files.weight_files import check_not_empty, summary, wrong_count
from attention_models.files.whole_files import not_written
from attention_models.opening.inspection import Inspection, checked, info_of
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import HubListing


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
