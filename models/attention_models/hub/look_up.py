"""What a hub has under a name: its files, and what their first bytes say."""

from __future__ import annotations

import re

from huggingface_hub import is_offline_mode

from attention_models.files.adapter_files import headers_of_adapter, is_adapter
from attention_models.files.gguf import read_gguf, read_header
from attention_models.files.gguf_names import is_named_gguf
from attention_models.files.hub_cache import file_here
from attention_models.files.names import HubName, parse
from attention_models.files.weight_files import JSON_BYTES, header_length, parse_header, read_headers, read_json
from attention_models.hub.contents import contents_of
from attention_models.hub.context import HubContext
from attention_models.hub.errors import host_of, hub_errors_explained
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import HubFile, HubListing, LookUpRequest, Tensors
from attention_models.protocol.work import Cancelled

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
