"""Two runs side by side as a file for other programs."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from attention_models.files.safe_files import not_written, write_whole
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.two_runs import AlignedAxis, RunSide, TwoRunsView
from attention_models.protocol.values import SiteRef

ENDINGS = (".csv", ".npz")
COLUMNS = ("stack", "layer", "head", "change")
MATCHED = ("other_stack", "other_layer", "other_head", "similarity")
"""Of heads that were matched by similarity."""


def save_comparison(view: TwoRunsView, path: str | Path) -> None:
    """Write how much every head differs, as the ending of `path` says.

    .csv: a row a head in the order in which they ran: stack, layer, head, change (0 to 1, `HeadChange`); where heads
    were matched by similarity also other_stack, other_layer, other_head, similarity.

    .npz: the same columns as arrays; "a", "b" and "difference" (query places, key places) float32 of the head that
    `view` shows, where it shows one, with "queries" and "keys" (places, 4) int: the first token of A in a place and the
    one behind its last, and those of B; and "meta", JSON that says what both runs are of and what they say.

    Raises:
        ExplorerError: another ending, or the file cannot be written; what was there is still there.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ExplorerError(f"Two runs side by side are written as .csv or .npz, not as “{path.suffix or path.name}”.")
    content = _table(view).encode() if ending == ".csv" else _arrays(view)
    try:
        write_whole(path, content)
    except OSError as cause:
        raise ExplorerError(not_written("The comparison", path, cause)) from cause


def _columns(view: TwoRunsView) -> dict[str, list[Any]]:
    rows = [(*_head(c.site, c.head), c.change, *_head(c.other_site, c.other_head), c.similarity) for c in view.changes]
    names = COLUMNS + MATCHED if view.matching == "similarity" else COLUMNS
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _head(site: SiteRef, head: int) -> tuple[str, int, int]:
    return site.stack, site.layer, head


def _table(view: TwoRunsView) -> str:
    content = io.StringIO(newline="")
    table, columns = csv.writer(content, lineterminator="\n"), _columns(view)
    table.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        table.writerow([repr(value) if isinstance(value, float) else value for value in row])
    return content.getvalue()


def _arrays(view: TwoRunsView) -> bytes:
    arrays = {name: np.array(values) for name, values in _columns(view).items()}
    maps, queries, keys = view.maps, view.queries, view.keys
    if maps is not None and queries is not None and keys is not None:
        arrays |= {"a": maps.a, "b": maps.b, "difference": maps.difference}
        arrays |= {"queries": _places(queries), "keys": _places(keys)}
    meta = {
        "format": 1,
        "a": _meta(view.a),
        "b": _meta(view.b),
        "matching": view.matching,
        "matched_over": view.matched_over,
        "aligned": None if queries is None or keys is None else {"queries": queries.by, "keys": keys.by},
        "cell": None if maps is None else maps.cell,
        "why_not": [*filter(None, [view.why_not_by_index]), *view.why_not],
        "remarks": list(view.remarks),
    }
    content = io.BytesIO()
    np.savez_compressed(content, **arrays, meta=np.array(json.dumps(meta)))  # type: ignore[arg-type]
    return content.getvalue()


def _places(axis: AlignedAxis) -> np.ndarray:
    return np.array([(*place.a, *place.b) for place in axis.places])


def _meta(side: RunSide) -> dict[str, Any]:
    return {
        "checkpoint": side.name,
        "sha256": dict(side.files),
        "device": side.device,
        "dtype": side.dtype,
        "adapter": side.adapter,
        "interventions": list(side.interventions),
        "text": side.text,
        "written": side.written,
        "tokens": [token.label for token in side.tokens],
        "source": [token.label for token in side.source],
        "head": None if side.site is None else [side.site.stack, side.site.layer, side.head],
        "says": [
            {"label": c.label, "probability": None if math.isnan(c.probability) else c.probability, "logit": c.logit}
            for c in side.output.candidates
        ],
    }
