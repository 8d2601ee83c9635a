"""What interventions changed: one head, the next token and the loss, beside the model as it is."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from models import attention
from models.interventions import Mask
from models.model import Model
from models.predictions import predict
from models.requests import CompareRequest
from models.results import CompareView
from models.trace import Trace
from models.values import Prediction, TokenChange


def compare(request: CompareRequest, model: Model, before: Trace, after: Trace) -> CompareView:
    """Both runs are of the same text, `before` without interventions.

    Raises:
        IndexError: no such site, head or position.
    """
    w_before = before.weights(request.site, request.head)
    w_after = after.weights(request.site, request.head)
    difference = w_after - w_before
    x = after.inputs[after.index(request.site)]
    blocked = after.masked(request.site, request.head)
    dead = np.flatnonzero(blocked.all(axis=1)) if blocked is not None else np.array([], int)
    for array in (w_before, w_after, difference):
        array.flags.writeable = False
    return CompareView(
        request=request,
        run=request.run,
        site=request.site,
        head=request.head,
        head_dim=x.query.shape[-1],
        scale=x.scale,
        factor=1.0 if x.factors is None else float(x.factors[request.head]),
        before=w_before,
        after=w_after,
        difference=difference,
        largest_difference=float(np.abs(difference).max(initial=0.0)),
        entropy_before=entropy(w_before),
        entropy_after=entropy(w_after),
        top_key_before=w_before.argmax(axis=1),
        top_key_after=w_after.argmax(axis=1),
        token_changes=token_changes(model, before, after, request.position, request.top),
        prediction_before=_prediction(model, before, request),
        prediction_after=_prediction(model, after, request),
        loss_before=loss(model, before),
        loss_after=loss(model, after),
        peeks=peeks(before, after),
        dead_rows=tuple(int(row) for row in dead),
    )


def entropy(weights: np.ndarray) -> np.ndarray:
    """Entropy of each row in bits, (rows,) float32: 0 for a row that looks at one key, log2(keys) for an even one."""
    w = weights.astype(np.float64)
    bits: np.ndarray = -(w * np.log2(w, out=np.zeros_like(w), where=w > 0)).sum(axis=1)
    return (bits + 0.0).astype(np.float32)  # + 0.0: a row of certainty has 0, not -0


@torch.no_grad()
def token_changes(model: Model, before: Trace, after: Trace, position: int, top: int) -> tuple[TokenChange, ...]:
    """The `top` tokens that are likeliest at `position` in either run, with their probability in both.

    Ordered by the larger of the two; none for a model without an output head.
    """
    if not before.has_logits or not after.has_logits:
        return ()
    p_before = before.logits_at([position])[0].double().softmax(dim=-1)  # (vocabulary,)
    p_after = after.logits_at([position])[0].double().softmax(dim=-1)
    best = torch.topk(torch.maximum(p_before, p_after), min(top, len(p_after))).indices
    return tuple(
        TokenChange(id=id_, label=model.piece_label(id_), before=float(p_before[id_]), after=float(p_after[id_]))
        for id_ in best.tolist()
    )


@torch.no_grad()
def loss(model: Model, trace: Trace) -> float | None:
    """Mean cross-entropy in nats of each next token of the text, given the tokens before it.

    None for a model that does not predict the next token, and for a text of one token.
    """
    if model.info.family != "causal" or not trace.has_logits or len(trace.tokens) < 2:
        return None
    if trace.output_logits is not None:
        ids = torch.tensor([token.id for token in trace.tokens[1:]], device=trace.output_logits.device)
        return float(F.cross_entropy(trace.output_logits[:-1].float(), ids))
    total = 0.0
    for rows, logits in trace.logit_blocks():
        said = rows if rows[-1] + 1 < len(trace.tokens) else rows[:-1]  # after the last token stands none
        ids = torch.tensor([trace.tokens[row + 1].id for row in said], device=logits.device)
        total += float(F.cross_entropy(logits[: len(said)].float(), ids, reduction="sum"))
    return total / (len(trace.tokens) - 1)


def peeks(before: Trace, after: Trace) -> bool:
    """Whether anywhere in `after` a query may look at a later key that `before` hides from it."""
    if not any(isinstance(item, Mask) for item in after.interventions):
        return False
    for was, now in zip(before.inputs, after.inputs, strict=True):
        shut_before, shut_after = attention.blocked(was), attention.blocked(now)
        if shut_before is None:
            continue
        opened = shut_before if shut_after is None else shut_before & ~shut_after  # (1, heads or 1, queries, keys)
        if bool(opened.triu(diagonal=1).any()):
            return True
    return False


def _prediction(model: Model, trace: Trace, request: CompareRequest) -> Prediction | None:
    if not trace.has_logits:
        return None
    return predict(model, trace, [request.position], request.top)[0]
