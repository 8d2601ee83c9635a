"""How much of a head rests on the first token of its text, and how little that hands on."""

from __future__ import annotations

import numpy as np
import torch

from attention_models.attention.numbers import to_numpy
from attention_models.forward.trace import SiteLike, Trace
from attention_models.protocol.head import FirstKey
from attention_models.protocol.values import site_tokens


@torch.no_grad()
def first_key(trace: Trace, where: SiteLike, head: int, weights: np.ndarray | None) -> FirstKey | None:
    """What is to be said of the first token among the keys of a head; None of cross-attention and of a single token.

    Args:
        weights: of the whole head, (queries, keys); None of a long text.
    """
    site, x = trace.sites[trace.index(where)], trace.at(where, head)
    tokens = site_tokens(trace, site)[1]
    if site.stack == "cross" or site.queries != site.keys or len(tokens) != site.keys:
        return None
    real = [i for i, token in enumerate(tokens) if not token.padding]
    if len(real) < 2:
        return None
    first, after = real[0], real[-1] + 1  # padding is at one end
    others = slice(first + 1, after)
    rows = of_rows = None
    if weights is not None:
        part = weights[others, first:after]  # a later token sees two at least, unless a mask hides them
        counted = np.count_nonzero(part, axis=1) > 1
        rows, of_rows = int(np.count_nonzero(counted & (part.argmax(axis=1) == 0))), int(np.count_nonzero(counted))
    norm = others_norm = None
    if x.precomputed is None:
        norms = to_numpy(x.value[0, head // x.group].float().norm(dim=-1))  # (keys,)
        norm, others_norm = float(norms[first]), float(norms[others].mean())
    return FirstKey(first, rows, of_rows, norm, others_norm)
