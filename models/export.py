"""Weights as files for other programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.errors import ExplorerError
from models.trace import Trace


def save_weights(trace: Trace, path: str | Path) -> int:
    """Write an .npz: `tokens` (strings, as in the vocabulary) and one array a site, named "stack.layer".

    Each array is (heads, queries, keys) float32. Encoder-decoder models have `source_tokens` too. Returns the bytes
    written.

    Raises:
        ExplorerError: the file can not be written.
    """
    path = Path(path)
    arrays = {"tokens": np.array([token.piece for token in trace.tokens])}
    if trace.source:
        arrays["source_tokens"] = np.array([token.piece for token in trace.source])
    for site in trace.sites:
        arrays[f"{site.stack}.{site.layer}"] = np.stack([trace.weights(site, head) for head in range(site.heads)])
    try:
        with path.open("wb") as stream:  # np.savez would add an ending of its own to the name
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    except OSError as cause:
        raise ExplorerError(f"The weights could not be written to {path}: {cause.strerror or cause}.") from cause
    return path.stat().st_size
