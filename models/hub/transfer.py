"""Brings files of a hub into the cache: gone on with where a transfer broke, and held against their hash.

huggingface_hub starts a file anew after each interruption and checks no hash, so the bytes are fetched here, into
`blobs/<etag>.incomplete`. What a server sends is read as it stands (unpacked, ten megabytes can be ten gigabytes), no
more of it than was announced, and with a look now and then whether somebody still waits for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

import httpx2
from huggingface_hub import ModelInfo, hf_hub_url
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # documented, and not marked for export
    build_hf_headers,
    get_session,
    hf_raise_for_status,
)

from models.files.hub_cache import HubCache
from models.files.names import HubName
from models.protocol.errors import CheckpointError
from models.protocol.hub import HubFile
from models.protocol.work import Cancelled, ShouldStop

ATTEMPTS = 4  # a connection that breaks is taken up again as long as it brings something

_PIECE = 1 << 20
_MOST_INFO = 32 << 20  # bytes of the list of a repository's files, a quarter of a million of them

P = ParamSpec("P")
T = TypeVar("T")


class Transfer:
    """From one hub into one cache. `timeout` in seconds is for an answer to begin, and between two pieces of it."""

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
        content = retried(self._start, url, {}, _MOST_INFO + 1, should_stop)
        if len(content) > _MOST_INFO:
            raise ValueError("no list of files is that long")
        return ModelInfo(**json.loads(content))  # type: ignore[no-untyped-call]

    def start(self, name: HubName, commit: str, file: str, count: int, should_stop: ShouldStop) -> bytes:
        """The first `count` bytes of a file, and no more, whatever the server sends.

        Raises:
            Cancelled: waiting for them was called off.
        """
        headers = {"Range": f"bytes=0-{count - 1}"}
        return retried(self._start, self._url(name, commit, file), headers, count, should_stop)

    def _start(self, url: str, headers: dict[str, str], count: int, should_stop: ShouldStop) -> bytes:
        with self._stream(url, headers) as response:
            return PrefixReader(response.iter_raw(), should_stop).read(count)

    @contextmanager
    def beginning(self, name: HubName, commit: str, file: str, should_stop: ShouldStop) -> Iterator[PrefixReader]:
        """A file that is read from its first byte on; what nobody reads does not come, but for what is on its way."""
        with self._stream(self._url(name, commit, file), {}) as response:
            yield PrefixReader(response.iter_raw(), should_stop)

    def fetch(
        self, name: HubName, commit: str, file: HubFile, should_stop: ShouldStop, count: Callable[[int], None]
    ) -> None:
        """Fetch one file into the cache unless it is there; `count` is told of every piece.

        Raises:
            Cancelled: `should_stop` said so. What has come is kept.
            CheckpointError: it came with another content or length than the hub says.
        """
        if self.cache.here(name, commit, file.name) is not None:
            return
        blob = self.cache.blob(name, file.etag)
        if not blob.exists():
            blob.parent.mkdir(parents=True, exist_ok=True)
            part = self.cache.part(name, file.etag)
            self._fetch_bytes(name, commit, file, part, should_stop, count)
            if _hash(part, file.etag) != file.etag:
                part.unlink()
                raise CheckpointError(
                    f"{name.repository}: {file.name} came with another content than the hub says (wrong hash). "
                    "It was deleted; fetch it again."
                )
            part.replace(blob)
        self.cache.file(name, commit, file)

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
                ranges = {"Range": f"bytes={have}-"} if have else {}
                with self._stream(self._url(name, commit, file.name), ranges) as response:
                    if have and response.status_code != HTTPStatus.PARTIAL_CONTENT:
                        count(-have)  # the server knows no ranges: all of it comes again
                        have = 0
                    with part.open("ab" if have else "wb") as stream:
                        for piece in response.iter_raw():  # as it comes: a piece that was waited for could be lost
                            if have + len(piece) > file.size:
                                part.unlink()
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

    def _url(self, name: HubName, commit: str, file: str) -> str:
        return hf_hub_url(name.repository, file, revision=commit, endpoint=self.endpoint)

    @contextmanager
    def _stream(self, url: str, headers: dict[str, str]) -> Iterator[Any]:
        """What lies at `url`, as an answer that is not read yet."""
        # identity: sizes and ranges are of the file, not of something packed for the way
        wanted = {**build_hf_headers(), "Accept-Encoding": "identity", **headers}
        # redirected to another host, httpx takes the authorisation off
        with get_session().stream("GET", url, headers=wanted, timeout=self.timeout, follow_redirects=True) as response:
            # without its body, which may be as long as it likes: what went wrong stands in the headers
            told = {key: value for key, value in response.headers.items() if key.startswith(("x-", "retry-"))}
            hf_raise_for_status(httpx2.Response(response.status_code, headers=told, request=response.request))
            yield response


class PrefixReader:
    """Bytes as they arrive. They are kept, so that they can be used when more is known of them."""

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
    """`ask`, and once more where a connection that was kept open had been closed at the other end meanwhile."""
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
