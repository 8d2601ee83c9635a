"""A word in two texts: how alike the model's vectors of it are, layer by layer.

Ethayarajh 2019, "How Contextual are Contextualized Word Representations?".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.run import run_alone
from attention_models.protocol.effects import InContextRequest, InContextView, place_of_word
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Report, ShouldStop, never, silent
from attention_models.protocol.values import Token, read_only

MOST_TOKENS = 256
"""Of both texts together: a cosine for every two of them is kept of every layer."""


def answer(request: InContextRequest, context: Context) -> InContextView:
    return in_context(request, context.model, context.should_stop, context.report)


def word_in_context(
    model: Model,
    first: str,
    second: str,
    word: str,
    other: str | None = None,
    *,
    starts: tuple[int | None, int | None] = (None, None),
    stack: str | None = None,
    interventions: tuple[Intervention, ...] = (),
) -> InContextView:
    """How alike a word is in two texts.

        found = word_in_context(model, "They sat on the river bank.", "She has money in the bank.", "bank")
        found.cosine                # of the embedding, then after each block

    Args:
        word: as it stands in the first text; where it comes several times its last place counts.
        other: the word in the second text, if it is another one.
        starts: at which character of its text each word begins; None for its last place.
        stack: whose stream; of an encoder-decoder model the encoder's if None.

    Raises:
        InputError: a text does not have the word or is too long, or the model has no residual stream.
    """
    request = InContextRequest(
        texts=(first, second),
        words=(word, other or word),
        starts=starts,
        stack=stack or "",
        interventions=interventions,
    )
    return in_context(request, model)


def in_context(
    request: InContextRequest, model: Model, should_stop: ShouldStop = never, report: Report = silent
) -> InContextView:
    """Raises InputError as `word_in_context`, and Cancelled where `should_stop()` was true between two blocks."""
    if model.info.family == "vision":
        raise InputError(f"{model.info.name} reads pictures and no words.")
    report("Comparing a word in two texts", None)
    traces = [run_alone(model, t, interventions=request.interventions, should_stop=should_stop) for t in request.texts]
    stack = request.stack or ("encoder" if model.seq2seq else model.info.predicting_stack)
    streams = [trace.residual.get(stack, ()) for trace in traces]
    if not all(streams):
        raise InputError(f"{model.info.name} has no residual stream whose vectors could be compared.")
    tokens = tuple(trace.source if stack == "encoder" and trace.source else trace.tokens for trace in traces)
    count = sum(map(len, tokens))
    if count > MOST_TOKENS:
        raise InputError(
            f"The two texts are {count:,} tokens long to {model.info.name}. Take texts of {MOST_TOKENS} in all."
        )
    positions = tuple(map(_places, tokens, request.texts, request.words, request.starts))
    per_layer = [_layer(a, b, positions) for a, b in zip(*streams, strict=True)]
    columns: list[Any] = [read_only(np.array(column)) for column in zip(*per_layer, strict=True)]
    names = ("cosine", "anisotropy", "plane", "explained", "similarity", "sentences")
    return InContextView(
        request=request,
        stack=stack,
        tokens=(tokens[0], tokens[1]),
        positions=(positions[0], positions[1]),
        **dict(zip(names, columns, strict=True)),
    )


def _places(tokens: tuple[Token, ...], text: str, word: str, start: int | None) -> tuple[int, ...]:
    """The tokens that cover `word` in `text`."""
    place = place_of_word(text, word, start)
    found = (
        ()
        if place is None
        else tuple(i for i, t in enumerate(tokens) if not t.special and t.start < place[1] and t.end > place[0])
    )
    if not found:
        raise InputError(f"“{text}” does not have “{word}” in it. Name a word as it stands there.")
    return found


def _layer(a: Tensor, b: Tensor, positions: tuple[tuple[int, ...], ...]) -> tuple[Any, ...]:
    """All that is said of one layer, from the streams of both texts (tokens, width)."""
    x, y = (t.cpu().double() for t in (a, b))
    words = [rows[list(places)].mean(dim=0) for rows, places in zip((x, y), positions, strict=True)]
    both = torch.cat([x, y])
    unit = torch.nn.functional.normalize(both, dim=1)
    table = unit @ unit.mT
    off = ~torch.eye(len(both), dtype=torch.bool)
    centred = both - both.mean(dim=0)
    _, sizes, ways = torch.linalg.svd(centred, full_matrices=False)
    plane = centred @ ways[:2].mT
    # the sign of a component is free: the token that is furthest along it is put to the right, so that layers are alike
    plane = plane * torch.sign(plane.gather(0, plane.abs().argmax(dim=0, keepdim=True)))
    variance = sizes.square()
    return (
        float(_cosine(*words)),
        float(table[off].mean()),
        plane.numpy(),
        (variance[:2] / variance.sum().clamp(min=1e-300)).numpy(),
        table.numpy(),
        [float(_cosine(x[0], y[0])), float(_cosine(x.mean(dim=0), y.mean(dim=0)))],
    )


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(a, b, dim=0)
