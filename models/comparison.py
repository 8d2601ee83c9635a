"""What interventions changed: one head, the next token and the loss, beside the model as it is."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from models.model import Model
from models.predictions import predict
from models.requests import CompareRequest, CompareView, Prediction
from models.trace import Trace


def compare(request: CompareRequest, model: Model, before: Trace, after: Trace) -> CompareView:
    """Both runs are of the same text, `before` without interventions.

    Raises:
        IndexError: no such site, head or position.
    """
    w_before = before.weights(request.site, request.head)
    w_after = after.weights(request.site, request.head)
    blocked = after.masked(request.site, request.head)
    dead = np.flatnonzero(blocked.all(axis=1)) if blocked is not None else np.array([], int)
    for array in (w_before, w_after):
        array.flags.writeable = False
    return CompareView(
        request=request,
        run=request.run,
        site=request.site,
        head=request.head,
        before=w_before,
        after=w_after,
        entropy_before=entropy(w_before),
        entropy_after=entropy(w_after),
        prediction_before=_prediction(model, before, request),
        prediction_after=_prediction(model, after, request),
        loss_before=loss(model, before),
        loss_after=loss(model, after),
        dead_rows=tuple(int(row) for row in dead),
    )


def entropy(weights: np.ndarray) -> np.ndarray:
    """Entropy of each row in bits, (rows,) float32: 0 for a row that looks at one key, log2(keys) for an even one."""
    w = weights.astype(np.float64)
    bits: np.ndarray = -(w * np.log2(w, out=np.zeros_like(w), where=w > 0)).sum(axis=1)
    return (bits + 0.0).astype(np.float32)  # + 0.0: a row of certainty has 0, not -0


@torch.no_grad()
def loss(model: Model, trace: Trace) -> float | None:
    """Mean cross-entropy in nats of each next token of the text, given the tokens before it.

    None for a model that does not predict the next token, and for a text of one token.
    """
    logits = trace.output_logits
    if model.info.family != "causal" or logits is None or len(trace.tokens) < 2:
        return None
    ids = torch.tensor([token.id for token in trace.tokens[1:]], device=logits.device)
    return float(F.cross_entropy(logits[:-1].float(), ids))


def _prediction(model: Model, trace: Trace, request: CompareRequest) -> Prediction | None:
    if trace.output_logits is None:
        return None
    return predict(model, trace, [request.position], request.top)[0]
