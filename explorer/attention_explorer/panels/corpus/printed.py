"""Which figure of a page is written as PyTorch. Pure."""

from __future__ import annotations

import numpy as np

from attention_explorer.panels.corpus.figures import mean_map
from attention_models.protocol.corpus import CorpusView, Hit
from attention_models.protocol.corpus_shown import (
    CorpusFigure,
    ShownCell,
    ShownDistances,
    ShownInCorpus,
    ShownPlace,
    ShownRow,
)
from attention_models.protocol.values import SiteRef

_FEW = 3
"""Distances, or keys of a row, that are printed: those with the largest weights."""


def printed(view: CorpusView, site: SiteRef, head: int, figure: CorpusFigure | None) -> ShownInCorpus | None:
    """What “Show as PyTorch” asks for; None where there is no figure."""
    if figure is None:
        return None
    return ShownInCorpus(
        of=view.request,
        site=site,
        head=head,
        figure=figure,
        texts=view.texts,
        tokens=view.tokens,
        ended=view.ended,
    )


def shown_cell(view: CorpusView, site: SiteRef, head: int, selected: tuple[int, int]) -> ShownCell | None:
    """The selected cell of the mean map; else its largest, in a row with a choice where there is one."""
    found = mean_map(view, site, head)
    if found is None or np.isnan(found.values).all():
        return None
    rows, columns = found.values.shape
    query, key = selected
    if not (0 <= query < rows and 0 <= key < columns) or np.isnan(found.values[query, key]):
        has_choice = (~np.isnan(found.values)).sum(axis=1, keepdims=True) > 1  # (rows, 1)
        chosen = np.where(has_choice, found.values, np.nan) if has_choice.any() else found.values
        query, key = divmod(int(np.nanargmax(chosen)), columns)
    return ShownCell(query, key, float(found.values[query, key]))


def shown_distances(view: CorpusView, site: SiteRef, head: int) -> ShownDistances | None:
    if site not in view.sites or head >= view.by_distance.shape[1]:
        return None
    means = view.by_distance[view.sites.index(site), head]
    few = tuple((int(view.distances[i]), float(means[i])) for i in _largest(means))
    return ShownDistances(few) if few else None


def shown_place(view: CorpusView, site: SiteRef, head: int, hit: Hit | None) -> ShownPlace | None:
    """`hit` is the one that is chosen in the list of this head, None where it has none."""
    if site not in view.sites or head >= view.scores.shape[1]:
        return None
    score = float(view.scores[view.sites.index(site), head])
    return None if np.isnan(score) else ShownPlace(score, hit)


def shown_row(view: CorpusView, site: SiteRef, head: int, row: int) -> ShownRow | None:
    """Of the gathered rows the one at `row`, else the first."""
    if site not in view.row_sites or not view.rows:
        return None
    chosen = view.rows[row if 0 <= row < len(view.rows) else 0]
    weights = chosen.weights[view.row_sites.index(site)]
    if head >= len(weights):
        return None
    of_head = weights[head]
    few = tuple((key, float(of_head[key])) for key in _largest(of_head))
    return ShownRow(chosen.line, chosen.text, chosen.second, chosen.query, few) if few else None


def _largest(values: np.ndarray) -> list[int]:
    """Where the few largest are; NaN is none."""
    order = np.argsort(np.nan_to_num(values, nan=-1.0), kind="stable")[::-1][:_FEW]
    return [int(place) for place in order if not np.isnan(values[place])]
