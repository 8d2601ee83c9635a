"""Random tokens that come twice, in the same order: text in which nothing but the first time tells of the second.

So Olsson et al. 2022 tell induction heads: what is attended to there is no habit of the language.
"""

from __future__ import annotations

import random

from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError

SEQUENCES, LENGTH = 24, 24
_LEAST = 4


def repeated_ids(model: Model, sequences: int = SEQUENCES, length: int = LENGTH) -> list[list[int]]:
    """Ids of `sequences` texts, each `length` random tokens and the same again, framed as the model's texts are.

    The same for the same vocabulary. Shorter ones where the context takes no more; none where it takes hardly any.
    """
    frame = _frame(model)
    limit = (model.info.context or 1 << 30) - len(frame[0]) - len(frame[1])
    length = min(length, limit // 2)
    vocabulary = model.info.vocabulary
    ordinary = [id_ for id_ in range(vocabulary) if not model.stands_for_no_text(id_)]
    if length < _LEAST or len(ordinary) < 2 * length:
        return []
    draw = random.Random(0)
    drawn = [draw.sample(ordinary, length) for _ in range(sequences)]
    return [[*frame[0], *ids, *ids, *frame[1]] for ids in drawn]


def _frame(model: Model) -> tuple[list[int], list[int]]:
    """The special tokens that stand before a text and after it."""
    try:
        tokens = model.tokenize("a")
    except InputError:
        return [], []
    places = [i for i, token in enumerate(tokens) if not token.special]
    if not places:
        return [], []
    return [token.id for token in tokens[: places[0]]], [token.id for token in tokens[places[-1] + 1 :]]
