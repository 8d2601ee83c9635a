"""Which files of a repository on a hub are worth fetching: what a safetensors checkpoint needs, and GGUF files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attention_models.files.adapter_files import CONFIG, PICKLE, TENSORS
from attention_models.files.gguf import parts_only
from attention_models.files.gguf_names import is_part
from attention_models.files.names import HubName, is_sound_file
from attention_models.files.weight_files import PICKLES, of_ctranslate2, only_a_pickle
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import TOKENIZERS, HubFile

_MOST_SHARDS = 1000
_MOST_FILES = 1000  # GGUF files of one repository
_MOST_BYTES = 1 << 50
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_BESIDE = (
    "config.json",
    "generation_config.json",
    "explorer.json",
    *TOKENIZERS,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "source.spm",
    "target.spm",
    "chat_template.jinja",
    "preprocessor_config.json",
    "modules.json",
    "1_Pooling/config.json",
)


@dataclass(frozen=True, slots=True)
class Contents:
    """`files` are what the name opens, its config first; none where one of `ggufs` has to be chosen."""

    files: tuple[HubFile, ...]
    safetensors: int  # bytes of such weights; 0 where there are none
    ggufs: tuple[HubFile, ...]
    parts: int  # GGUF files beside those that are parts of split ones


def contents_of(name: HubName, siblings: Iterable[Any]) -> Contents:
    """What of the files that a hub lists can be opened.

    Raises:
        CheckpointError: nothing, or not the file that `name` names.
        ValueError, TypeError, AttributeError: no list as a hub gives.
    """
    there = {sibling.rfilename: sibling for sibling in siblings}
    named = [file for file in there if is_sound_file(file)][:_MOST_FILES]
    whole = [file for file in named if not is_part(file)]
    parts = len(named) - len(whole)
    ggufs = tuple(sorted((_file(there, file) for file in whole), key=lambda file: (file.size, file.name)))
    if name.file:
        if is_part(name.file):
            raise parts_only(name.file)
        if name.file not in there:
            raise CheckpointError(
                f"{name.repository} has no file {name.file}. Look up {name.repository} to see which GGUF files it has."
            )
        files: tuple[HubFile, ...] = (_file(there, name.file),)
    elif ggufs and not _weights(there):
        files = ()
    else:
        files = _checkpoint(name, there, parts)
    weights = _weights(there) or ([TENSORS] if _is_adapter(there) else [])
    safetensors = sum(_file(there, file).size for file in weights)
    return Contents(files, safetensors, ggufs, parts)


def _weights(there: Mapping[str, Any]) -> list[str]:
    """The safetensors files of the weights, with their index; none where the checkpoint is incomplete."""
    shards = sorted(file for file in there if _SHARD.fullmatch(file))
    if "config.json" not in there:
        return []
    if _SINGLE in there:
        return [_SINGLE]
    return [_INDEX, *shards] if _INDEX in there and 0 < len(shards) <= _MOST_SHARDS else []


def _checkpoint(name: HubName, there: Mapping[str, Any], parts: int) -> tuple[HubFile, ...]:
    weights = _weights(there)
    if not weights and _is_adapter(there):
        return tuple(_file(there, file) for file in (CONFIG, TENSORS))
    if not weights:
        raise _nothing(name, there, parts)
    beside = (*_BESIDE, *((CONFIG, TENSORS) if TENSORS in there else ()))  # an adapter, which is put on them
    return tuple(_file(there, file) for file in (*(file for file in beside if file in there), *weights))


def _is_adapter(there: Mapping[str, Any]) -> bool:
    """Whether it holds an adapter alone, whose model is another repository's."""
    return "config.json" not in there and CONFIG in there and TENSORS in there


def _nothing(name: HubName, there: Mapping[str, Any], parts: int) -> CheckpointError:
    if parts:
        return parts_only(name.repository)
    if "config.json" not in there:
        if CONFIG in there:
            return only_a_pickle(name.repository, PICKLE) if PICKLE in there else _no_adapter(name)
        return CheckpointError(f"{name.repository} has no config.json, so it holds no model of transformers.")
    pickles = sorted(file for file in there if file.endswith(PICKLES))
    if pickles == ["model.bin"] and any("vocabulary." in file for file in there):
        return of_ctranslate2(name.repository, pickles[0])
    if pickles:
        return only_a_pickle(name.repository, pickles[0])
    return CheckpointError(f"{name.repository} has no weights in safetensors files, so it cannot be opened.")


def _no_adapter(name: HubName) -> CheckpointError:
    return CheckpointError(
        f"{name.repository} has {CONFIG} and no {TENSORS}, so there is no adapter to be put on a model."
    )


def _file(there: Mapping[str, Any], file: str) -> HubFile:
    sibling = there[file]
    etag = sibling.lfs.sha256 if sibling.lfs is not None else sibling.blob_id
    if not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", etag) or not 0 <= int(sibling.size) < _MOST_BYTES:
        raise ValueError("no hash or no size")
    return HubFile(file, int(sibling.size), etag)
