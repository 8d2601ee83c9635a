"""One head's weights, whole or one row of them."""

from __future__ import annotations

import numpy as np
import torch

from attention_models.attention import attention
from attention_models.attention.inputs import Part
from attention_models.attention.numbers import copied, to_numpy
from attention_models.attention.word_weights import merged_mask, merged_weights
from attention_models.forward.context import Context
from attention_models.forward.trace import SiteLike, Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.head import (
    FirstKey,
    HeadRequest,
    HeadView,
    RowRequest,
    RowView,
    ScoresRequest,
    ScoresView,
    WordWeights,
)
from attention_models.protocol.values import SiteRef, read_only, site_tokens
from attention_models.protocol.word_spans import site_words


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


def answer(request: HeadRequest, context: Context) -> HeadView:
    trace = context.run(request.run).trace
    masked, x = trace.masked(request.site, request.head), trace.at(request.site, request.head)
    weights = read_only(trace.weights(request.site, request.head))
    return HeadView(
        request=request,
        weights=weights,
        masked=None if masked is None else read_only(masked),
        by_word=word_weights(trace, request.site, request.head) if request.words else None,
        sinks=None if x.sinks is None else read_only(to_numpy(attention.sink_shares(x, Part([request.head]))[0, 0])),
        first=first_key(trace, request.site, request.head, weights),
    )


def answer_scores(request: ScoresRequest, context: Context) -> ScoresView:
    run = context.run(request.run)
    if run.model.info.weights_only:
        raise InputError(run.model.info.weights_only)
    return scores_view(request, run.trace)


def scores_view(request: ScoresRequest, trace: Trace) -> ScoresView:
    """Raises IndexError where there is no such site or head."""
    x, masked = trace.at(request.site, request.head), trace.masked(request.site, request.head)
    part = Part([request.head])
    raw = torch.matmul(part.take_queries(x.query).float(), part.take_keys(x.key, x.heads).float().mT)[0, 0]
    return ScoresView(
        request=request,
        raw=copied(raw),
        scaled=copied(attention.scores(x, part)[0, 0]),
        masked=None if masked is None else read_only(masked),
    )


def word_weights(trace: Trace, site: SiteRef, head: int) -> WordWeights:
    """One head's weights between the words of its texts. Raises IndexError where there is no such site or head."""
    queries, keys = site_words(trace, trace.sites[trace.index(site)])
    masked = trace.masked(site, head)
    hidden = None if masked is None else merged_mask(masked, queries, keys)
    return WordWeights(
        weights=read_only(merged_weights(trace.weights(site, head), queries, keys)),
        masked=read_only(hidden) if hidden is not None and hidden.any() else None,
    )


def answer_row(request: RowRequest, context: Context) -> RowView:
    trace = context.run(request.run).trace
    masked = trace.masked(request.site, request.head, [request.query])
    return RowView(
        request=request,
        weights=read_only(trace.weights(request.site, request.head, [request.query])[0]),
        masked=None if masked is None else read_only(masked[0]),
        first=first_key(trace, request.site, request.head, None),
    )
