"""Weights as files for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from models.files.whole_files import not_written, replacing
from models.forward.context import Context
from models.forward.trace import Trace
from models.protocol.errors import ExplorerError
from models.protocol.export import Exported, ExportRequest
from models.protocol.values import Site
from models.protocol.work import Cancelled, never

_BLOCK = 1 << 22  # bytes that are compressed between two looks at `should_stop`
_CELLS = 1 << 22  # weights held at once: a head of 32,768 tokens has a thousand million


def answer(request: ExportRequest, context: Context) -> Exported:
    def report(fraction: float) -> None:
        context.report("Writing the weights", fraction)

    run = context.run(request.run)
    report(0.0)
    return Exported(request=request, size=save_weights(run.trace, request.path, context.should_stop, report))


def save_weights(
    trace: Trace,
    path: str | Path,
    should_stop: Callable[[], bool] = never,
    report: Callable[[float], None] | None = None,
) -> int:
    """Write an .npz: `tokens` (strings, as in the vocabulary) and one array a site, named "stack.layer".

    Each array is (heads, queries, keys) float32. Encoder-decoder models have `source_tokens` too. Returns the bytes
    written. A file that is there already is replaced when the new one is whole; one that is not whole is never left.

    Args:
        should_stop: polled between blocks of a few megabytes.
        report: told the fraction that is written, after each head.

    Raises:
        Cancelled: `should_stop` said so.
        ExplorerError: the file cannot be written.
    """
    path = Path(path)
    total = sum(site.heads * site.queries * site.keys for site in trace.sites)
    done = 0
    try:
        with replacing(path) as part, ZipFile(part, "w", ZIP_DEFLATED) as archive:
            for name, pieces in _words(trace):
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.array(pieces, dtype=np.str_), allow_pickle=False)
            for site in trace.sites:
                with archive.open(f"{site.stack}.{site.layer}.npy", "w", force_zip64=True) as member:
                    _write_header(member, (site.heads, site.queries, site.keys))
                    for head in range(site.heads):
                        for rows in _row_blocks(site):
                            _write(member, trace.weights(site, head, rows), should_stop)
                        done += site.queries * site.keys
                        if report is not None:
                            report(done / total)
    except OSError as cause:
        raise ExplorerError(not_written("The weights", path, cause)) from cause
    return path.stat().st_size


def _words(trace: Trace) -> Iterator[tuple[str, list[str]]]:
    yield "tokens", [token.piece for token in trace.tokens]
    if trace.source:
        yield "source_tokens", [token.piece for token in trace.source]


def _row_blocks(site: Site) -> Iterator[slice]:
    """All queries of `site`, so many at a time as may be held."""
    step = max(1, _CELLS // site.keys)
    for start in range(0, site.queries, step):
        yield slice(start, min(start + step, site.queries))


def _write_header(member: IO[bytes], shape: tuple[int, ...]) -> None:
    """Of a whole site's array; its heads follow one at a time, since all of them together may not fit into memory."""
    header = {"descr": np.dtype(np.float32).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)


def _write(member: IO[bytes], weights: np.ndarray, should_stop: Callable[[], bool]) -> None:
    numbers = np.ascontiguousarray(weights, dtype=np.float32).reshape(-1)
    step = _BLOCK // numbers.itemsize
    for start in range(0, len(numbers), step):
        if should_stop():
            raise Cancelled
        member.write(numbers[start : start + step].tobytes())
