"""Weights as files for other programs: NumPy's .npz, or .safetensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from attention_models.attention.word_weights import merged_weights
from attention_models.files.safe_files import not_written, replacing
from attention_models.files.weights_path import path_of_text, weights_path
from attention_models.forward.context import Context
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.export import Exported, ExportRequest
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.values import Site
from attention_models.protocol.word_spans import Words, site_words, word_text
from attention_models.views.export_facts import facts, site_name

_BLOCK = 1 << 22  # bytes that are written between two looks at `should_stop`
_CELLS = 1 << 22  # weights held at once: a head of 32,768 tokens has a thousand million


def answer(request: ExportRequest, context: Context) -> Exported:
    def report(fraction: float) -> None:
        context.report("Writing the weights", fraction)

    run = context.run(request.run)
    report(0.0)
    path, traces = weights_path(request.path), run.traces if request.every_text else (run.trace,)
    paths = [path_of_text(path, place) for place in range(len(traces))] if request.every_text else [path]
    size = 0
    for place, (trace, each) in enumerate(zip(traces, paths, strict=True)):

        def report_all(fraction: float, before: int = place) -> None:
            report((before + fraction) / len(traces))

        size += save_weights(trace, each, context.should_stop, report_all, words=request.words)
    return Exported(request=request, size=size, paths=tuple(str(each) for each in paths))


def save_weights(
    trace: Trace,
    path: str | Path,
    should_stop: Callable[[], bool] = never,
    report: Callable[[float], None] | None = None,
    generated: Mapping[str, Any] | None = None,
    words: bool = False,
) -> int:
    """Write one array a site, named "stack.layer", and beside them what they are of, as `load_weights` reads it.

    Each array is (heads, queries, keys) float32. An .npz also holds `tokens` (strings, as in the vocabulary; of
    encoder-decoder models `source_tokens` too) and `meta`, JSON; a .safetensors has that JSON as `meta` in its header.
    Of words each array is (heads, query words, key words), and the .npz holds `words` (and `source_words`) too; a row
    of cross-attention is then of the positions that wrote a word, row i of the one after word i.
    Returns the bytes written. A file that is there already is replaced when the new one is whole; one that is not
    whole is never left.

    Args:
        path: mended by `weights_path`.
        should_stop: polled between blocks of a few megabytes.
        report: told the fraction that is written, after each head.
        generated: of tokens that the model wrote itself: the position of the `first`, and how.
        words: merge the pieces of words, as `merged_weights` does.

    Raises:
        Cancelled: `should_stop` said so.
        ExplorerError: the file cannot be written.
    """
    path = weights_path(path)
    write = _write_safetensors if path.suffix.lower() == ".safetensors" else _write_npz
    parts = [_Part.of(trace, site, words) for site in trace.sites]
    total = sum(part.site.heads * part.weights for part in parts)
    done = 0

    def after_head(part: _Part) -> None:
        nonlocal done
        done += part.weights
        if report is not None:
            report(done / total)

    try:
        meta = json.dumps(facts(trace, generated, should_stop, words), ensure_ascii=True)
        with replacing(path) as unfinished:
            write(unfinished, trace, parts, meta, should_stop, after_head)
    except OSError as cause:
        raise ExplorerError(not_written("The weights", path, cause)) from cause
    return path.stat().st_size


@dataclass(frozen=True, slots=True)
class _Part:
    """An array of the file: a site, and what its queries and keys are merged into."""

    site: Site
    queries: Words
    keys: Words
    by_word: bool

    @classmethod
    def of(cls, trace: Trace, site: Site, words: bool) -> _Part:
        queries, keys = site_words(trace, site) if words else (Words.alone(site.queries), Words.alone(site.keys))
        return cls(site, queries, keys, words)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.site.heads, len(self.queries), len(self.keys)

    @property
    def weights(self) -> int:
        """Of each head."""
        return len(self.queries) * len(self.keys)

    def blocks(self) -> Iterator[tuple[slice, Words]]:
        """All queries, so many at a time as may be held and no word torn apart: rows, and the words that they make."""
        step, first = max(1, _CELLS // self.site.keys), 0
        while first < len(self.queries):
            begin = self.queries.tokens(first).start
            last = max(first + 1, self.queries.word(min(begin + step, self.queries.count - 1)))
            last = len(self.queries) if begin + step >= self.queries.count else last
            yield slice(begin, self.queries.tokens(last - 1).stop), self.queries.part(first, last)
            first = last


def _write_npz(
    path: Path,
    trace: Trace,
    parts: Sequence[_Part],
    meta: str,
    should_stop: Callable[[], bool],
    after_head: Callable[[_Part], None],
) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, words in _strings(trace, meta, any(part.by_word for part in parts)):
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.array(words, dtype=np.str_), allow_pickle=False)
        for part in parts:
            with archive.open(f"{site_name(part.site.ref)}.npy", "w", force_zip64=True) as member:
                header = {"descr": "<f4", "fortran_order": False, "shape": part.shape}
                np.lib.format.write_array_header_1_0(member, header)
                _write_heads(member, trace, part, should_stop, after_head)


def _write_safetensors(
    path: Path,
    trace: Trace,
    parts: Sequence[_Part],
    meta: str,
    should_stop: Callable[[], bool],
    after_head: Callable[[_Part], None],
) -> None:
    """Its own writer takes whole tensors; all of a long text's weights would not fit into memory."""
    header: dict[str, Any] = {"__metadata__": {"meta": meta}}
    end = 0
    for part in parts:
        start, end = end, end + 4 * part.site.heads * part.weights
        header[site_name(part.site.ref)] = {"dtype": "F32", "shape": list(part.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # what follows is aligned
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for part in parts:
            _write_heads(file, trace, part, should_stop, after_head)


def _strings(trace: Trace, meta: str, by_word: bool) -> Iterator[tuple[str, list[str] | str]]:
    yield "meta", meta
    for name, tokens in (("", trace.tokens), ("source_", trace.source)):
        if tokens or not name:
            yield f"{name}tokens", [token.piece for token in tokens]
            if by_word:
                words = Words.of(tokens)
                yield f"{name}words", [word_text([tokens[i] for i in words.tokens(n)]) for n in range(len(words))]


def _write_heads(
    member: IO[bytes],
    trace: Trace,
    part: _Part,
    should_stop: Callable[[], bool],
    after_head: Callable[[_Part], None],
) -> None:
    """All of a site, some rows at a time, since even one head may not fit into memory."""
    for head in range(part.site.heads):
        for rows, queries in part.blocks():
            weights = trace.weights(part.site, head, rows)
            _write(member, merged_weights(weights, queries, part.keys), should_stop)
        after_head(part)


def _write(member: IO[bytes], weights: np.ndarray, should_stop: Callable[[], bool]) -> None:
    numbers = np.ascontiguousarray(weights, dtype="<f4").reshape(-1)
    step = _BLOCK // numbers.itemsize
    for start in range(0, len(numbers), step):
        if should_stop():
            raise Cancelled
        member.write(numbers[start : start + step].tobytes())
