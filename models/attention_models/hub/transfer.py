"""Fetches files of a hub into the cache: resumed where a transfer broke off, and checked against their hash.

After an interruption huggingface_hub fetches a file from its first byte again, and it checks no hash. So the bytes are
fetched here, into `blobs/<etag>.incomplete`, under the lock that huggingface_hub takes for the same file. What a server
sends is never unpacked (ten megabytes can become ten gigabytes) nor read beyond the announced size, and `should_stop`
is polled between the pieces.
"""

from __future__ import annotations

import hashlib
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

import httpx2
from huggingface_hub import ModelInfo, hf_hub_url
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # documented, and not marked for export
    build_hf_headers,
    get_session,
    hf_raise_for_status,
)

from attention_models.files.hub_cache import HubCache
from attention_models.files.names import HubName
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import HubFile
from attention_models.protocol.request import Cancelled, ShouldStop

PATIENCE_SECONDS = 30.0
"""An answer may take so long, and besides as long as it takes at `SLOWEST`."""
SLOWEST = 10_000
"""Bytes a second."""

_EVERY = 0.1  # seconds between two looks at whether it was called off
_AHEAD = 1  # pieces that are received before they are asked for: they are lost where the transfer is called off


class Incoming:
    """An answer that is being received. It is closed when it is no longer wanted."""

    def __init__(self, ask: Callable[[], AbstractContextManager[Any]], should_stop: ShouldStop) -> None:
        """`ask` gives the answer, of httpx, once its first line has come."""
        self._ask, self._should_stop = ask, should_stop
        self._received: queue.Queue[Any] = queue.Queue(_AHEAD)
        self._is_closed = threading.Event()
        self._started, self._bytes = time.monotonic(), 0
        threading.Thread(target=self._receive, name="hub's answer", daemon=True).start()
        self.status: int = self._next()

    def pieces(self, patiently: bool = False) -> Iterator[bytes]:
        """The pieces as they come.

        Args:
            patiently: a download may take as long as it takes; the person sees how far it is.

        Raises:
            Cancelled: waiting for one was called off.
            httpx2.HTTPError: the connection broke, or it comes more slowly than `SLOWEST`.
        """
        while piece := self._next(patiently):
            self._bytes += len(piece)
            yield piece

    def close(self) -> None:
        """Receive no more of it."""
        self._is_closed.set()

    def _next(self, patiently: bool = False) -> Any:
        while True:
            with suppress(queue.Empty):
                received = self._received.get(timeout=_EVERY)
                if isinstance(received, BaseException):
                    raise received
                if received and not patiently:
                    self._check_pace()
                return received
            if self._should_stop():
                self.close()
                raise Cancelled
            if not patiently:
                self._check_pace()

    def _check_pace(self) -> None:
        if time.monotonic() - self._started > PATIENCE_SECONDS + self._bytes / SLOWEST:
            self.close()
            raise httpx2.ReadTimeout("it comes too slowly")

    def _receive(self) -> None:
        try:
            with self._ask() as response:
                self._put(response.status_code)
                for piece in response.iter_raw():
                    if piece:
                        self._put(piece)
                    if self._is_closed.is_set():
                        return
            self._put(b"")
        except BaseException as error:  # it is raised where the answer is waited for
            self._put(error)

    def _put(self, received: Any) -> None:
        while not self._is_closed.is_set():
            with suppress(queue.Full):
                self._received.put(received, timeout=_EVERY)
                return


ATTEMPTS = 4  # a connection that breaks is taken up again as long as it brings something

_PIECE = 1 << 20
_MOST_INFO = 32 << 20  # bytes of the list of a repository's files, a quarter of a million of them

P = ParamSpec("P")
T = TypeVar("T")


class Progress(Protocol):
    """Is told how a transfer gets on."""

    def has(self, file: HubFile, count: int) -> None:
        """`count` bytes of `file` are in the cache."""

    def waits_for(self, file: HubFile) -> None:
        """Another program is fetching `file`. Called again and again until it is done."""


class Transfer:
    """From one hub into one cache. `timeout`: seconds until an answer begins, and between two pieces of it."""

    def __init__(self, endpoint: str, cache: HubCache, timeout: float) -> None:
        self.endpoint = endpoint
        self.cache = cache
        self.timeout = timeout

    def info(self, name: HubName, should_stop: ShouldStop) -> ModelInfo:
        """What the hub says of a repository, with sizes and hashes of its files.

        Raises:
            Cancelled: waiting for it was called off.
            ValueError, TypeError: it is longer than any is, or no table.
        """
        # as HfApi.model_info, which reads and unpacks whatever comes, however long it takes
        url = f"{self.endpoint}/api/models/{name.repository}/revision/{quote(name.branch, safe='')}?blobs=true"
        content = retried(self._read_prefix, url, {}, _MOST_INFO + 1, should_stop)
        if len(content) > _MOST_INFO:
            raise ValueError("no list of files is that long")
        return ModelInfo(**json.loads(content))  # type: ignore[no-untyped-call]

    def first_bytes(self, name: HubName, commit: str, file: str, count: int, should_stop: ShouldStop) -> bytes:
        """The first `count` bytes of a file, and no more, whatever the server sends.

        Raises:
            Cancelled: waiting for them was called off.
        """
        headers = {"Range": f"bytes=0-{count - 1}"}
        return retried(self._read_prefix, self._url(name, commit, file), headers, count, should_stop)

    def _read_prefix(self, url: str, headers: dict[str, str], count: int, should_stop: ShouldStop) -> bytes:
        with self._stream(url, headers, should_stop) as incoming:
            return PrefixReader(incoming.pieces(), should_stop).read(count)

    @contextmanager
    def prefix_reader(self, name: HubName, commit: str, file: str, should_stop: ShouldStop) -> Iterator[PrefixReader]:
        """Reads a file from its first byte on, and fetches no more of it than is read."""
        with self._stream(self._url(name, commit, file), {}, should_stop) as incoming:
            yield PrefixReader(incoming.pieces(), should_stop)

    def fetch(
        self, name: HubName, commit: str, file: HubFile, should_stop: ShouldStop, progress: Progress | None = None
    ) -> None:
        """Fetch one file into the cache unless it is there; where another program is fetching it, wait for that one.

        Raises:
            Cancelled: `should_stop` said so. What has come is kept.
            CheckpointError: it came with another content or length than the hub says.
        """
        progress = progress or _Unwatched()

        def wait() -> None:
            if should_stop():
                raise Cancelled
            progress.waits_for(file)

        if self.cache.here(name, commit, file.name) is None:
            with self.cache.locked(name, file.etag, wait):
                # here now, where another program has fetched it meanwhile
                if self.cache.here(name, commit, file.name) is None:
                    if not self.cache.blob(name, file.etag).exists():
                        self._fetch_blob(name, commit, file, should_stop, progress)
                    self.cache.file(name, commit, file)
        progress.has(file, file.size)

    def _fetch_blob(
        self, name: HubName, commit: str, file: HubFile, should_stop: ShouldStop, progress: Progress
    ) -> None:
        """Fetch what is missing of a file's content, and keep it under its hash."""
        part, blob = self.cache.part(name, file.etag), self.cache.blob(name, file.etag)
        part.parent.mkdir(parents=True, exist_ok=True)
        self._fetch_bytes(name, commit, file, part, should_stop, progress)
        if _hash(part, file.etag) != file.etag:
            part.unlink()
            raise CheckpointError(
                f"{name.repository}: {file.name} came with another content than the hub says (wrong hash). "
                "It was deleted; fetch it again."
            )
        part.replace(blob)

    def _fetch_bytes(
        self,
        name: HubName,
        commit: str,
        file: HubFile,
        part: Path,
        should_stop: ShouldStop,
        progress: Progress,
    ) -> None:
        """Append to `part` until it is whole. A connection that breaks is resumed where it broke."""
        have = part.stat().st_size if part.exists() else 0
        for attempt in range(ATTEMPTS):
            if have == file.size and part.exists():
                return
            if should_stop():
                raise Cancelled
            before = have
            try:
                ranges = {"Range": f"bytes={have}-"} if have else {}
                with self._stream(self._url(name, commit, file.name), ranges, should_stop) as incoming:
                    if have and incoming.status != HTTPStatus.PARTIAL_CONTENT:
                        have = 0  # the server knows no ranges: all of it comes again
                    with part.open("ab" if have else "wb") as stream:
                        for piece in incoming.pieces(
                            patiently=True
                        ):  # as it comes: a piece that was waited for could be lost
                            if have + len(piece) > file.size:
                                part.unlink()
                                raise CheckpointError(
                                    f"{name.repository}: {file.name} is longer than the {file.size:,} bytes that the "
                                    "hub says. It was not kept."
                                )
                            stream.write(piece)
                            have += len(piece)
                            progress.has(file, have)
            except httpx2.TransportError as error:
                if attempt == ATTEMPTS - 1 or (isinstance(error, httpx2.TimeoutException) and have == before):
                    raise  # a server that hangs is not waited for four times
        if have != file.size:
            raise CheckpointError(
                f"{name.repository}: only {have:,} of the {file.size:,} bytes of {file.name} came. They are kept; "
                "fetch again to go on from there."
            )

    def _url(self, name: HubName, commit: str, file: str) -> str:
        return hf_hub_url(name.repository, file, revision=commit, endpoint=self.endpoint)

    @contextmanager
    def _stream(self, url: str, headers: dict[str, str], should_stop: ShouldStop) -> Iterator[Incoming]:
        """What lies at `url`, as it comes."""
        incoming = Incoming(lambda: self._answer(url, headers), should_stop)
        try:
            yield incoming
        finally:
            incoming.close()

    @contextmanager
    def _answer(self, url: str, headers: dict[str, str]) -> Iterator[Any]:
        """What lies at `url`, as an answer that is not read yet."""
        # identity: sizes and ranges are of the file, not of something packed for the way
        wanted = {**build_hf_headers(), "Accept-Encoding": "identity", **headers}
        # redirected to another host, httpx takes the authorisation off
        with get_session().stream("GET", url, headers=wanted, timeout=self.timeout, follow_redirects=True) as response:
            # without its body, which may be as long as it likes: what went wrong stands in the headers
            told = {key: value for key, value in response.headers.items() if key.startswith(("x-", "retry-"))}
            hf_raise_for_status(httpx2.Response(response.status_code, headers=told, request=response.request))
            yield response


class _Unwatched:
    """For a small file, or one that is here already."""

    def has(self, file: HubFile, count: int) -> None:
        pass

    def waits_for(self, file: HubFile) -> None:
        pass


class PrefixReader:
    """The first bytes of a stream, read as they arrive; `kept` holds all that have been read."""

    def __init__(self, pieces: Iterator[bytes], should_stop: ShouldStop) -> None:
        self.kept = bytearray()
        self._pieces = pieces
        self._should_stop = should_stop
        self._position = 0

    def read(self, count: int, /) -> bytes:
        """The next `count` bytes, fewer at the end.

        Raises:
            Cancelled: waiting for them was called off.
        """
        end = self._position + count
        while len(self.kept) < end:
            if self._should_stop():
                raise Cancelled
            piece = next(self._pieces, b"")
            if not piece:
                break
            self.kept += piece
        data = bytes(self.kept[self._position : end])
        self._position += len(data)
        return data


def retried(ask: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """What `ask` returns, asked a second time if the server had closed the connection that was kept open."""
    try:
        return ask(*args, **options)
    except httpx2.RemoteProtocolError:
        return ask(*args, **options)


def _hash(part: Path, etag: str) -> str:
    """The hash by which the hub names a file: SHA-256 of a large one, git's SHA-1 of a small one."""
    with part.open("rb") as stream:
        if len(etag) == 64:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        blob = hashlib.sha1(b"blob %d\0" % part.stat().st_size, usedforsecurity=False)
        for piece in iter(lambda: stream.read(_PIECE), b""):
            blob.update(piece)
        return blob.hexdigest()
