"""A hub that speaks Hugging Face's language: what it has under a name, and fetching that into the cache.

The cache, the address (HF_ENDPOINT) and the token are huggingface_hub's own: a token comes from HF_TOKEN or from
`hf auth login`, and is never read, shown or kept here. Only what opening needs is fetched, and never a pickle.
huggingface_hub starts a file anew after each interruption and checks no hash, so the bytes are fetched here, into
`blobs/<etag>.incomplete`, and it files them. Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import singledispatchmethod
from http import HTTPStatus
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url, is_offline_mode, try_to_load_from_cache
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # documented, and not marked for export
    build_hf_headers,
    get_session,
    hf_raise_for_status,
)

from models.errors import CheckpointError
from models.hub_errors import host_of, in_sentences
from models.hub_names import HubName, cached_folder, parse
from models.hub_requests import FetchRequest, HubFetched, HubFile, HubListing, LookUpRequest
from models.memory import in_bytes
from models.requests import Cancelled, Report, Request, ShouldStop
from models.results import Failure, Result
from models.weight_files import (
    JSON_BYTES,
    PICKLES,
    TOKENIZERS,
    Tensors,
    adapter,
    header_length,
    only_a_pickle,
    parse_header,
    read_headers,
    read_json,
)

TIMEOUT_SECONDS = 10.0  # for an answer to begin, and between two pieces of it
ATTEMPTS = 4  # a connection that breaks is taken up again as long as it brings something

_PIECE = 1 << 20
_MOST_SHARDS = 1000
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
)

P = ParamSpec("P")
T = TypeVar("T")


class HubEngine:
    """Answers `LookUpRequest` and `FetchRequest`. Knows nothing of threads."""

    def __init__(
        self, endpoint: str | None = None, cache: Path | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        """`endpoint` and `cache` are those of huggingface_hub where they are left out; `timeout` is in seconds."""
        self.endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        self.cache = cache or Path(constants.HF_HUB_CACHE)
        self.timeout = timeout

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        """Answer `request`; a hub, a network or a disk that refuses is a `Failure`.

        Raises:
            Cancelled: the work was called off. What was fetched by then stays.
        """
        try:
            return self._answer(request, should_stop, report)
        except CheckpointError as error:
            cause = "".join(traceback.format_exception(error)) if error.__cause__ is not None else ""
            return Failure(request=request, sentence=str(error), cause=cause)

    @singledispatchmethod
    def _answer(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        raise TypeError(f"A hub has no answer to a {type(request).__name__}.")

    # what there is

    @_answer.register
    def _look_up(self, request: LookUpRequest, should_stop: ShouldStop, report: Report) -> Result:
        name = parse(request.text)
        if request.offline or is_offline_mode():
            return self._listing_of_cache(request, name)
        report(f"Asking {host_of(self.endpoint)} for {name.repository}", None)
        with in_sentences(name, self.endpoint, self.cache):
            info = _asked_again(
                HfApi(endpoint=self.endpoint).model_info,
                name.repository,
                revision=name.branch,
                timeout=self.timeout,
                files_metadata=True,
            )
            commit = info.sha
            if commit is None or not re.fullmatch("[0-9a-f]{40}", commit):
                raise ValueError("no commit")
            files = _listed(name, info.siblings)
            config = files[0]
            if config.size > JSON_BYTES:
                raise CheckpointError(f"{name.repository}: config.json is larger than {JSON_BYTES >> 20} MB.")
            self._fetch(name, commit, config, should_stop, lambda _: None)
            self._remember(name, commit)
            found = self._here(name, commit, config.name)
            if found is None:
                raise ValueError("no commit")
            _refuse_code(name, found.parent)
            tensors = self._headers(name, commit, files, should_stop, report)
            files = tuple(self._with_bytes_here(name, commit, file) for file in files)
        licence = getattr(info.card_data, "license", None)
        return HubListing(
            request=request,
            reference=name.reference,
            commit=commit,
            files=files,
            folder=str(found.parent),
            cache=str(self.cache),
            tensors=tensors,
            licence=licence if isinstance(licence, str) else "",
        )

    def _listing_of_cache(self, request: LookUpRequest, name: HubName) -> HubListing:
        folder = cached_folder(name, self.cache)
        if folder is None:
            raise CheckpointError(
                f"{name.repository} is not in {self.cache}, and the program is offline. "
                "Switch “Stay offline” off (or unset HF_HUB_OFFLINE) to fetch it."
            )
        sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
        return HubListing(
            request=request,
            reference=name.reference,
            commit=folder.name,
            files=tuple(HubFile(file, size, here=size) for file, size in sizes.items()),
            folder=str(folder),
            cache=str(self.cache),
            tensors=read_headers(folder),
        )

    def _headers(
        self, name: HubName, commit: str, files: tuple[HubFile, ...], should_stop: ShouldStop, report: Report
    ) -> Tensors:
        """Names and shapes of all tensors, from the first bytes of the weight files."""
        shapes: dict[str, tuple[int, ...]] = {}
        weights = [file for file in files if file.name.endswith(".safetensors")]
        for i, file in enumerate(weights):
            if should_stop():
                raise Cancelled
            report("Reading what the weight files hold", i / len(weights))
            try:
                length = header_length(_asked_again(self._start, name, commit, file.name, 8), file.size)
                found, _ = parse_header(_asked_again(self._start, name, commit, file.name, 8 + length)[8:])
            except (OverflowError, ValueError) as cause:
                raise CheckpointError(
                    f"{name.repository}: {file.name} is no safetensors file, so nothing was fetched."
                ) from cause
            shapes.update(found)
        return Tensors(shapes, sum(file.size for file in weights))

    def _start(self, name: HubName, commit: str, file: str, count: int) -> bytes:
        """The first `count` bytes of a file, and no more, whatever the server sends."""
        parts: list[bytes] = []
        with self._stream(name, commit, file, {"Range": f"bytes=0-{count - 1}"}) as response:
            had = 0
            for part in response.iter_bytes(min(count, _PIECE)):
                parts.append(part)
                had += len(part)
                if had >= count:
                    break
        return b"".join(parts)[:count]

    # fetching

    @_answer.register
    def _fetch_all(self, request: FetchRequest, should_stop: ShouldStop, report: Report) -> Result:
        listing = request.listing
        name = parse(listing.reference)
        if request.offline or is_offline_mode():
            raise CheckpointError(f"The program is offline. Switch “Stay offline” off to fetch {name.repository}.")
        done = listing.size - listing.missing

        def count(new: int) -> None:
            nonlocal done
            done += new
            if should_stop():
                raise Cancelled
            label = f"Downloading {name.title}: {in_bytes(done)} of {in_bytes(listing.size)}"
            report(label, done / max(1, listing.size))

        with in_sentences(name, self.endpoint, self.cache):
            self._check_room(name, listing)
            for file in sorted(listing.files, key=lambda file: file.size):  # what is wrong shows early
                self._fetch(name, listing.commit, file, should_stop, count)
            self._remember(name, listing.commit)
        return HubFetched(request=request, reference=listing.reference, folder=listing.folder)

    def _check_room(self, name: HubName, listing: HubListing) -> None:
        free = shutil.disk_usage(_existing(self.cache)).free
        if free < listing.missing:
            raise CheckpointError(
                f"{name.repository} needs {in_bytes(listing.missing)} more, and the disk of {self.cache} has "
                f"{in_bytes(free)} free. Make room, or set HF_HOME to a folder on another disk."
            )

    def _fetch(
        self, name: HubName, commit: str, file: HubFile, should_stop: ShouldStop, count: Callable[[int], None]
    ) -> None:
        """Fetch one file into the cache unless it is there; `count` is told of every piece."""
        if self._here(name, commit, file.name) is not None:
            return
        blob = self._blob(name, file.etag)
        if not blob.exists():
            blob.parent.mkdir(parents=True, exist_ok=True)
            part = _part(blob)
            self._fetch_bytes(name, commit, file, part, should_stop, count)
            if _hash(part, file.etag) != file.etag:
                part.unlink()
                raise CheckpointError(
                    f"{name.repository}: {file.name} came with another content than the hub says (wrong hash). "
                    "It was deleted; fetch it again."
                )
            part.replace(blob)
        _asked_again(
            hf_hub_download,
            name.repository,
            file.name,
            revision=commit,
            endpoint=self.endpoint,
            cache_dir=self.cache,
        )

    def _fetch_bytes(
        self,
        name: HubName,
        commit: str,
        file: HubFile,
        part: Path,
        should_stop: ShouldStop,
        count: Callable[[int], None],
    ) -> None:
        """Append to `part` until it is whole. A connection that breaks is taken up where it broke."""
        have = part.stat().st_size if part.exists() else 0
        for attempt in range(ATTEMPTS):
            if have == file.size and part.exists():
                return
            if should_stop():
                raise Cancelled
            before = have
            try:
                with self._stream(name, commit, file.name, {"Range": f"bytes={have}-"} if have else {}) as response:
                    if have and response.status_code != HTTPStatus.PARTIAL_CONTENT:
                        count(-have)  # the server knows no ranges: all of it comes again
                        have = 0
                    with part.open("ab" if have else "wb") as stream:
                        for piece in response.iter_raw():  # as it comes: a piece that was waited for could be lost
                            if have + len(piece) > file.size:
                                raise CheckpointError(
                                    f"{name.repository}: {file.name} is longer than the {file.size:,} bytes that the "
                                    "hub says. It was not kept."
                                )
                            stream.write(piece)
                            have += len(piece)
                            count(len(piece))
            except httpx2.TransportError as error:
                if attempt == ATTEMPTS - 1 or (isinstance(error, httpx2.TimeoutException) and have == before):
                    raise  # a server that hangs is not waited for four times
        if have != file.size:
            raise CheckpointError(
                f"{name.repository}: only {have:,} of the {file.size:,} bytes of {file.name} came. They are kept; "
                "fetch again to go on from there."
            )

    @contextmanager
    def _stream(self, name: HubName, commit: str, file: str, headers: dict[str, str]) -> Iterator[Any]:
        url = hf_hub_url(name.repository, file, revision=commit, endpoint=self.endpoint)
        # identity: sizes and ranges are of the file, not of something packed for the way
        wanted = {**build_hf_headers(), "Accept-Encoding": "identity", **headers}
        # redirected to another host, httpx takes the authorisation off
        with get_session().stream("GET", url, headers=wanted, timeout=self.timeout, follow_redirects=True) as response:
            hf_raise_for_status(response)
            yield response

    # the cache

    def _here(self, name: HubName, commit: str, file: str) -> Path | None:
        found = try_to_load_from_cache(name.repository, file, revision=commit, cache_dir=self.cache)
        return Path(found) if isinstance(found, str) else None

    def _blob(self, name: HubName, etag: str) -> Path:
        return self.cache / name.cache_folder / "blobs" / etag

    def _with_bytes_here(self, name: HubName, commit: str, file: HubFile) -> HubFile:
        blob = self._blob(name, file.etag)
        if blob.exists() or self._here(name, commit, file.name) is not None:
            return replace(file, here=file.size)
        part = _part(blob)
        return replace(file, here=min(file.size, part.stat().st_size) if part.exists() else 0)

    def _remember(self, name: HubName, commit: str) -> None:
        """Let the branch or tag name this commit, as huggingface_hub does: it is then found without a network."""
        if name.branch != commit:
            ref = self.cache / name.cache_folder / "refs" / name.branch
            ref.parent.mkdir(parents=True, exist_ok=True)
            ref.write_text(commit)


def _asked_again(ask: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """`ask`, and once more where a connection that was kept open had been closed at the other end meanwhile."""
    try:
        return ask(*args, **options)
    except httpx2.RemoteProtocolError:
        return ask(*args, **options)


def _part(blob: Path) -> Path:
    return blob.with_name(blob.name + ".incomplete")


def _listed(name: HubName, siblings: Any) -> tuple[HubFile, ...]:
    """The files that are needed, of those that the hub lists.

    Raises:
        CheckpointError: none that could be opened.
        ValueError, TypeError, AttributeError: no list as a hub gives.
    """
    there = {sibling.rfilename: sibling for sibling in siblings}
    if "config.json" not in there:
        ggufs = [n for n in there if n.endswith(".gguf")]
        if ggufs:
            raise CheckpointError(
                f"{name.repository} holds GGUF files only. Fetch one, with “hf download {name.repository} {ggufs[0]}”, "
                "and open that file."
            )
        if "adapter_config.json" in there:
            raise adapter(name.repository)
        raise CheckpointError(f"{name.repository} has no config.json, so it holds no model of transformers.")
    shards = [n for n in there if _SHARD.fullmatch(n)]
    if _SINGLE in there:
        weights = [_SINGLE]
    elif _INDEX in there and 0 < len(shards) <= _MOST_SHARDS:
        weights = [_INDEX, *sorted(shards)]
    else:
        pickles = sorted(n for n in there if n.endswith(PICKLES))
        if pickles:
            raise only_a_pickle(name.repository, pickles[0])
        raise CheckpointError(f"{name.repository} has no weights in safetensors files, so it can not be opened.")
    files = []
    for file in (*(n for n in _BESIDE if n in there), *weights):
        sibling = there[file]
        etag = sibling.lfs.sha256 if sibling.lfs is not None else sibling.blob_id
        if not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", etag) or not 0 <= int(sibling.size) < 1 << 50:
            raise ValueError("no hash or no size")
        files.append(HubFile(file, int(sibling.size), etag))
    return tuple(files)


def _refuse_code(name: HubName, folder: Path) -> None:
    if "auto_map" in read_json(folder / "config.json", ""):
        raise CheckpointError(
            f"{name.repository} needs program code that comes with it (auto_map in config.json). "
            "Code from a checkpoint is never run here, so it was not fetched."
        )


def _hash(part: Path, etag: str) -> str:
    """The hash by which the hub names a file: SHA-256 of a large one, git's SHA-1 of a small one."""
    with part.open("rb") as stream:
        if len(etag) == 64:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        blob = hashlib.sha1(b"blob %d\0" % part.stat().st_size, usedforsecurity=False)
        for piece in iter(lambda: stream.read(_PIECE), b""):
            blob.update(piece)
        return blob.hexdigest()


def _existing(folder: Path) -> Path:
    """`folder`, or the nearest folder above it that exists."""
    return next((path for path in (folder, *folder.parents) if path.exists()), Path())
