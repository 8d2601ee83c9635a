"""Weights as files for other programs: NumPy's .npz, or .safetensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from models.files.weights_path import weights_path
from models.files.whole_files import not_written, replacing
from models.forward.context import Context
from models.forward.trace import Trace
from models.protocol.errors import ExplorerError
from models.protocol.export import Exported, ExportRequest
from models.protocol.values import Site
from models.protocol.work import Cancelled, never
from models.views.export_facts import facts, site_name

_BLOCK = 1 << 22  # bytes that are written between two looks at `should_stop`
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
    generated: Mapping[str, Any] | None = None,
) -> int:
    """Write one array a site, named "stack.layer", and beside them what they are of, as `load_weights` reads it.

    Each array is (heads, queries, keys) float32. An .npz also holds `tokens` (strings, as in the vocabulary; of
    encoder-decoder models `source_tokens` too) and `meta`, JSON; a .safetensors has that JSON as `meta` in its header.
    Returns the bytes written. A file that is there already is replaced when the new one is whole; one that is not
    whole is never left.

    Args:
        path: mended by `weights_path`.
        should_stop: polled between blocks of a few megabytes.
        report: told the fraction that is written, after each head.
        generated: of tokens that the model wrote itself: the position of the `first`, and how.

    Raises:
        Cancelled: `should_stop` said so.
        ExplorerError: the file cannot be written.
    """
    path = weights_path(path)
    write = _write_safetensors if path.suffix.lower() == ".safetensors" else _write_npz
    total = sum(site.heads * site.queries * site.keys for site in trace.sites)
    done = 0

    def after_head(site: Site) -> None:
        nonlocal done
        done += site.queries * site.keys
        if report is not None:
            report(done / total)

    try:
        meta = json.dumps(facts(trace, generated, should_stop), ensure_ascii=True)
        with replacing(path) as part:
            write(part, trace, meta, should_stop, after_head)
    except OSError as cause:
        raise ExplorerError(not_written("The weights", path, cause)) from cause
    return path.stat().st_size


def _write_npz(
    path: Path, trace: Trace, meta: str, should_stop: Callable[[], bool], after_head: Callable[[Site], None]
) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, words in _words(trace, meta):
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.array(words, dtype=np.str_), allow_pickle=False)
        for site in trace.sites:
            with archive.open(f"{site_name(site.ref)}.npy", "w", force_zip64=True) as member:
                header = {"descr": "<f4", "fortran_order": False, "shape": (site.heads, site.queries, site.keys)}
                np.lib.format.write_array_header_1_0(member, header)
                _write_heads(member, trace, site, should_stop, after_head)


def _write_safetensors(
    path: Path, trace: Trace, meta: str, should_stop: Callable[[], bool], after_head: Callable[[Site], None]
) -> None:
    """Its own writer takes whole tensors; all of a long text's weights would not fit into memory."""
    header: dict[str, Any] = {"__metadata__": {"meta": meta}}
    end = 0
    for site in trace.sites:
        start, end = end, end + 4 * site.heads * site.queries * site.keys
        shape = [site.heads, site.queries, site.keys]
        header[site_name(site.ref)] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # what follows is aligned
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for site in trace.sites:
            _write_heads(file, trace, site, should_stop, after_head)


def _words(trace: Trace, meta: str) -> Iterator[tuple[str, list[str] | str]]:
    yield "meta", meta
    yield "tokens", [token.piece for token in trace.tokens]
    if trace.source:
        yield "source_tokens", [token.piece for token in trace.source]


def _write_heads(
    member: IO[bytes], trace: Trace, site: Site, should_stop: Callable[[], bool], after_head: Callable[[Site], None]
) -> None:
    """All of a site, some rows at a time, since even one head may not fit into memory."""
    for head in range(site.heads):
        for rows in _row_blocks(site):
            _write(member, trace.weights(site, head, rows), should_stop)
        after_head(site)


def _row_blocks(site: Site) -> Iterator[slice]:
    """All queries of `site`, so many at a time as may be held."""
    step = max(1, _CELLS // site.keys)
    for start in range(0, site.queries, step):
        yield slice(start, min(start + step, site.queries))


def _write(member: IO[bytes], weights: np.ndarray, should_stop: Callable[[], bool]) -> None:
    numbers = np.ascontiguousarray(weights, dtype="<f4").reshape(-1)
    step = _BLOCK // numbers.itemsize
    for start in range(0, len(numbers), step):
        if should_stop():
            raise Cancelled
        member.write(numbers[start : start + step].tobytes())
