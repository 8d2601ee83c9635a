"""Effects of heads as a table: a row a head, in the order in which they ran."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from attention_models.files.safe_files import not_written, write_whole
from attention_models.protocol.effects import EffectsView
from attention_models.protocol.errors import ExplorerError

COLUMNS = ("stack", "layer", "head", "effect")


def save_effects(effects: EffectsView, path: str | Path) -> None:
    """Write `effects` to a CSV file: stack, layer, head, and what zeroing the head adds to the logit.

    Raises:
        ExplorerError: it cannot be written; what was there is still there.
    """
    path = Path(path)
    table = io.StringIO(newline="")
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(COLUMNS)
    for at in effects.sites:
        rows.writerows((at.site.stack, at.site.layer, head, repr(float(v))) for head, v in enumerate(at.heads))
    try:
        write_whole(path, table.getvalue().encode())
    except OSError as cause:
        raise ExplorerError(not_written("The effects", path, cause)) from cause
