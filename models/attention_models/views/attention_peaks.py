"""What every head attends to from one token: one row a head, read when a text has run, to choose where to look first.

The row is that of the token that predicts: the first mask; CLS, of a picture; the last token that is not special, of a
model that writes on; in cross-attention the token that wrote the last word. Of two texts read together it is the first
word of the second, otherwise the last word.

The keys are words (tokens with a letter or a digit) without the first token, the row's own and its two neighbours: the
first token is where heads rest, and to attend to a neighbour takes no more than a position. Of a picture they are its
patches, across two texts all words of the other one. Where that leaves no key the neighbours count, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.forward.trace import Trace
from attention_models.protocol.head import AttentionPeak, AttentionPeaks
from attention_models.protocol.values import Token


@dataclass(frozen=True, slots=True)
class _Row:
    query: int
    keys: tuple[int, ...]  # rising


@torch.no_grad()
def looks(trace: Trace, masks: Sequence[int], continues: bool) -> AttentionPeaks | None:
    """The word that each head gives most in the row to begin with; None where there is no head, row or word.

    Args:
        masks: positions of mask tokens.
        continues: whether the model says the token after each one.
    """
    across = any(site.stack == "cross" for site in trace.sites)
    row = _row_across(trace) if across else _row_within(trace, masks, continues)
    if row is None or not trace.sites:
        return None
    counted = [not across or site.stack == "cross" for site in trace.sites]
    inputs = [x for x, counts in zip(trace.inputs, counted, strict=True) if counts]
    found = [_largest(x, row) for x in inputs]
    device = found[0].device
    weights, places = torch.cat([each.to(device) for each in found], dim=1).tolist()  # brought over once
    every = iter(AttentionPeak(row.keys[int(place)], weight) for weight, place in zip(weights, places, strict=True))
    heads = [x.heads if counts else 0 for x, counts in zip(trace.inputs, counted, strict=True)]
    return AttentionPeaks(row.query, tuple(tuple(islice(every, count)) for count in heads))


def _largest(x: AttentionInputs, row: _Row) -> Tensor:
    """The largest weight that each head gives one of the row's keys, and the place of that key: (2, heads) float32."""
    weights = attention.weights(x, Part(rows=[row.query]))[0, :, 0]  # (heads, keys)
    largest = weights[:, torch.tensor(row.keys, device=weights.device)].max(dim=-1)
    return torch.stack([largest.values, largest.indices.to(torch.float32)])


def _row_across(trace: Trace) -> _Row | None:
    """The token that wrote the last word, over all words of the source."""
    written = [i for i, token in enumerate(trace.tokens) if i > 0 and is_word(token)]
    keys = tuple(i for i, token in enumerate(trace.source) if is_word(token))
    return _Row(written[-1] - 1, keys) if written and keys else None


def _row_within(trace: Trace, masks: Sequence[int], continues: bool) -> _Row | None:
    tokens, picture = trace.tokens, trace.picture
    if picture is not None:
        last = min(picture.first + picture.rows * picture.columns, len(tokens))
        patches = tuple(range(max(1, picture.first), last))  # without CLS the first patch is in its place
        return _Row(0, patches) if patches else None
    words = [i for i, token in enumerate(tokens) if is_word(token) and i not in masks]
    second = [i for i in words if tokens[i].segment == 1]
    if second and not masks and not continues:
        first = tuple(i for i in words if tokens[i].segment == 0)
        if first:
            return _Row(second[0], first)
    plain = [i for i, token in enumerate(tokens) if not token.special and not token.padding]
    ends = plain if continues else words
    if not ends:
        return None
    query = masks[0] if masks else ends[-1]
    start = next(i for i, token in enumerate(tokens) if not token.padding)
    seen = [i for i in words if i not in (start, query) and (i < query or not continues)]
    keys = tuple(i for i in seen if abs(i - query) > 1) or tuple(seen)
    return _Row(query, keys) if keys else None


def is_word(token: Token) -> bool:
    """Whether a token has a letter or a digit, and stands for text."""
    said = token.text or token.label  # what a decoder was given is not part of the text
    return not token.special and not token.padding and any(sign.isalnum() for sign in said)
