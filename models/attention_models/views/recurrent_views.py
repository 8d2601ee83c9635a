"""What the panels show of a recurrent model: its hidden states, and the arithmetic of one score."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.numbers import copied
from attention_models.forward.context import Context
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.trace import Trace
from attention_models.protocol.cell import RecurrentScore
from attention_models.protocol.errors import InputError
from attention_models.protocol.recurrent_states import RecurrentRequest, RecurrentView
from attention_models.textbook.scores import Additive

NO_STREAM = (
    "A recurrent model has no residual stream: the context goes into the decoder's state, through gates, so no part "
    "of a logit belongs to one cell alone."
)


def answer(request: RecurrentRequest, context: Context) -> RecurrentView:
    run = context.run(request.run)
    if not isinstance(run.model, RecurrentModel):
        raise InputError(f"{run.model.info.name} has no recurrent states: it is a transformer.")
    return recurrent_view(request, run.model, run.trace)


@torch.no_grad()
def recurrent_view(request: RecurrentRequest, model: RecurrentModel, trace: Trace) -> RecurrentView:
    """Encoder and decoder states of a run, with scores, weights and contexts where it attends."""
    run, config = model.read_again(trace), model.module.config
    scores, masked, weights = _looks(trace)
    return RecurrentView(
        request=request,
        score=config.score,
        scope=config.scope,
        cell=config.cell,
        encoder=tuple(copied(direction) for direction in run.encoded[0].split(config.hidden, dim=-1)),
        states=copied(run.states[0]),
        contexts=copied(run.contexts[0] if trace.sites else run.first),
        scores=scores,
        masked=masked,
        weights=weights,
    )


def _looks(trace: Trace) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """Scores, what the window hides, and weights, (steps, source) each; None where nothing looks."""
    if not trace.sites:
        return None, None, None
    x = trace.inputs[0]
    scores, masked = attention.scores(x)[0, 0], attention.masked_cells(x)
    hidden = torch.zeros_like(scores, dtype=torch.bool) if masked is None else masked[0, 0].expand_as(scores)
    return copied(scores), copied(hidden), copied(attention.weights(x)[0, 0])


@torch.no_grad()
def score_of(model: RecurrentModel, trace: Trace, query: int, key: int) -> tuple[RecurrentScore, np.ndarray]:
    """The parts of the score of one decoder step and one encoder state, and the step's whole row, (source,)."""
    module, config = model.module, model.module.config
    run = model.read_again(trace)
    s, score = run.looking[:, query], module.score  # (1, hidden)
    keys = score.prepare(run.encoded)  # (1, source, hidden)
    prepared = keys[0, key]
    place, gaussian = _place(model, trace, s, query, key)
    state, tanh, v = s[0], None, None
    products = state * prepared
    if isinstance(score, Additive):
        state, v = score.w(s)[0], score.v.weight[0]
        tanh = torch.tanh(state + prepared)
        products = v * tanh
    parts = RecurrentScore(
        kind=config.score,
        state=copied(state),
        key=copied(prepared),
        tanh=None if tanh is None else copied(tanh),
        v=None if v is None else copied(v),
        products=copied(products),
        place=place,
        gaussian=gaussian,
    )
    return parts, copied(score(s, keys)[0])


def _place(
    model: RecurrentModel, trace: Trace, state: Tensor, query: int, key: int
) -> tuple[float | None, float | None]:
    """Where local attention looks around at this step, and what the distance from there adds to the score."""
    module, config = model.module, model.module.config
    length = sum(token.id != config.pad for token in trace.source)
    if config.scope == "monotonic":
        return float(min(query, length - 1)), None
    if module.place is None:
        return None, None
    place = float(module.place(state, torch.tensor([length], device=state.device)))
    return place, -((key - place) ** 2) / (2 * (config.window / 2) ** 2)
