"""What a hub has under a name: its files, and what their first bytes say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from huggingface_hub import is_offline_mode

from attention_models.files.adapter_files import CONFIG, PICKLE, TENSORS, headers_of_adapter, is_adapter
from attention_models.files.gguf import is_named_gguf, is_part, parts_only, read_gguf, read_header
from attention_models.files.hub_cache import file_here
from attention_models.files.names import HubName, is_sound_file, parse
from attention_models.files.weight_files import (
    JSON_BYTES,
    PICKLES,
    header_length,
    of_ctranslate2,
    only_a_pickle,
    parse_header,
    read_headers,
    read_json,
)
from attention_models.hub.context import HubContext
from attention_models.hub.errors import host_of, hub_errors_explained
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import TOKENIZERS, HubFile, HubListing, LookUpRequest, Tensors
from attention_models.protocol.request import Cancelled

# Which files of a repository on a hub are worth fetching: what a safetensors checkpoint needs, and GGUF files.


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


_LICENCE = 80  # characters of its name; anything may stand in a model's card
_NONE = Tensors({}, 0)


def answer(request: LookUpRequest, hub: HubContext) -> HubListing:
    name = parse(request.text)
    if request.offline or is_offline_mode():
        return _listing_of_cache(hub, request, name)
    hub.report(f"Asking {host_of(hub.endpoint)} for {name.repository}", None)
    with hub_errors_explained(name, hub.endpoint, hub.cache.folder):
        info = hub.transfer.info(name, hub.should_stop)
        commit = info.sha
        if commit is None or not re.fullmatch("[0-9a-f]{40}", commit):
            raise ValueError("no commit")
        contents = contents_of(name, info.siblings or ())
        for file in contents.files:
            if hub.cache.blob(name, file.etag).exists():  # it came with another commit, under the same hash
                hub.transfer.fetch(name, commit, file, hub.should_stop)
        tensors, header = _NONE, b""
        if name.file:
            tensors, header = _header_of_gguf(hub, name, commit, contents.files[0])
        elif contents.files:
            _check_config(hub, name, commit, contents.files[0])
            tensors = _headers(hub, name, commit, contents.files)
        files = tuple(hub.cache.with_bytes_here(name, commit, file) for file in contents.files)
        ggufs = tuple(hub.cache.with_bytes_here(name, commit, file) for file in contents.ggufs)
    licence = getattr(info.card_data, "license", None)
    licence = " ".join(licence.split())[:_LICENCE] if isinstance(licence, str) else ""
    return HubListing(
        request=request,
        reference=name.reference,
        commit=commit,
        files=files,
        folder=str(hub.cache.snapshot(name, commit)),
        cache=str(hub.cache.folder),
        tensors=tensors,
        licence=licence,
        safetensors=contents.safetensors,
        ggufs=ggufs,
        parts=contents.parts,
        gguf=name.file,
        header=header,
    )


def _listing_of_cache(hub: HubContext, request: LookUpRequest, name: HubName) -> HubListing:
    path, ggufs = hub.cache.path_of(name), hub.cache.ggufs_of(name)
    whole = hub.cache.path_of(name.with_file(""))
    if path is None and (name.file or not ggufs):
        raise CheckpointError(
            f"{name.file or name.repository} is not in {hub.cache.folder}, and the program is offline. "
            "Switch “Stay offline” off (or unset HF_HUB_OFFLINE) to fetch it."
        )
    files: tuple[HubFile, ...] = ()
    tensors, folder = _NONE, hub.cache.folder
    if path is not None and name.file:
        files, tensors = (file_here(path, name.file),), read_gguf(path).tensors
        folder = path.parents[name.file.count("/")]
    elif path is not None:
        beside = [entry for entry in sorted(path.iterdir()) if entry.is_file() and not is_named_gguf(entry.name)]
        tensors = headers_of_adapter(path) if is_adapter(path) else read_headers(path)
        files, folder = tuple(file_here(entry, entry.name) for entry in beside), path
    return HubListing(
        request=request,
        reference=name.reference,
        commit=folder.name if files else "",
        files=files,
        folder=str(folder),
        cache=str(hub.cache.folder),
        tensors=tensors,
        safetensors=sum(file.stat().st_size for file in whole.glob("*.safetensors")) if whole is not None else 0,
        ggufs=ggufs,
        gguf=name.file,
    )


def _check_config(hub: HubContext, name: HubName, commit: str, config: HubFile) -> None:
    """Fetch the config, which describes the rest, and refuse one that asks for code."""
    if config.size > JSON_BYTES:
        raise CheckpointError(f"{name.repository}: {config.name} is larger than {JSON_BYTES >> 20} MB.")
    hub.transfer.fetch(name, commit, config, hub.should_stop)
    hub.cache.remember(name, commit)
    if "auto_map" in read_json(hub.cache.snapshot(name, commit) / config.name, ""):
        raise CheckpointError(
            f"{name.repository} needs program code that comes with it (auto_map in config.json). "
            "Code from a checkpoint is never run here, so it was not fetched."
        )


def _headers(hub: HubContext, name: HubName, commit: str, files: tuple[HubFile, ...]) -> Tensors:
    """Names and shapes of all tensors, from the first bytes of the weight files."""
    shapes: dict[str, tuple[int, ...]] = {}
    weights = [file for file in files if file.name.endswith(".safetensors")]
    for i, file in enumerate(weights):
        if hub.should_stop():
            raise Cancelled
        hub.report("Reading what the weight files hold", i / len(weights))
        try:
            start = hub.transfer.first_bytes(name, commit, file.name, 8, hub.should_stop)
            count = 8 + header_length(start, file.size)
            start = hub.transfer.first_bytes(name, commit, file.name, count, hub.should_stop)
            found, _ = parse_header(start[8:])
        except (OverflowError, ValueError) as cause:
            raise CheckpointError(
                f"{name.repository}: {file.name} is no safetensors file, so nothing was fetched."
            ) from cause
        shapes.update(found)
    return Tensors(shapes, sum(file.size for file in weights))


def _header_of_gguf(hub: HubContext, name: HubName, commit: str, file: HubFile) -> tuple[Tensors, bytes]:
    """What a GGUF file holds, and its header where the file is not here: some megabytes, with the vocabulary."""
    path = hub.cache.here(name, commit, file.name)
    if path is not None:
        return read_gguf(path).tensors, b""
    hub.report(f"Reading what {name.title} holds", None)
    with hub.transfer.prefix_reader(name, commit, file.name, hub.should_stop) as start:
        header = read_header(start, name.title, file.size)
        return header.tensors, bytes(start.kept[: header.length])
