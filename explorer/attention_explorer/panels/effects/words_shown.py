"""What is drawn and said of a word in two texts. Pure."""

from __future__ import annotations

import re

import numpy as np

from attention_explorer.colour_maps import ColourTable
from attention_explorer.panels.effects.value_grid import Grid
from attention_explorer.panels.effects.word_plane import Points
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.plot.figure import Axis, Figure, Series
from attention_models.protocol.in_context import InContextView
from attention_models.protocol.values import Token

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")

MOST_BUTTONS = 300
"""Words of a text that can be clicked; those beyond are typed."""


def words_of(text: str) -> list[tuple[int, str]]:
    """The words of a text and where each begins."""
    return [(found.start(), found.group()) for found in _WORD.finditer(text)][:MOST_BUTTONS]


def layer_name(layer: int) -> str:
    return "the embedding" if layer == 0 else f"layer {layer - 1}"


def cosine_text(value: float, decimals: int = 3) -> str:
    """ "0.930"; what rounds to 0 has no sign."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", MINUS)


def names(view: InContextView) -> tuple[str, str]:
    """What each word is called: ("bank", "bank")."""
    return view.request.words


def pair_name(view: InContextView) -> str:
    first, second = names(view)
    return f"“{first}” and “{second}”" if first != second else f"“{first}” in A and B"


def curve(view: InContextView) -> Figure:
    """Cosines over the layers; the embedding is 0, what leaves block l is l + 1."""
    x = np.arange(view.layers)
    low = min(0.0, float(np.nanmin(view.cosine)), float(view.anisotropy.min()), float(view.sentences.min()))
    return Figure(
        Axis("blocks that have run: 0 is the embedding", whole=True, text=lambda at: f"after {layer_name(int(at))}"),
        Axis("cosine", low=low, high=1.05, text=cosine_text),
        (
            Series(pair_name(view), x, view.cosine, "query", width=2.5, mark="circle"),
            Series("means of all tokens", x, view.sentences[:, 1], "key", mark="square", mark_size=5.0),
            Series("first tokens", x, view.sentences[:, 0], "text", mark="diamond", mark_size=5.0),
            Series("any two tokens", x, view.anisotropy, "text_dim", line="dashed"),
        ),
        names="legend",
    )


def _firsts(view: InContextView) -> str:
    first, second = (tokens[0].word for tokens in view.tokens)
    return first if first == second else f"{first}”, “{second}"


def points(view: InContextView, layer: int) -> Points:
    both = (*view.tokens[0], *view.tokens[1])
    count = len(view.tokens[0])
    return Points(
        places=view.plane[layer],
        labels=tuple(token.word for token in both),
        text=tuple(int(i >= count) for i in range(len(both))),
        is_word=tuple(i in view.positions[0] or i - count in view.positions[1] for i in range(len(both))),
        explained=(float(view.explained[layer, 0]), float(view.explained[layer, 1])),
    )


def similarity_grid(view: InContextView, layer: int, table: ColourTable) -> Grid:
    """Tokens of A down, of B across."""
    count = len(view.tokens[0])
    values = view.similarity[layer, :count, count:]
    down, across = ([token.word for token in tokens] for tokens in view.tokens)
    return Grid(
        values=values,
        row_labels=tuple(down),
        column_labels=tuple(across),
        low=min(0.0, float(values.min())),
        high=1.0,
        row_name="A \\ B",
        words=tuple(tuple(cosine_text(v, 2) for v in row) for row in values.tolist()),
        tips=tuple(
            tuple(
                f"“{a}” in A and “{b}” in B after {layer_name(layer)}: cosine {cosine_text(v)}"
                for b, v in zip(across, row, strict=True)
            )
            for a, row in zip(down, values.tolist(), strict=True)
        ),
        least_width=44.0,
        has_numbers=True,
        table=table,
    )


def sentence(view: InContextView, layer: int) -> str:
    """The figures of one layer, and what was averaged."""
    firsts, means = view.sentences[layer].tolist()
    said = (
        f"After {layer_name(layer)}: cosine of {pair_name(view)} {cosine_text(float(view.cosine[layer]))}, where any "
        f"two tokens have {cosine_text(float(view.anisotropy[layer]))}. The texts: by their first tokens "
        f"(“{_firsts(view)}”) {cosine_text(firsts)}, by the means of all their tokens {cosine_text(means)}."
    )
    return f"{said}{_pieces(view)}"


def _pieces(view: InContextView) -> str:
    """Which words are several tokens, whose vectors are averaged."""
    found = []
    for name, word, tokens, places in zip("AB", names(view), view.tokens, view.positions, strict=True):
        if len(places) > 1:
            pieces = " + ".join(f"“{tokens[i].word}”" for i in places)
            found.append(f"“{word}” in {name} is {len(places)} tokens ({pieces}), whose vectors are averaged")
    return f" {'; '.join(found)}." if found else ""


def clicked_word(text: str, token: Token) -> tuple[int, str] | None:
    """The word of the text that a token is of; None of one that covers none, as CLS."""
    if token.special or token.end <= token.start:
        return None
    return next(((at, word) for at, word in words_of(text) if at < token.end and at + len(word) > token.start), None)
