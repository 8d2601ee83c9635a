"""Results that take long to work out, kept on disk under the hash of all that they follow from.

Whatever is wrong with what is found there, it is worked out again: nothing relies on it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import platformdirs

from attention_models.files.safe_files import open_regular, private_folder, write_whole

_MOST_BYTES = 64 << 20
_MOST_FILES = 500


def cache_folder() -> Path:
    """`ATTENTION_EXPLORER_HOME`/cache, or the platform's own place."""
    home = os.environ.get("ATTENTION_EXPLORER_HOME")
    return Path(home) / "cache" if home else Path(platformdirs.user_cache_dir("attention-explorer", appauthor=False))


def kept_arrays(kind: str, key: str) -> dict[str, np.ndarray] | None:
    """What `keep_arrays` kept under `key`, a hash in hexadecimal; None where there is nothing that can be read."""
    path = _path(kind, key)
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        with open_regular(path) as content:  # closed also where it is no archive
            with zipfile.ZipFile(content) as archive:
                if sum(info.file_size for info in archive.infolist()) > _MOST_BYTES:
                    return None
            content.seek(0)
            with np.load(content, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def keep_arrays(kind: str, key: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Keep them; where that cannot be done they are not kept. Of many files the oldest go."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    path = _path(kind, key)
    with contextlib.suppress(OSError):
        private_folder(path.parent)
        write_whole(path, content.getvalue(), private=True)
        files = sorted(path.parent.glob("*.npz"), key=lambda file: file.stat().st_mtime)
        for file in files[: max(0, len(files) - _MOST_FILES)]:
            file.unlink()


def _path(kind: str, key: str) -> Path:
    if not re.fullmatch("[0-9a-f]{16,64}", key):
        raise ValueError(f"“{key}” is no hash.")
    return cache_folder() / kind / f"{key}.npz"
