"""What was found in a file of texts, as files for other programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from attention_models.files.safe_files import not_written, write_whole
from attention_models.protocol.corpus import CorpusView
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.interventions import describe

_COLUMNS = (
    *("stack", "layer", "head", "rank", "line", "query", "key", "query_word", "key_word", "weight", "score"),
    *("before", "text", "second"),
)


def save_means(view: CorpusView, path: str | Path) -> None:
    """Write an .npz with three arrays a site, and what they are of.

    "stack.layer" (heads, positions, positions) float32: the mean weight of each query place for each key place, NaN
    where no text has both; "stack.layer.texts" (positions, positions) int: over how many texts; "stack.layer.distance"
    (heads, distances) float32: the mean by query - key, which "distances" lists, of rows that see two keys or
    more. "meta" is JSON.

    Raises:
        ExplorerError: the file cannot be written.
    """
    path = Path(path)
    arrays: dict[str, np.ndarray] = {"distances": view.distances}
    for i, site in enumerate(view.sites):
        name = f"{site.stack}.{site.layer}"
        there = ~np.isnan(view.mean[i]).all(axis=(1, 2))
        arrays[name] = view.mean[i, there]
        arrays[f"{name}.texts"] = view.texts_at[i]
        arrays[f"{name}.distance"] = view.by_distance[i, there]
    meta = {
        "format": 1,
        "file": Path(view.request.path).name,
        "texts": view.texts,
        "tokens": view.tokens,
        "lines": view.lines,
        "left_out": view.left_out_count,
        "question": asdict(view.request.question),
        "interventions": [describe(item) for item in view.request.interventions],
        "ended": view.ended,
    }
    content = io.BytesIO()
    np.savez_compressed(content, **arrays, meta=np.array(json.dumps(meta)))  # type: ignore[arg-type]
    _write(path, content.getvalue(), "The table of means")


def save_hits(view: CorpusView, path: str | Path) -> None:
    """Write a .csv with a row for every place that is listed, of each head the best first.

    Raises:
        ExplorerError: the file cannot be written.
    """
    content = io.StringIO()
    table = csv.writer(content)
    table.writerow(_COLUMNS)
    for site, of_site in zip(view.sites, view.hits, strict=True):
        for head, hits in enumerate(of_site):
            for rank, hit in enumerate(hits, start=1):
                where = (site.stack, site.layer, head, rank, hit.line, hit.query, hit.key)
                said = (hit.query_word, hit.key_word, f"{hit.weight:.7g}", f"{hit.score:.7g}")
                table.writerow((*where, *said, hit.before, hit.text, hit.second or ""))
    _write(Path(path), content.getvalue().encode("utf-8"), "The table of places")


def _write(path: Path, content: bytes, what: str) -> None:
    try:
        write_whole(path, content)
    except OSError as cause:
        raise ExplorerError(not_written(what, path, cause)) from cause
