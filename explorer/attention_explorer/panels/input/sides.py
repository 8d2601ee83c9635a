"""Whose tokens a strip shows: the queries of the selected site, its keys, both or neither. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from attention_models.protocol.running import Ran
from attention_models.protocol.values import Site, site_tokens


@dataclass(frozen=True, slots=True)
class Sides:
    queries: bool
    keys: bool

    @property
    def any(self) -> bool:
        return self.queries or self.keys

    @property
    def both(self) -> bool:
        return self.queries and self.keys


def sides(ran: Ran | None, site: Site | None, is_target: bool) -> Sides:
    """What the tokens of the text are to `site`, or those of the target. Without a site only what reads can select."""
    if ran is None:
        return Sides(False, False)
    if site is None:
        reads = is_target == bool(ran.source)
        return Sides(reads, reads and not ran.source)
    own = (ran.tokens if ran.source else None) if is_target else ran.source or ran.tokens
    queries, keys = site_tokens(ran, site)
    return Sides(own is queries, own is keys)
