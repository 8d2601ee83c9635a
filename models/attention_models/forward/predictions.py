"""What the model says at a position: its likeliest tokens, and where the token that stands there ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from attention_models.forward.classes import said_of_pair
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.values import Candidate, Prediction


def answering_position(model: Model, trace: Trace) -> int:
    """Where a model is asked for its answer if nobody says where.

    At the first mask of a text that has one. Else at the last token that it answers at: the one after which it goes on;
    of a model that says something of each token the last that stands for text, and not its [SEP]. Where it says one
    thing of the whole, at the token that it reads it at: the first of an encoder or a picture.
    """
    info, tokens = model.info, trace.tokens
    own = [i for i, token in enumerate(tokens) if not token.padding] or [0]
    head = info.class_head
    says_one_thing = info.family == "vision" or (head is not None and head.of in ("text", "choice"))
    if says_one_thing:
        return own[-1] if info.predicting_stack == "decoder" else own[0]
    if info.family == "causal" or info.family == "seq2seq":
        return own[-1]
    mask = next((i for i in own if info.mask_token is not None and tokens[i].piece == info.mask_token), None)
    return mask if mask is not None else next((i for i in reversed(own) if not tokens[i].special), own[-1])


def answer(request: PredictionRequest, context: Context) -> PredictionView:
    run = context.run(request.run)
    is_long = any(site.is_long for site in run.trace.sites)  # a second run of it would take as much memory again
    before = run.untouched(context.should_stop) if run.trace.interventions and not is_long else None
    predictions = predict(run.model, run.trace, request.positions, request.top, before)
    return PredictionView(request=request, predictions=predictions, pair=said_of_pair(run.model, run.trace, before))


@torch.no_grad()
def predict(
    model: Model, trace: Trace, positions: Sequence[int], top: int = 10, before: Trace | None = None
) -> tuple[Prediction, ...]:
    """The `top` likeliest tokens at each of `positions`, with probability softmax(logits) over the whole vocabulary.

    A causal model (and a decoder) says the next token, a masked one the token at the position itself. With `before`,
    the run of the same tokens by the model as it is, each has its probability there too, and what was the likeliest
    there is among them.

    Raises:
        ExplorerError: the model has no output head, or one that tells classes apart (see
            `attention_models.views.classes`).
        IndexError: no such position.
    """
    if not trace.has_logits:
        raise ExplorerError(f"{model.info.name} has no output head: it gives vectors, not words.")
    if model.info.class_head is not None:
        raise ExplorerError(f"{model.info.name} tells classes apart: it says no words.")
    for position in positions:
        if not 0 <= position < len(trace.tokens):
            raise IndexError(f"Position {position} does not exist: the run has {len(trace.tokens)} tokens.")
    return tuple(_at(model, trace, position, top, before) for position in positions)


def _at(model: Model, trace: Trace, position: int, top: int, before: Trace | None) -> Prediction:
    # one copy: all that follows asks for single numbers, and in float64, which some devices lack
    logits = trace.logits_at([position])[0].float().cpu()  # (vocabulary,)
    log_p = logits.double().log_softmax(dim=-1)
    best = torch.topk(logits, min(top, len(logits))).indices.tolist()
    log_before = None
    if before is not None:
        log_before = before.logits_at([position])[0].float().cpu().double().log_softmax(dim=-1)
        best += [id_ for id_ in [int(log_before.argmax())] if id_ not in best]

    def candidate(id_: int) -> Candidate:
        return Candidate(
            id=id_,
            label=model.piece_label(id_),
            piece=model.piece(id_),
            probability=math.exp(float(log_p[id_])),
            logit=float(logits[id_]),
            rank=1 + int((logits > logits[id_]).sum()),
            before=None if log_before is None else math.exp(float(log_before[id_])),
        )

    there = position if model.info.family == "masked" else position + 1
    reads = model.info.family != "vision"  # a class stands nowhere in a picture
    token = trace.tokens[there] if reads and there < len(trace.tokens) else None
    is_mask = token is not None and bool(model.info.mask_token) and token.piece == model.info.mask_token
    shown = token is not None and not token.padding and not is_mask
    entropy = max(0.0, -float((log_p.exp() * log_p).nan_to_num(0.0).sum()) / math.log(2))  # never -0.0
    return Prediction(
        position=position,
        candidates=tuple(candidate(id_) for id_ in best),
        actual=candidate(token.id) if shown and token is not None else None,
        entropy=entropy,
    )
