"""What was found in a file of texts, as the Corpus panel draws it: a map, a curve, a ranking, rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_explorer.panels.corpus.token_rows import TokenRow
from attention_explorer.widgets.plot.figure import Axis, Figure, Series
from attention_explorer.widgets.ranking import Ranked
from attention_models.protocol.corpus import CorpusView
from attention_models.protocol.roles import ROLE_NAMES, why_not
from attention_models.protocol.values import CheckpointInfo, SiteRef

_UNORDERED = "Which words are rare is told by the order of the vocabulary, and this tokenizer's says nothing of it."


@dataclass(frozen=True, slots=True, eq=False)
class MeanMap:
    """The mean weights of one head between places of the texts, each (queries, keys)."""

    values: np.ndarray  # float32; NaN where no text has a weight
    masked: np.ndarray  # bool: there are texts that have both places, and the mask hides the key in all of them
    texts: np.ndarray  # int: over how many texts the mean is

    @property
    def high(self) -> float:
        """The largest mean; 1 where there is none."""
        return float(np.nanmax(self.values, initial=0.0)) or 1.0

    def note(self, query: int, key: int) -> str:
        """How many texts stand behind a cell."""
        count = int(self.texts[query, key])
        return f", mean over {count:,} text{'s' if count > 1 else ''}"


def mean_map(view: CorpusView, site: SiteRef, head: int) -> MeanMap | None:
    """Of the places that some text has; None where the site did not run."""
    if site not in view.sites:
        return None
    place = view.sites.index(site)
    both, texts = view.texts_with[place], view.texts_at[place]
    if head >= view.mean.shape[1] or not both.any():
        return None
    rows, columns = (int(np.flatnonzero(both.any(axis=axis))[-1]) + 1 for axis in (1, 0))
    shown = slice(rows), slice(columns)
    return MeanMap(view.mean[(place, head, *shown)], (both[shown] > 0) & (texts[shown] == 0), texts[shown])


def distance_figure(view: CorpusView, site: SiteRef, head: int, name: str) -> Figure:
    """The mean weight by how far the key lies before the query; without points where the site did not run.

    A row with one visible key gives it 1 whatever the head does: it says nothing of distance.
    """
    if site not in view.sites or head >= view.by_distance.shape[1]:
        return Figure()
    means = view.by_distance[view.sites.index(site), head].astype(float)
    there = ~np.isnan(means)
    series = Series(name, view.distances[there].astype(float), means[there], role="query", mark="circle")
    return Figure(
        x=Axis("query − key, in tokens; rows that see one key alone are left out", whole=True),
        y=Axis("mean weight", low=0.0),
        series=(series,),
        names="legend",
    )


def ranked_heads(view: CorpusView, stack: str) -> tuple[list[Ranked], float | None]:
    """The heads of a stack, the highest score first, and what a head would score that attends evenly."""
    rows = [i for i, site in enumerate(view.sites) if site.stack == stack]
    heads = [
        (view.sites[i].layer, head, f"layer {view.sites[i].layer}, head {head}", float(score))
        for i in rows
        for head, score in enumerate(view.scores[i])
        if not np.isnan(score)
    ]
    heads.sort(key=lambda one: -one[3])
    even = view.even[rows]
    return heads, None if np.isnan(even).all() else float(np.nanmean(even))


def why_no_score(asked: str, info: CheckpointInfo, stack: str) -> str:
    """Why heads of `stack` cannot be asked; "" where they can."""
    if asked not in ROLE_NAMES:
        return ""
    return why_not(asked, info, stack)


def unordered(asked: str) -> str:
    """What is said where a question came back without scores, though heads can be asked."""
    return _UNORDERED if asked == "rare" else ""


def token_rows(view: CorpusView, site: SiteRef, head: int) -> tuple[TokenRow, ...]:
    """The gathered rows as one head has them; none where it is of another stack."""
    if site not in view.row_sites:
        return ()
    place = view.row_sites.index(site)
    return tuple(
        TokenRow(f"line {row.line:,}", row.keys, row.weights[place][head], -1 if site.stack == "cross" else row.query)
        for row in view.rows
        if head < len(row.weights[place])
    )
