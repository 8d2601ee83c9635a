"""A made-up comparison of a word in two texts, of three layers."""

from __future__ import annotations

import numpy as np

from attention_explorer.session.effects_choices import EffectsChoices
from attention_models.protocol.effects import InContextRequest, InContextView
from attention_models.protocol.values import Token

ASKED = EffectsChoices()
REQUEST = InContextRequest(texts=ASKED.texts, words=ASKED.words)


def tokens_of(text: str) -> tuple[Token, ...]:
    """A first special token, then one a word, but for the last word of a text two: "ba" and "nk."."""
    found = [Token(id=0, piece="(start)", text="", start=0, end=0, special=True, label="(start)")]
    start = 0
    for word in text.split():
        start = text.index(word, start)
        for at, piece in ((start, word[:2]), (start + 2, word[2:])) if word == text.split()[-1] else ((start, word),):
            found.append(Token(id=1, piece=piece, text=piece, start=at, end=at + len(piece), label=piece))
        start += len(word)
    return tuple(found)


def comparison(request: InContextRequest = REQUEST) -> InContextView:
    tokens = tokens_of(request.texts[0]), tokens_of(request.texts[1])
    counts = len(tokens[0]), len(tokens[1])
    count = sum(counts)
    rng = np.random.default_rng(0)
    return InContextView(
        request=request,
        stack="decoder",
        tokens=tokens,
        positions=((counts[0] - 2, counts[0] - 1), (counts[1] - 2, counts[1] - 1)),
        cosine=np.array([1.0, 0.75, -0.25]),
        anisotropy=np.array([0.1, 0.2, 0.3]),
        plane=rng.normal(size=(3, count, 2)) * [10, 3],
        explained=np.array([[0.5, 0.25], [0.4, 0.2], [0.3, 0.1]]),
        similarity=np.linspace(-1, 1, 3 * count * count).reshape(3, count, count),
        sentences=np.array([[1.0, 0.9], [0.8, 0.7], [0.6, 0.5]]),
    )
