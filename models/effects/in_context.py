"""A word in two texts: how alike the model's vectors of it are, layer by layer.

Ethayarajh 2019, "How Contextual are Contextualized Word Representations?".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.forward.model import Model
from models.forward.run import run
from models.protocol.errors import InputError
from models.protocol.values import Token


@dataclass(frozen=True, slots=True, eq=False)
class InContext:
    """Layer 0 is the embedding, layer l + 1 the stream after block l. float64.

    Attributes:
        positions: of each text the tokens of the word.
        cosine: (layers + 1,) of the word's vectors in both texts: the mean over its tokens.
        anisotropy: (layers + 1,) the mean cosine of two different tokens of both texts: what any two words have there.
        plane: (layers + 1, tokens of both, 2) the first two principal components of all tokens.
        explained: (layers + 1, 2) the share of the variance along each.
        similarity: (layers + 1, tokens of the first, tokens of the second) cosines.
        sentences: (layers + 1, 2) cosines of the texts' vectors: of their first tokens, of their means.
    """

    tokens: tuple[tuple[Token, ...], tuple[Token, ...]]
    positions: tuple[tuple[int, ...], tuple[int, ...]]
    cosine: np.ndarray
    anisotropy: np.ndarray
    plane: np.ndarray
    explained: np.ndarray
    similarity: np.ndarray
    sentences: np.ndarray


def word_in_context(
    model: Model, first: str, second: str, word: str, other: str | None = None, *, stack: str | None = None
) -> InContext:
    """How alike a word is in two texts.

        found = word_in_context(model, "They sat on the river bank.", "She has money in the bank.", "bank")
        found.cosine                # of the embedding, then after each block

    Args:
        word: as it stands in the first text; where it comes several times its last place counts.
        other: the word in the second text, if it is another one.
        stack: whose stream; the one that predicts if None.

    Raises:
        InputError: a text does not have the word, or the model has no residual stream.
    """
    traces = [run(model, text) for text in (first, second)]
    stack = stack or ("encoder" if model.seq2seq else model.info.predicting_stack)
    streams = [trace.residual.get(stack, ()) for trace in traces]
    if not all(streams):
        raise InputError(f"{model.info.name} has no residual stream whose vectors could be compared.")
    tokens = tuple(trace.source if stack == "encoder" and trace.source else trace.tokens for trace in traces)
    named = (word, other or word)
    positions = tuple(map(_places, tokens, (first, second), named))
    per_layer = [_layer(a, b, positions) for a, b in zip(*streams, strict=True)]
    columns: list[Any] = [np.array(column) for column in zip(*per_layer, strict=True)]
    return InContext((tokens[0], tokens[1]), (positions[0], positions[1]), *columns)


def _places(tokens: tuple[Token, ...], text: str, word: str) -> tuple[int, ...]:
    """The tokens that cover the last place of `word` in `text`."""
    start = text.rfind(word) if word.strip() else -1
    end = start + len(word)
    found = (
        tuple(i for i, t in enumerate(tokens) if not t.special and t.start < end and t.end > start)
        if start >= 0
        else ()
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
        table[: len(x), len(x) :].numpy(),
        [float(_cosine(x[0], y[0])), float(_cosine(x.mean(dim=0), y.mean(dim=0)))],
    )


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(a, b, dim=0)
