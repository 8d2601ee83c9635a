"""A hub that speaks Hugging Face's language: what it has under a name, and fetching that into the cache.

The cache, the address (HF_ENDPOINT) and the token are huggingface_hub's own: a token comes from HF_TOKEN or from
`hf auth login`, and is never read, shown or kept here. Only what opening needs is fetched, and never a pickle.
Nothing here imports torch.
"""

from __future__ import annotations

import re
import traceback
from functools import singledispatchmethod
from pathlib import Path

from huggingface_hub import constants, is_offline_mode

from models.files.gguf import read_gguf, read_header
from models.files.gguf_names import is_named_gguf
from models.files.hub_cache import HubCache, file_here
from models.files.memory import in_bytes
from models.files.names import HubName, parse
from models.files.weight_files import JSON_BYTES, header_length, parse_header, read_headers, read_json
from models.hub.contents import contents_of
from models.hub.errors import host_of, hub_errors_explained
from models.hub.transfer import Transfer
from models.protocol.errors import CheckpointError
from models.protocol.hub import FetchRequest, HubFetched, HubFile, HubListing, LookUpRequest, Tensors
from models.protocol.request import Failure, Request, Result
from models.protocol.work import Cancelled, Report, ShouldStop

TIMEOUT_SECONDS = 10.0  # for an answer to begin, and between two pieces of it

_LICENCE = 80  # characters of its name; anything may stand in a model's card
_NONE = Tensors({}, 0)


class HubEngine:
    """Answers `LookUpRequest` and `FetchRequest`. Knows nothing of threads."""

    def __init__(
        self, endpoint: str | None = None, cache: Path | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        """`endpoint` and `cache` are those of huggingface_hub where they are left out; `timeout` is in seconds."""
        self.endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        self.cache = HubCache(cache)
        self.timeout = timeout
        self._transfer = Transfer(self.endpoint, self.cache, timeout)

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
        with hub_errors_explained(name, self.endpoint, self.cache.folder):
            info = self._transfer.info(name, should_stop)
            commit = info.sha
            if commit is None or not re.fullmatch("[0-9a-f]{40}", commit):
                raise ValueError("no commit")
            contents = contents_of(name, info.siblings or ())
            for file in contents.files:
                if self.cache.blob(name, file.etag).exists():  # it came with another commit, under the same hash
                    self._transfer.fetch(name, commit, file, should_stop)
            tensors, header = _NONE, b""
            if name.file:
                tensors, header = self._header_of_gguf(name, commit, contents.files[0], should_stop, report)
            elif contents.files:
                self._check_config(name, commit, contents.files[0], should_stop)
                tensors = self._headers(name, commit, contents.files, should_stop, report)
            files = tuple(self.cache.with_bytes_here(name, commit, file) for file in contents.files)
            ggufs = tuple(self.cache.with_bytes_here(name, commit, file) for file in contents.ggufs)
        licence = getattr(info.card_data, "license", None)
        licence = " ".join(licence.split())[:_LICENCE] if isinstance(licence, str) else ""
        return HubListing(
            request=request,
            reference=name.reference,
            commit=commit,
            files=files,
            folder=str(self.cache.snapshot(name, commit)),
            cache=str(self.cache.folder),
            tensors=tensors,
            licence=licence,
            safetensors=contents.safetensors,
            ggufs=ggufs,
            parts=contents.parts,
            gguf=name.file,
            header=header,
        )

    def _listing_of_cache(self, request: LookUpRequest, name: HubName) -> HubListing:
        path, ggufs = self.cache.path_of(name), self.cache.ggufs_of(name)
        whole = self.cache.path_of(name.with_file(""))
        if path is None and (name.file or not ggufs):
            raise CheckpointError(
                f"{name.file or name.repository} is not in {self.cache.folder}, and the program is offline. "
                "Switch “Stay offline” off (or unset HF_HUB_OFFLINE) to fetch it."
            )
        files: tuple[HubFile, ...] = ()
        tensors, folder = _NONE, self.cache.folder
        if path is not None and name.file:
            files, tensors = (file_here(path, name.file),), read_gguf(path).tensors
            folder = path.parents[name.file.count("/")]
        elif path is not None:
            beside = [entry for entry in sorted(path.iterdir()) if entry.is_file() and not is_named_gguf(entry.name)]
            files, tensors, folder = tuple(file_here(entry, entry.name) for entry in beside), read_headers(path), path
        return HubListing(
            request=request,
            reference=name.reference,
            commit=folder.name if files else "",
            files=files,
            folder=str(folder),
            cache=str(self.cache.folder),
            tensors=tensors,
            safetensors=sum(file.stat().st_size for file in whole.glob("*.safetensors")) if whole is not None else 0,
            ggufs=ggufs,
            gguf=name.file,
        )

    def _check_config(self, name: HubName, commit: str, config: HubFile, should_stop: ShouldStop) -> None:
        """Fetch config.json, which describes the rest, and refuse one that asks for code."""
        if config.size > JSON_BYTES:
            raise CheckpointError(f"{name.repository}: config.json is larger than {JSON_BYTES >> 20} MB.")
        self._transfer.fetch(name, commit, config, should_stop)
        self.cache.remember(name, commit)
        if "auto_map" in read_json(self.cache.snapshot(name, commit) / config.name, ""):
            raise CheckpointError(
                f"{name.repository} needs program code that comes with it (auto_map in config.json). "
                "Code from a checkpoint is never run here, so it was not fetched."
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
                start = self._transfer.first_bytes(name, commit, file.name, 8, should_stop)
                count = 8 + header_length(start, file.size)
                start = self._transfer.first_bytes(name, commit, file.name, count, should_stop)
                found, _ = parse_header(start[8:])
            except (OverflowError, ValueError) as cause:
                raise CheckpointError(
                    f"{name.repository}: {file.name} is no safetensors file, so nothing was fetched."
                ) from cause
            shapes.update(found)
        return Tensors(shapes, sum(file.size for file in weights))

    def _header_of_gguf(
        self, name: HubName, commit: str, file: HubFile, should_stop: ShouldStop, report: Report
    ) -> tuple[Tensors, bytes]:
        """What a GGUF file holds, and its header where the file is not here: some megabytes, with the vocabulary."""
        path = self.cache.here(name, commit, file.name)
        if path is not None:
            return read_gguf(path).tensors, b""
        report(f"Reading what {name.title} holds", None)
        with self._transfer.prefix_reader(name, commit, file.name, should_stop) as start:
            header = read_header(start, name.title, file.size)
            return header.tensors, bytes(start.kept[: header.length])

    # fetching

    @_answer.register
    def _fetch_all(self, request: FetchRequest, should_stop: ShouldStop, report: Report) -> Result:
        listing = request.listing
        name = parse(listing.reference)
        if request.offline or is_offline_mode():
            raise CheckpointError(f"The program is offline. Switch “Stay offline” off to fetch {name.repository}.")
        files = [self.cache.with_bytes_here(name, listing.commit, file) for file in listing.files]
        # an attempt that broke off may have brought some since
        progress = _Progress(name.title, files, should_stop, report)
        with hub_errors_explained(name, self.endpoint, self.cache.folder):
            self.cache.check_room(name, progress.missing)
            for file in sorted(files, key=lambda file: file.size):  # what is wrong shows early
                self._transfer.fetch(name, listing.commit, file, should_stop, progress)
            self.cache.remember(name, listing.commit)
        return HubFetched(request=request, reference=listing.reference, folder=listing.folder)


class _Progress:
    """Says how many bytes of some files are here.

    Raises:
        Cancelled: from `has`, when `should_stop` says so.
    """

    def __init__(self, title: str, files: list[HubFile], should_stop: ShouldStop, report: Report) -> None:
        self._title = title
        self._size = sum(file.size for file in files)
        self._here = {file.name: file.here for file in files}
        self._should_stop = should_stop
        self._report = report

    @property
    def missing(self) -> int:
        return self._size - sum(self._here.values())

    def has(self, file: HubFile, count: int) -> None:
        if count == self._here[file.name]:
            return
        self._here[file.name] = count
        if self._should_stop():
            raise Cancelled
        self._say(f"Downloading {self._title}: {in_bytes(self._size - self.missing)} of {in_bytes(self._size)}")

    def waits_for(self, file: HubFile) -> None:
        self._say(f"Another program is fetching {file.name} of {self._title}: waiting for it")

    def _say(self, sentence: str) -> None:
        self._report(sentence, 1 - self.missing / max(1, self._size))
