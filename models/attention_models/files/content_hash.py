"""What a checkpoint's files contain, as SHA-256."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from attention_models.files.adapter_files import CONFIG, TENSORS
from attention_models.files.regular_files import open_regular
from attention_models.files.training_steps import weights_place
from attention_models.files.weight_files import weight_files
from attention_models.protocol.values import CheckpointInfo
from attention_models.protocol.work import Cancelled, never

_BLOCK = 1 << 22  # bytes read between two looks at `should_stop`
_AT_ONCE = 200 << 20  # bytes that are read without being asked for
_known: dict[tuple[Path, int, int], str] = {}


def content_hash(info: CheckpointInfo, should_stop: Callable[[], bool] = never) -> dict[str, str]:
    """SHA-256 of each weight file by its name, in hexadecimal; nothing for a model that is no file.

    Of an adapter that is put on them both of its files are among them: its config has the scale.

    Raises:
        Cancelled: `should_stop` said so.
        OSError: a file cannot be read.
    """
    return {file.name: hash_of_file(file, should_stop) for file in _files_of(info)}


def content_hash_at_once(info: CheckpointInfo) -> dict[str, str]:
    """As `content_hash`, where that takes no longer than a moment; nothing where it would, or a file is gone."""
    try:
        files = _files_of(info)
        unread = sum(file.stat().st_size for file in files if known_hash_of_file(file) is None)
        return {} if unread > _AT_ONCE else content_hash(info)
    except OSError:
        return {}


def _files_of(info: CheckpointInfo) -> list[Path]:
    if info.borrowed:
        return []
    place = weights_place(info)
    files = weight_files(place) if place == Path(info.folder) else [place]
    if info.put_on is not None:
        files += [Path(info.put_on.folder) / name for name in (CONFIG, TENSORS)]
    return files


def revision_of(info: CheckpointInfo) -> str | None:
    """The commit that was fetched from a hub; None for what lies elsewhere."""
    parts = Path(info.folder).parts
    place = parts.index("snapshots") if "snapshots" in parts else len(parts)
    return parts[place + 1] if place + 1 < len(parts) and re.fullmatch("[0-9a-f]{40}", parts[place + 1]) else None


def known_hash_of_file(file: Path) -> str | None:
    """SHA-256 of a file that was read before and has not changed; None for one that would have to be read.

    Raises:
        OSError: it is not there.
    """
    whole = file.resolve()
    if whole.parent.name == "blobs" and re.fullmatch("[0-9a-f]{64}", whole.name):
        return whole.name  # a hub's cache calls it so, and what was fetched was held against it
    return _known.get(_key(whole))


def hash_of_file(file: Path, should_stop: Callable[[], bool] = never) -> str:
    """SHA-256 of a file, in hexadecimal.

    Raises:
        Cancelled: `should_stop` said so.
        OSError: it cannot be read.
    """
    known = known_hash_of_file(file)
    if known is None:
        whole = file.resolve()
        key = _key(whole)
        digest = hashlib.sha256()
        with open_regular(whole) as content:
            while block := content.read(_BLOCK):
                if should_stop():
                    raise Cancelled
                digest.update(block)
        known = _known[key] = digest.hexdigest()
    return known


def _key(whole: Path) -> tuple[Path, int, int]:
    stat = whole.stat()
    return whole, stat.st_mtime_ns, stat.st_size
