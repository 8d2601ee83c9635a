"""The text half of a checkpoint that holds texts against pictures (CLIP, SigLIP), named `my-clip#text`."""

from __future__ import annotations

from pathlib import Path

from attention_models.files.names import is_hub

SUFFIX = "#text"


def whole_of(reference: str) -> str | None:
    """The checkpoint whose text half `reference` names; None where it names a checkpoint as it is.

    Names of folders may end in "#text": a folder of this very name comes first.
    """
    whole = reference.removesuffix(SUFFIX)
    if not whole or whole == reference:
        return None
    try:
        return None if not is_hub(reference) and Path(reference).expanduser().exists() else whole
    except (OSError, RuntimeError, ValueError):
        return None
