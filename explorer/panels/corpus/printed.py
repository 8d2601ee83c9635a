"""Which figure of a page is written as PyTorch. Pure."""

from __future__ import annotations

import numpy as np

from explorer.panels.corpus.figures import mean_map
from models.protocol.corpus import CorpusView, Hit
from models.protocol.corpus_shown import CorpusFigure, ShownCell, ShownDistances, ShownInCorpus, ShownPlace, ShownRow
from models.protocol.values import SiteRef

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
        chosen = np.where((~np.isnan(found.values)).sum(axis=1, keepdims=True) > 1, found.values, -1.0)
        chosen = np.where(np.isnan(chosen), -1.0, chosen)
        if chosen.max() < 0:
            chosen = np.nan_to_num(found.values, nan=-1.0)
        query, key = divmod(int(chosen.argmax()), columns)
    return ShownCell(query, key, float(found.values[query, key]))


def shown_distances(view: CorpusView, site: SiteRef, head: int) -> ShownDistances | None:
    if site not in view.sites or head >= view.by_distance.shape[1]:
        return None
    means = view.by_distance[view.sites.index(site), head]
    largest = np.argsort(np.nan_to_num(means, nan=-1.0), kind="stable")[::-1][:_FEW]
    found = [(int(view.distances[i]), float(means[i])) for i in largest if not np.isnan(means[i])]
    return ShownDistances(tuple(found)) if found else None


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
    largest = np.argsort(np.nan_to_num(of_head, nan=-1.0), kind="stable")[::-1][:_FEW]
    few = tuple((int(key), float(of_head[key])) for key in largest if not np.isnan(of_head[key]))
    return ShownRow(chosen.line, chosen.text, chosen.second, chosen.query, few) if few else None
