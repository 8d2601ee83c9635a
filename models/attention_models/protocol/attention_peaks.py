"""What every head attends to from the token that is looked at first: words alone, no sink."""

from __future__ import annotations

from dataclasses import dataclass

from attention_models.protocol.values import Site


@dataclass(frozen=True, slots=True)
class AttentionPeak:
    """The word that a head gives most of one row."""

    key: int
    weight: float


@dataclass(frozen=True, slots=True)
class AttentionPeaks:
    """The row `query` of every head, as far as words are concerned, from `attention_models.views.attention_peaks`.

    `of_heads` has an AttentionPeak for each head of each site, in the order of the run's sites; none for sites without
    such a row (the encoder and the decoder beside a cross-attention).
    """

    query: int
    of_heads: tuple[tuple[AttentionPeak, ...], ...]

    def of(self, sites: tuple[Site, ...], site: Site, head: int) -> AttentionPeak | None:
        """The peak of one head; None where its site has none."""
        found = self.of_heads[sites.index(site)]
        return found[head] if head < len(found) else None
