"""One vector for a whole text, pooled from the last hidden states (Reimers and Gurevych 2019, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from attention_models.attention.numbers import to_numpy
from attention_models.files.own_pooling import OwnPooling, PoolingMode, own_pooling
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.sentence import SentencePooling, SentenceRequest, SentenceView
from attention_models.protocol.values import read_only

_POOL: dict[PoolingMode, Callable[[Tensor], Tensor]] = {  # each (tokens, width) to (width,)
    "first": lambda states: states[0],
    "last": lambda states: states[-1],
    "max": lambda states: states.amax(dim=0),
    "mean": lambda states: states.mean(dim=0),
    "mean_sqrt": lambda states: states.sum(dim=0) / len(states) ** 0.5,
    "weighted": lambda states: _position_weights(states) @ states,
}
_WORDS: dict[PoolingMode, str] = {
    "first": "the first of {count}",
    "last": "the last of {count}",
    "max": "the largest value of {count}",
    "mean": "mean over {count}",
    "mean_sqrt": "sum over {count}, divided by the root of their number",
    "weighted": "mean over {count}, weighted by position",
}


def answer(request: SentenceRequest, context: Context) -> SentenceView:
    run = context.run(request.run)
    return sentence_view(request, run.model, run.trace)


@torch.no_grad()
def sentence_view(request: SentenceRequest, model: Model, trace: Trace) -> SentenceView:
    """The vector in float32, over every token that the model was given but padding, special ones included."""
    read = [i for i, token in enumerate(trace.tokens) if not token.padding]
    own = own_pooling(Path(model.info.folder)) if model.info.folder else None
    choices = _choices(model, trace, own)
    ways = [way for way, _ in choices]
    how = request.how if request.how in ways else ways[0]
    assert how is not None
    taken = own if how == "own" and own is not None else OwnPooling(_plain(how), normalized=False)
    vector = torch.zeros(0)
    if trace.last_hidden is not None:
        states = trace.last_hidden[read].float().cpu()  # (tokens, width)
        vector = torch.cat([_POOL[mode](states) for mode in taken.modes])
        vector = torch.nn.functional.normalize(vector, dim=0) if taken.normalized else vector
    return SentenceView(
        request=request,
        how=how,
        choices=choices,
        vector=read_only(to_numpy(vector)),
        norm=float(vector.norm()),
        words=_said(taken, len(read)),
    )


def _choices(model: Model, trace: Trace, own: OwnPooling | None) -> tuple[tuple[SentencePooling, str], ...]:
    causal = any(site.stack == "decoder" for site in trace.sites)
    at_an_end: tuple[SentencePooling, str] = ("last", "Last token") if causal else ("first", "First token")
    first = next(token for token in trace.tokens if not token.padding)
    if not causal and first.special:
        at_an_end = ("first", f"First token, {first.label}")
    plain: tuple[tuple[SentencePooling, str], ...] = (("mean", "Mean over tokens"), at_an_end)
    return plain if own is None else (("own", "Its own pooling"), *plain)


def _plain(how: SentencePooling) -> tuple[PoolingMode, ...]:
    return ("first",) if how == "first" else ("last",) if how == "last" else ("mean",)


def _position_weights(states: Tensor) -> Tensor:
    """(tokens,) that rise from the first token to the last and sum to 1. Muennighoff 2022, "SGPT"."""
    weights = torch.arange(1, len(states) + 1, dtype=states.dtype)
    return weights / weights.sum()


def _said(pooling: OwnPooling, count: int) -> str:
    tokens = f"{count:,} token" + ("" if count == 1 else "s")
    parts = [" and ".join(_WORDS[mode].format(count=tokens) for mode in pooling.modes)]
    if pooling.normalized:
        parts.append("brought to length 1")
    if pooling.left_out:
        parts.append(f"without what follows ({', '.join(pooling.left_out)})")
    return ", ".join(parts)
