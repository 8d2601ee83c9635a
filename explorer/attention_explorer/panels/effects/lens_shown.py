"""What is drawn and said of layers that are read early: words as cells, and the rank of one as a curve. Pure."""

from __future__ import annotations

import numpy as np

from attention_explorer.colour_maps import ColourTable
from attention_explorer.panels.effects.value_grid import Grid
from attention_explorer.panels.effects.wording import plain
from attention_explorer.session.effects_choices import Answer
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_explorer.widgets.plot.figure import Axis, Figure, Series
from attention_models.protocol.lens import LensView
from attention_models.protocol.running import Ran

_WORD = 58.0  # pixels that a cell with a word in it is wide at least


def lens_grid(view: LensView, ran: Ran, table: ColourTable) -> Grid | None:
    """Layers from the last, at the top, down to the embedding; each cell says its likeliest token."""
    if view.best is None or view.best_share is None or view.target_rank is None or view.labels is None:
        return None
    assert view.targets is not None
    assert view.target_share is not None
    layers, tokens = view.best.shape
    order = range(layers - 1, -1, -1)
    labels = view.labels
    words = tuple(tuple(labels[int(view.best[row, i])] for i in range(tokens)) for row in order)
    names = ("embedding", *(str(layer) for layer in range(layers - 1)))
    tips = tuple(
        tuple(
            f"after {'the embedding' if row == 0 else f'layer {row - 1}'}, at “{ran.tokens[i].word}”: "
            f"“{plain(labels[int(view.best[row, i])])}” {percent_text(float(view.best_share[row, i]))}; "
            f"“{plain(labels[int(view.targets[i])])}” {percent_text(float(view.target_share[row, i]))}, rank "
            f"{int(view.target_rank[row, i]):,}; norm of the stream {value_text(float(view.norms[row, i]))}"
            + ("" if row == 0 else f", of which this layer wrote {value_text(float(view.written[row - 1, i]))}")
            for i in range(tokens)
        )
        for row in order
    )
    return Grid(
        values=view.best_share[::-1].astype(float),
        row_labels=tuple(names[row] for row in order),
        column_labels=tuple(token.word for token in ran.tokens),
        low=0.0,
        high=1.0,
        row_name="layer",
        column_name="token",
        words=words,
        tips=tips,
        least_width=_WORD,
        table=table,
    )


def lens_sentence(view: LensView, ran: Ran, position: int) -> str:
    """How the rank of what is said in the end rises at one position."""
    if view.target_rank is None or view.targets is None or view.labels is None:
        return view.why
    position = min(position, view.target_rank.shape[1] - 1)
    ranks = [int(rank) for rank in view.target_rank[:, position]]
    label = plain(view.labels[int(view.targets[position])])
    norms = view.norms[:, position]
    return (
        f"Rank of “{label}” at “{ran.tokens[position].word}”, from the embedding up: "
        f"{', '.join(f'{rank:,}' for rank in ranks)}. The norm of the stream goes from "
        f"{value_text(float(norms[0]))} to {value_text(float(norms[-1]))}."
    )


def rank_figure(view: LensView, position: int) -> Figure | None:
    """The rank of the followed token at one position, after the embedding and each block; 1 is the likeliest."""
    if view.target_rank is None or view.targets is None or view.labels is None or view.target_share is None:
        return None
    ranks, shares = view.target_rank[:, position].astype(float), view.target_share[:, position].tolist()
    label = plain(view.labels[int(view.targets[position])])

    def place(x: float) -> str:
        where = "the embedding" if x == 0 else f"layer {int(x) - 1}"
        return f"after {where}, probability {percent_text(shares[int(x)])}"

    return Figure(
        Axis("blocks that have run: 0 is the embedding", whole=True, text=place),
        Axis("rank", low=0.8, high=max(10.0, 1.3 * float(ranks.max())), log=True, text=lambda rank: f"{rank:,.0f}"),
        (Series(f"rank of “{label}” (1: the likeliest)", np.arange(len(ranks)), ranks, "query", mark="circle"),),
        names="legend",
    )


def readings(view: LensView, position: int) -> tuple[Answer, ...]:
    """The words that are the likeliest somewhere on the way, from the last layer down: what can be followed."""
    if view.best is None or view.labels is None:
        return ()
    ids = dict.fromkeys(int(id_) for id_ in view.best[::-1, position])
    return tuple(Answer(view.labels[id_], id_) for id_ in ids)
