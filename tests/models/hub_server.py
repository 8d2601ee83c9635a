"""A hub on this computer: the part of Hugging Face's interface that fetching a model uses, and ways to misbehave."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import huggingface_hub
import pytest
from huggingface_hub import constants

REPOSITORY = "someone/tiny-model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 2000  # bytes: larger files are kept apart and named by their SHA-256


class Hub(ThreadingHTTPServer):
    """Serves the files of `folder` as `REPOSITORY` at `COMMIT`. Set its fields to make it misbehave."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.status = 0  # answered to everything where it is not 0
        self.headers: dict[str, str] = {}  # sent beside it
        self.hangs = threading.Event()  # while set, nothing is answered
        self.released = threading.Event()
        self.breaks_after: int | None = None  # bytes of a large file, then the connection is closed
        self.wrong_bytes = False
        self.knows_ranges = True
        self.answers_nonsense = False
        self.instead: Callable[[Handler, str], bool] = lambda handler, path: False  # answers a path in its own way
        # called after every 64 kB of an answer, with its bytes so far
        self.pause: Callable[[int], None] = lambda sent: None
        self.sent = 0  # bytes of files
        self.asked: list[tuple[str, str, str]] = []  # method, path, range
        self.authorisations: list[str] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def content(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def etag(self, name: str) -> str:
        content = self.content(name)
        if len(content) > LARGE:
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def info(self) -> dict[str, Any]:
        siblings = []
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            name = path.relative_to(self.folder).as_posix()
            content, etag = self.content(name), self.etag(name)
            entry: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": etag}
            if len(content) > LARGE:
                entry |= {"blobId": "f" * 40, "lfs": {"sha256": etag, "size": len(content), "pointerSize": 134}}
            siblings.append(entry)
        return {"id": REPOSITORY, "sha": COMMIT, "siblings": siblings, "tags": [], "cardData": {"license": "mit"}}

    def bytes_sent(self, name: str) -> list[str]:
        """The ranges that were asked for of a file, "" for the whole of it."""
        return [r for method, path, r in self.asked if method == "GET" and unquote(path).endswith("/" + name)]


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        hub.asked.append((self.command, path, self.headers.get("Range", "")))
        hub.authorisations.append(self.headers.get("Authorization", ""))
        if hub.hangs.is_set():
            hub.released.wait(20)
            self.close_connection = True
            return
        if hub.instead(self, path):
            return
        if hub.status:
            self._send(hub.status, b"{}" if with_body else b"", hub.headers)
        elif hub.answers_nonsense:
            self._send(200, b"<html>Log in to the hotel's network</html>", {})
        elif path.startswith(f"/api/models/{REPOSITORY}"):
            revision = path.partition("/revision/")[2] or "main"
            if revision not in ("main", "v1", COMMIT):
                self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            else:
                self._send(200, json.dumps(hub.info()).encode(), {})
        elif path.startswith(f"/{REPOSITORY}/resolve/"):
            self._file(unquote(path.split("/", 5)[5]), with_body)
        else:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def _file(self, name: str, with_body: bool) -> None:
        hub = self.server
        if not (hub.folder / name).is_file():
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content = hub.content(name)
        headers = {"ETag": f'"{hub.etag(name)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        headers |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{hub.etag(name)}"'}
        status, first, last = 200, 0, len(content)
        asked = self.headers.get("Range", "")
        if asked and hub.knows_ranges:
            start, _, end = asked.removeprefix("bytes=").partition("-")
            status, first, last = 206, int(start), min(len(content), int(end) + 1 if end else len(content))
            headers["Content-Range"] = f"bytes {first}-{last - 1}/{len(content)}"
        body = content[first:last]
        if hub.wrong_bytes and len(content) > LARGE:
            body = bytes(len(body))
        cut = hub.breaks_after if len(body) > LARGE else None
        self._send(status, body, headers, with_body, cut)

    def send_pieces(self, pieces: Iterable[bytes], headers: dict[str, str]) -> bool:
        """An answer of no stated length, until nobody listens any more. True: that was the answer."""
        self.close_connection = True
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                if self.server.released.is_set():
                    break
        return True

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], with_body: bool = True, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            for start in range(0, len(body[:cut]), 1 << 16):
                self.wfile.write(body[start : min(start + (1 << 16), cut or len(body))])
                self.server.sent += 1 << 16
                self.server.pause(start + (1 << 16))
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True


@contextmanager
def serving(folder: Path) -> Iterator[Hub]:
    """A hub in a thread, gone at the end."""
    hub = Hub(folder)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.released.set()
        hub.shutdown()
        hub.server_close()
        thread.join()


@contextmanager
def reached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that huggingface_hub may be asked for; tests are offline otherwise. Its connections end with it."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with serving(folder) as hub:
        yield hub
    huggingface_hub.close_session()
