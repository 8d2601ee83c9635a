"""What a question hides while it stands, and which figures that are asked for are a part of it. Pure.

Panels say which of it they show (`Panel.shows`), lessons name it, and the window covers it.
"""

from __future__ import annotations

from typing import Literal, get_args

from attention_models.protocol.facts import FactKind

Hide = Literal[
    "",
    "weight",  # of the selected cell
    "row",  # weights of the selected row
    "map",  # weights of the head
    "mask",  # which cells of the head are masked
    "score",  # of the selected cell: products, and what they are divided by
    "value",  # lengths of values, and what is read
    "role",  # what heads do, over many texts
    "next",  # what the model answers
    "effect",  # what parts of the model do for its answer
    "gradient",  # of an answer, by token
    "vector",  # how near two tokens' vectors are
    "position",  # how positions are told, and how many there are
    "variance",  # of products, by width
    "width",  # of heads and of the stream
    "size",  # layers, heads and parameters of the model
    "cache",  # keys and values that are kept
]

HIDES: tuple[Hide, ...] = get_args(Hide)
EVERYTHING: frozenset[Hide] = frozenset(HIDES) - {""}
WEIGHTS: frozenset[Hide] = frozenset({"weight", "row", "map", "mask"})
"""What the weights of the selected head say; a gradient goes along them, and is guessed from them."""

_FIGURES: dict[Hide, tuple[FactKind, ...]] = {
    "weight": ("weight",),
    "row": ("entropy", "visible", "peak", "peak weight"),
    "map": ("received", "diagonal", "above"),
    "mask": ("visible keys", "mask"),
    "score": ("product", "scaled score"),
    "value": ("value length", "read length", "read peak"),
    "role": ("role", "role score", "even role score"),
    "next": ("next", "next probability", "probability", "rank", "moved"),
    "effect": ("head effect", "agreement", "early", "settled after", "weights apart", "answer apart"),
    "gradient": ("gradient", "gradient peak"),
    "vector": ("cosine",),
    "position": ("turn error", "wave likeness", "context"),
    "variance": ("variance", "largest share"),
    "width": ("head width", "joined width", "width"),
    "size": ("layers", "heads", "vocabulary", "parameters", "query parameters"),
    "cache": ("cached bytes",),
}

HIDDEN_WITH: dict[FactKind, Hide] = {kind: hide for hide, kinds in _FIGURES.items() for kind in kinds}
"""What shows a figure. Others are on no panel before a person asks for them there: what is written, what is counted."""
