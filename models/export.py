"""Weights as files for other programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from models.errors import ExplorerError
from models.trace import Trace


def save_weights(trace: Trace, path: str | Path) -> int:
    """Write an .npz: `tokens` (strings, as in the vocabulary) and one array a site, named "stack.layer".

    Each array is (heads, queries, keys) float32. Encoder-decoder models have `source_tokens` too. Returns the bytes
    written. A file that is there already is replaced when the new one is whole.

    Raises:
        ExplorerError: the file can not be written.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.part")
    try:
        try:
            with ZipFile(part, "w", ZIP_DEFLATED) as archive:
                for name, array in _arrays(trace):
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as cause:
        raise ExplorerError(f"The weights could not be written to {path}: {cause.strerror or cause}.") from cause
    return path.stat().st_size


def _arrays(trace: Trace) -> Iterator[tuple[str, np.ndarray]]:
    """One at a time: all sites together may not fit into memory."""
    yield "tokens", np.array([token.piece for token in trace.tokens], dtype=np.str_)
    if trace.source:
        yield "source_tokens", np.array([token.piece for token in trace.source], dtype=np.str_)
    for site in trace.sites:
        yield f"{site.stack}.{site.layer}", np.stack([trace.weights(site, head) for head in range(site.heads)])
