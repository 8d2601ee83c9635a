"""Effects of heads as a table: a row a head, in the order in which they ran."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from models.files.whole_files import write_whole
from models.protocol.effects import EffectsView

COLUMNS = ("stack", "layer", "head", "effect")


def save_effects(effects: EffectsView, path: str | Path) -> None:
    """Write `effects` to a CSV file: stack, layer, head, and what zeroing the head adds to the logit.

    Raises:
        OSError: it cannot be written; what was there is still there.
    """
    table = io.StringIO(newline="")
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(COLUMNS)
    for at in effects.sites:
        rows.writerows((at.site.stack, at.site.layer, head, repr(float(v))) for head, v in enumerate(at.heads))
    write_whole(Path(path), table.getvalue().encode())
