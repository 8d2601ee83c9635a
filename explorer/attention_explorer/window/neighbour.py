"""The head beside another one, in its layer or in the next."""

from __future__ import annotations

from collections.abc import Sequence

from attention_models.protocol.values import Site, SiteRef


def neighbour(sites: Sequence[Site], ref: SiteRef, head: int, layers: int, heads: int) -> tuple[SiteRef, int] | None:
    """The head that is so many layers and heads further than one of `ref`; None past the edge.

    In a layer of fewer heads its last one stands for those that it has not.
    """
    place = [site.ref for site in sites].index(ref) + layers
    if not 0 <= place < len(sites):
        return None
    site = sites[place]
    wanted = min(head, site.heads - 1) + heads
    return (site.ref, wanted) if 0 <= wanted < site.heads else None
