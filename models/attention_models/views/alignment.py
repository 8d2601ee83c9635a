"""Cross-attention read as an alignment: which source tokens the decoder attended to as it wrote each target token."""

from __future__ import annotations

import numpy as np
import torch

from attention_models.attention.word_weights import merged_weights
from attention_models.forward.context import Context
from attention_models.forward.trace import Trace
from attention_models.protocol.alignment import AlignmentRequest, AlignmentView
from attention_models.protocol.values import SiteRef, read_only
from attention_models.protocol.word_spans import Words


def answer(request: AlignmentRequest, context: Context) -> AlignmentView:
    trace = context.run(request.run).trace
    weights, likely = mean_weights(trace, request.site, request.head), likelihoods(trace)
    if request.words:
        written = Words.written(trace.tokens)
        weights = merged_weights(weights, written, Words.of(trace.source))
        likely = np.multiply.reduceat(likely, written.starts)
    return AlignmentView(
        request=request,
        weights=read_only(weights),
        likelihoods=read_only(likely),
        description=described(trace, request.site, request.head),
    )


def mean_weights(trace: Trace, site: SiteRef | None = None, head: int | None = None) -> np.ndarray:
    """Cross-attention weights, (target tokens, source tokens) float32: each row sums to 1.

    Row i belongs to the position of target token i, which writes token i + 1.

    Args:
        site: a cross-attention layer; the mean over every cross head of the model if None.
        head: the mean over the heads of `site` if None.

    Raises:
        IndexError: no such site or head.
        ValueError: the model or the site has no cross-attention.
    """
    pairs = _heads(trace, site, head)
    total = np.zeros((), np.float64)
    for ref, number in pairs:
        total = total + trace.weights(ref, number)
    mean: np.ndarray = (total / len(pairs)).astype(np.float32)
    return mean


@torch.no_grad()
def likelihoods(trace: Trace) -> np.ndarray:
    """How likely each target token was where it was written, given the source and what stood before it.

    (target tokens,) float32 in the rows of `mean_weights`: entry i is the probability of token i + 1 after token i, and
    the last one is NaN, since nothing was written there.
    """
    found = np.full(len(trace.tokens), np.nan, np.float32)
    for rows, logits in trace.logit_blocks():
        written = [token.id for token in trace.tokens[rows[0] + 1 : rows[-1] + 2]]  # none after the last
        p = torch.softmax(logits[: len(written)].float(), dim=-1)  # (rows, vocabulary)
        ids = torch.tensor(written, dtype=torch.long, device=p.device)
        found[rows[: len(written)]] = p.gather(1, ids[:, None])[:, 0].cpu().numpy()
    return found


def described(trace: Trace, site: SiteRef | None = None, head: int | None = None) -> str:
    """What `mean_weights` shows for the same arguments, as in a sentence."""
    if site is None:
        pairs = _heads(trace, site, head)
        return f"mean over all {len(pairs)} cross-attention heads"
    if head is None:
        return f"mean over the {trace.sites[trace.index(site)].heads} heads of cross-attention layer {site.layer}"
    return f"cross-attention layer {site.layer}, head {head}"


def _heads(trace: Trace, site: SiteRef | None, head: int | None) -> list[tuple[SiteRef, int]]:
    """The heads to average, in the order in which they ran."""
    if site is None:
        found = [(s.ref, h) for s in trace.sites if s.stack == "cross" for h in range(s.heads)]
        if not found:
            raise ValueError("This model has no cross-attention: one text aligns with nothing.")
        return found
    if site.stack != "cross":
        raise ValueError(f"The {site.stack} looks within one text: only cross-attention aligns two.")
    heads = trace.sites[trace.index(site)].heads
    return [(site, h) for h in (range(heads) if head is None else (head,))]
