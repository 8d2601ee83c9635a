"""huggingface_hub's cache as it lies on the disk: `models--owner--name/` with `blobs/`, `refs/` and `snapshots/`.

Reading it needs no network. Every other program that uses the cache finds what is written here.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from attention_models.files.gguf import is_named_gguf, is_part
from attention_models.files.memory import in_bytes
from attention_models.files.names import HubName
from attention_models.files.safe_files import write_whole
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import ADAPTER, HubFile

WAIT_SECONDS = 0.2
"""How long one try to take a lock lasts."""

_SHARD = re.compile(r"model-\d{5}-of-(\d{5})\.safetensors")


def cache_location() -> str:
    """The folder of huggingface_hub's cache (HF_HOME, HF_HUB_CACHE, or the default)."""
    from huggingface_hub import constants

    return constants.HF_HUB_CACHE


class HubCache:
    """The cache in one folder; huggingface_hub's own where that is left out."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(cache_location())

    def path_of(self, name: HubName) -> Path | None:
        """What `name` opens: its GGUF file, or its folder. None where it is not here whole."""
        for folder in self._snapshots(name):
            if name.file and (folder / name.file).is_file():
                return folder / name.file
            if not name.file and (folder / "config.json").is_file() and _has_weights(folder):
                return folder
            if not name.file and all((folder / file).is_file() for file in ADAPTER):
                return folder
        return None

    def ggufs_of(self, name: HubName) -> tuple[HubFile, ...]:
        """The GGUF files of the repository that are here whole, the smallest first."""
        found: dict[str, HubFile] = {}
        for folder in self._snapshots(name):
            for path in folder.rglob("*"):
                file = path.relative_to(folder).as_posix()
                if is_named_gguf(file) and not is_part(file) and path.is_file():
                    found.setdefault(file, file_here(path, file))
        return tuple(sorted(found.values(), key=lambda file: (file.size, file.name)))

    def snapshot(self, name: HubName, commit: str) -> Path:
        """Where the files of a commit lie, by their names."""
        return self._root(name) / "snapshots" / commit

    def here(self, name: HubName, commit: str, file: str) -> Path | None:
        path = self.snapshot(name, commit) / file
        return path if path.is_file() else None

    def blob(self, name: HubName, etag: str) -> Path:
        """Where the content lies, by its hash."""
        return self._root(name) / "blobs" / etag

    def file(self, name: HubName, commit: str, file: HubFile) -> None:
        """Link a file of `commit` to the content that lies under its hash, as huggingface_hub does.

        huggingface_hub's own function would ask the hub again, and take paths to write to from its answer.
        """
        path, blob = self.snapshot(name, commit) / file.name, self.blob(name, file.etag)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.symlink_to(os.path.relpath(blob, path.parent))
        except FileExistsError:  # a link whose content is gone
            path.unlink()
            path.symlink_to(os.path.relpath(blob, path.parent))
        except OSError:  # Windows, without the right to make links: there the content lies under the name only
            blob.replace(path)

    def part(self, name: HubName, etag: str) -> Path:
        """Where content lies that was not fetched whole."""
        return self._root(name) / "blobs" / f"{etag}.incomplete"

    @contextmanager
    def locked(self, name: HubName, etag: str, wait: Callable[[], None]) -> Iterator[None]:
        """No other program fetches the content of this hash meanwhile, huggingface_hub included: the lock is its own.

        `wait` is called each time the lock was still another's after `WAIT_SECONDS`; what it raises ends the waiting.
        A program that is killed loses its locks.
        """
        from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]  # not marked for export

        path = self.folder / ".locks" / name.cache_folder / f"{etag}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            while True:
                try:
                    held.enter_context(WeakFileLock(path, timeout=WAIT_SECONDS))
                    break
                except TimeoutError:
                    wait()
            yield

    def with_bytes_here(self, name: HubName, commit: str, file: HubFile) -> HubFile:
        if self.here(name, commit, file.name) is not None:
            return replace(file, here=file.size)
        part = self.part(name, file.etag)
        return replace(file, here=min(file.size, part.stat().st_size) if part.exists() else 0)

    def remember(self, name: HubName, commit: str) -> None:
        """Note that the branch or tag means this commit, as huggingface_hub does, so that it is found offline."""
        if name.branch != commit:
            ref = self._root(name) / "refs" / name.branch
            if ref.is_file() and ref.read_text() == commit:
                return  # a cache that may only be read is good for what is in it
            ref.parent.mkdir(parents=True, exist_ok=True)
            write_whole(ref, commit.encode())

    def check_room(self, name: HubName, missing: int) -> None:
        """Refuse a download for which the disk has no room."""
        free = shutil.disk_usage(_existing(self.folder)).free
        if free < missing:
            raise CheckpointError(
                f"{name.title} needs {in_bytes(missing)} more, and the disk of {self.folder} has "
                f"{in_bytes(free)} free. Make room, or set HF_HOME to a folder on another disk."
            )

    def _root(self, name: HubName) -> Path:
        return self.folder / name.cache_folder

    def _snapshots(self, name: HubName) -> Iterator[Path]:
        """Folders that `name` may mean: that of its branch, then, where no revision was named, those fetched before.

        Looking a name up moves its branch on, and what was fetched under the commit before is still to be opened.
        """
        ref = self._root(name) / "refs" / name.branch
        commit = ref.read_text().strip() if ref.is_file() else name.branch
        first = self.snapshot(name, commit)
        if Path(commit).name == commit and first.is_dir():
            yield first
        if not name.revision and first.parent.is_dir():
            others = [folder for folder in first.parent.iterdir() if folder.is_dir() and folder != first]
            yield from sorted(others, key=lambda folder: folder.stat().st_mtime, reverse=True)


def _has_weights(folder: Path) -> bool:
    """Not where a checkpoint was only looked up, nor where some of its shards have not come."""
    names = [path.name for path in folder.glob("*.safetensors") if path.name not in ADAPTER]
    shards = [match for match in map(_SHARD.fullmatch, names) if match is not None]
    return len(names) > len(shards) or (bool(shards) and len(shards) >= int(shards[0][1]))


def file_here(path: Path, name: str) -> HubFile:
    """The file at `path`, which is whole and was fetched as `name`."""
    size = path.stat().st_size
    return HubFile(name, size, here=size)


def _existing(folder: Path) -> Path:
    """`folder`, or the nearest folder above it that exists."""
    return next((path for path in (folder, *folder.parents) if path.exists()), Path())
