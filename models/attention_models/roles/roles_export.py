"""The roles of every head as a file for other programs."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from attention_models.files.safe_files import not_written, write_whole
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.roles import RolesView


def save_roles(view: RolesView, path: str | Path) -> None:
    """Write a table: stack, layer, head, role, score; a line for each score that there is.

    Raises:
        ExplorerError: the file cannot be written.
    """
    path = Path(path)
    content = io.StringIO()
    table = csv.writer(content, lineterminator="\n")
    table.writerow(["stack", "layer", "head", "role", "score"])
    for i, site in enumerate(view.sites):
        for head in range(view.scores.shape[2]):
            for place, role in enumerate(view.roles):
                score = view.scores[place, i, head]
                if not math.isnan(score):
                    table.writerow([site.stack, site.layer, head, role, f"{score:.6f}"])
    try:
        write_whole(path, content.getvalue().encode())
    except OSError as cause:
        raise ExplorerError(not_written("The table of roles", path, cause)) from cause
