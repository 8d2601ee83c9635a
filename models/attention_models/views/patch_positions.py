"""What a vision model knows of its patches' places: how alike their learned vectors are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.positions import PatchPositionsRequest, PatchPositionsView
from attention_models.protocol.values import SeenPicture
from attention_models.textbook import waves

MOST_PATCHES = 1600
"""That are compared with each other: 10 MB of cosines."""

_NAMES = ("position_embeddings", "position_embedding", "pos_embed")
_NONE = (
    "No table of positions that has a vector for each patch of this picture was found in the model: it tells their "
    "places by a bias in each layer, say, or stretches a table of another size."
)


def answer(request: PatchPositionsRequest, context: Context) -> PatchPositionsView:
    run = context.run(request.run)
    return patch_positions_view(request, run.model, run.trace)


@torch.no_grad()
def patch_positions_view(request: PatchPositionsRequest, model: Model, trace: Trace) -> PatchPositionsView:
    """Cosine similarity of the position vectors of every two patches (Dosovitskiy et al. 2021, figure 7, centre)."""
    seen = trace.picture
    if seen is None:
        return _without(request, "This model reads texts: its patches have no places.")
    patches = seen.rows * seen.columns
    if patches > MOST_PATCHES:
        words = f"{patches:,} patches are too many to compare each with all: {MOST_PATCHES:,} at most."
        return _without(request, words)
    table = patch_table(model, seen)
    if table is None:
        return _without(request, _NONE)
    grid = (seen.rows, seen.columns)
    alike = waves.cosines(table.float().cpu().numpy()).reshape(*grid, *grid).astype(np.float32)
    alike.flags.writeable = False
    words = (
        "Each small map stands where its patch stands in the picture, and shows how alike its position and all others "
        f"are: cosines of vectors of {table.shape[1]} numbers, one a patch, which are learned like every other weight "
        "and added to the patches before the first layer. Nobody told the model which patches are neighbours "
        "(Dosovitskiy et al. 2021, figure 7)."
    )
    return PatchPositionsView(request=request, alike=alike, words=words)


def patch_table(model: Model, seen: SeenPicture) -> Tensor | None:
    """The vectors that are added to the patches, (patches, width); None where the model has none of this number.

    Before them a table may have those of CLS and its like, though not of registers, which have no place.
    """
    patches = seen.rows * seen.columns
    for name, parameter in model.module.named_parameters():
        last = name.removesuffix(".weight").rpartition(".")[2]
        rows = parameter[0] if parameter.ndim == 3 and len(parameter) == 1 else parameter
        if last in _NAMES and rows.ndim == 2 and 0 <= len(rows) - patches <= seen.first:
            return rows[len(rows) - patches :].detach()
    return None


def _without(request: PatchPositionsRequest, words: str) -> PatchPositionsView:
    return PatchPositionsView(request=request, alike=None, words=words)
