"""Why attention divides by sqrt(d): the textbooks' experiment with random vectors, and a real head beside it.

For independent q and k whose d components have mean 0 and standard deviation m, q . k has mean 0 and variance
m^4 d (Vaswani et al. 2017, section 3.2.1, footnote 4, for m = 1). Scores that large push the softmax p into a corner,
where its Jacobian diag(p) - p p^T, and with it the gradient, vanishes.

NumPy alone: every draw comes from a seed and can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attention_models.protocol.errors import InputError
from attention_models.protocol.information import entropy
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import SiteRef, read_only
from attention_models.protocol.variance import Experiment, HeadScores, VarianceRequest, VarianceView

if TYPE_CHECKING:
    from attention_models.forward.context import Context
    from attention_models.forward.trace import Trace

Array = NDArray[np.float64]

DIMENSIONS = tuple(2**power for power in range(11))
"""The d that are measured, 1 to 1,024."""

_BLOCK = 1 << 19  # elements drawn at once: a processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The last experiment, and the numbers that it was made with."""

    numbers: tuple[int, int, float, int]
    experiment: Experiment


def answer(request: VarianceRequest, context: Context) -> VarianceView:
    if request.refusal():
        raise InputError(request.refusal())
    head = None
    if request.run is not None and request.site is not None:
        run = context.run(request.run)
        # a recurrent model's scores are no products of a query and a key
        unseen = run.model.info.textbook or run.model.info.weights_only or run.model.info.additive
        head = None if unseen else head_scores(run.trace, request.site, request.head)
    numbers = (request.batch, request.tokens, request.deviation, request.seed)
    drawn = context.kept.get(Drawn)
    if drawn is None or drawn.numbers != numbers:  # another head needs no other draw
        drawn = context.kept.put(Drawn(numbers, measure(*numbers, context.should_stop, context.report)))
    return VarianceView(request=request, experiment=drawn.experiment, head=head)


def measure(
    batch: int,
    tokens: int,
    deviation: float,
    seed: int,
    should_stop: Callable[[], bool] = lambda: False,
    report: Callable[[str, float | None], None] = lambda label, fraction: None,
) -> Experiment:
    """Draw x of shape (batch, tokens, d) twice, as queries and as keys, for each d of `DIMENSIONS`.

    The variance is taken over the pairs q[b, t] . k[b, t], which are independent. For the softmax each batch entry
    has one more query, which attends to the entry's `tokens` keys.

    Raises:
        ValueError: a number outside its bounds, or more elements than `VarianceRequest.most_elements`.
        Cancelled: `should_stop()` was true between two blocks.
    """
    sentence = VarianceRequest(batch=batch, tokens=tokens, deviation=deviation, seed=seed).refusal()
    if sentence:
        raise ValueError(sentence)
    variances, rows, saturation = [], [], []
    for index, d in enumerate(DIMENSIONS):
        report("Drawing random vectors", index / len(DIMENSIONS))
        pairs, scores = _products(batch, tokens, d, deviation, seed, should_stop)
        both = [softmax(scores), softmax(scores / math.sqrt(d))]  # each (batch, keys)
        variances.append(pairs.var(ddof=1))
        saturation.append([[w.max(axis=-1).mean(), entropy(w).mean(), jacobian_norm(w).mean()] for w in both])
        rows.append([np.sort(w[0])[::-1] for w in both])
    law = deviation**4 * np.array(DIMENSIONS, np.float64)
    largest, bits, gradient = np.array(saturation).transpose(2, 1, 0)  # each (2, dims)
    return Experiment(
        dimensions=read_only(np.array(DIMENSIONS)),
        variance=read_only(np.array(variances)),
        law=read_only(law),
        standard_error=read_only(law * relative_error(np.array(DIMENSIONS), batch * tokens)),
        largest=read_only(largest),
        entropy=read_only(bits),
        gradient=read_only(gradient),
        rows=read_only(np.array(rows, np.float32).transpose(1, 0, 2)),
    )


def _products(
    batch: int, tokens: int, d: int, deviation: float, seed: int, should_stop: Callable[[], bool]
) -> tuple[Array, Array]:
    """q . k of matching pairs, and of each batch entry's looking query with all its keys: both (batch, tokens)."""
    rng = np.random.default_rng((seed, d))  # each d has draws of its own
    looking = deviation * rng.standard_normal((batch, d), np.float32)
    pairs, scores = np.empty(batch * tokens), np.empty(batch * tokens)
    step = max(1, _BLOCK // d)
    for start in range(0, batch * tokens, step):
        if should_stop():
            raise Cancelled
        rows = np.arange(start, min(start + step, batch * tokens))  # of x, its first two axes taken as one
        q, k = deviation * rng.standard_normal((2, len(rows), d), np.float32)
        pairs[rows] = np.einsum("nd,nd->n", q, k)
        scores[rows] = np.einsum("nd,nd->n", looking[rows // tokens], k)
    return pairs.reshape(batch, tokens), scores.reshape(batch, tokens)


def relative_error(dimensions: NDArray[np.int64], pairs: int) -> Array:
    """Standard error of a variance measured over `pairs` products, divided by the variance.

    A product of two normal variables has kurtosis 9, so q . k has 3 + 6/d: sampling theory gives
    sqrt((kurtosis - (n - 3)/(n - 1)) / n) for n pairs.
    """
    kurtosis = 3 + 6 / np.asarray(dimensions, np.float64)
    error: Array = np.sqrt((kurtosis - (pairs - 3) / (pairs - 1)) / pairs)
    return error


def softmax(scores: Array) -> Array:
    """Over the last axis."""
    numerators = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: Array = numerators / numerators.sum(axis=-1, keepdims=True)
    return weights


def jacobian_norm(weights: Array) -> Array:
    """Frobenius norm of diag(p) - p p^T over the last axis: sqrt(sum p^2 - 2 sum p^3 + (sum p^2)^2)."""
    squares, cubes = (weights**2).sum(axis=-1), (weights**3).sum(axis=-1)
    norm: Array = np.sqrt(np.maximum(squares - 2 * cubes + squares**2, 0.0))  # rounding may go below 0
    return norm


# --------------------------------------------------------------------------- a real head


def head_scores(trace: Trace, site: SiteRef, head: int) -> HeadScores | None:
    """How q . k of one head scatters over the cells that its mask allows; None where it allows none.

    Raises:
        IndexError: no such site or head.
    """
    x = trace.at(site, head)
    query = x.query[0, head].float().cpu().numpy()  # (queries, head_dim)
    key = x.key[0, head // x.group].float().cpu().numpy()  # (keys, head_dim)
    count, total, squares = 0, 0.0, 0.0
    step = max(1, _BLOCK // len(key))
    for start in range(0, len(query), step):
        products = query[start : start + step].astype(np.float64) @ key.astype(np.float64).T  # (rows, keys)
        blocked = trace.masked(site, head, slice(start, start + step))
        allowed = products.ravel() if blocked is None else products[~blocked]
        count += allowed.size
        total += float(allowed.sum())
        squares += float(allowed @ allowed)
    if not count:
        return None
    mean = total / count
    head_dim = query.shape[1]
    return HeadScores(
        site=site,
        head=head,
        head_dim=head_dim,
        cells=count,
        mean=mean,
        variance=max(0.0, squares / count - mean * mean),
        scale=x.scale * (1.0 if x.factors is None else float(x.factors[head])),
        independent=head_dim
        * float(np.square(query, dtype=np.float64).mean() * np.square(key, dtype=np.float64).mean()),
    )
