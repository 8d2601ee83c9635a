"""Which checkpoint it is, by what its files contain: to tell one that was moved from one that has changed. No torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from attention_models.files.adapter_files import CONFIG, TENSORS
from attention_models.files.names import title_of
from attention_models.files.safe_files import open_regular
from attention_models.files.training_steps import is_snapshot, settings_in, weights_place
from attention_models.files.weight_files import weight_files
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.values import CheckpointInfo

# What a checkpoint's files contain, as SHA-256.


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


Files = Mapping[str, str]
"""SHA-256 in hexadecimal of each file that decides what a checkpoint computes, by the file's name."""

_ENDINGS = frozenset({".safetensors", ".json", ".txt", ".model", ".jinja"})
_MOST_FILES = 200
_EAGER_BYTES = 200 << 20


def files_that_count(path: Path) -> list[Path]:
    """The files of a checkpoint whose content decides what it computes; the file itself where it is a GGUF file.

    Of a snapshot these are its file and the settings in the folder of its training.

    Raises:
        OSError: it is not there, or may not be read.
    """
    if not path.is_dir():
        path.stat()
        return [path] if not is_snapshot(path) else [*settings_in(path.parent.parent), path]
    found = sorted(file for file in path.iterdir() if file.suffix in _ENDINGS and file.is_file())
    return found[:_MOST_FILES]


def fingerprint(path: Path, should_stop: Callable[[], bool] = never) -> dict[str, str]:
    """Of a checkpoint's folder or GGUF file. Reads all of it, unless that was done before.

    Raises:
        Cancelled: `should_stop` said so.
        OSError: a file cannot be read.
    """
    return {file.name: hash_of_file(file, should_stop) for file in files_that_count(path)}


def cheap_fingerprint(path: Path) -> dict[str, str]:
    """As `fingerprint`, where that takes no longer than a moment; nothing where it would.

    Raises:
        OSError: a file cannot be read.
    """
    files = files_that_count(path)
    unread = [file for file in files if known_hash_of_file(file) is None]
    return {} if sum(file.stat().st_size for file in unread) > _EAGER_BYTES else fingerprint(path)


def difference(expected: Files, found: Files) -> str:
    """What is another in `found`, as a clause ("model.safetensors has other contents"); "" where nothing is.

    Files beside those of `expected` count where they hold weights: an adapter that was put there changes every number.
    """
    missing = sorted(name for name in expected if name not in found)
    if missing and len(expected) == len(found) == 1:  # a GGUF file may have another name
        return "" if set(expected.values()) == set(found.values()) else f"{missing[0]} has other contents"
    other = sorted(name for name in expected if name in found and found[name] != expected[name])
    added = sorted(name for name in found if name not in expected and name.endswith(".safetensors"))
    parts = []
    if other:
        parts.append(f"{_listed(other)} {'has' if len(other) == 1 else 'have'} other contents")
    if missing:
        parts.append(f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    if added and expected:
        parts.append(f"{_listed(added)} {'was' if len(added) == 1 else 'were'} added")
    return ", ".join(parts)


def shown_hash(files: Files) -> str:
    """The beginning of the hash of the weights, as a sentence shows it: "model.safetensors, SHA-256 3f9a61c0d2e7…"."""
    weights = [name for name in files if name.endswith((".safetensors", ".gguf"))] or list(files)
    return f"{weights[0]}, SHA-256 {files[weights[0]][:12]}…" if weights else ""


def title_of_reference(reference: str) -> str:
    """What to call a checkpoint in a sentence."""
    return title_of(Path(reference)) or reference


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
