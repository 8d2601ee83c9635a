"""The row of weights that arcs, shades or the colours of a picture show, and what to say of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_explorer.panels.selected_head import (
    by_words,
    head_name,
    head_shown,
    row_of,
    site_word_labels,
    token_word,
)
from attention_explorer.session.state import State
from attention_models.protocol.head import HeadView, RowView
from attention_models.protocol.values import Site
from attention_models.protocol.word_spans import MERGED, site_words


@dataclass(frozen=True, slots=True, eq=False)
class ShownRow:
    weights: np.ndarray  # (keys,) float32, of tokens or of words
    query: int  # the token or the word whose row it is
    name: str  # of it; of cross-attention also of what it wrote
    is_merged: bool  # of words


def shown_row(state: State, pointed: int) -> ShownRow | None:
    """The row of the query `pointed` (-1: none), else of the selected one; None where the site has no weights here."""
    view, ran, site = head_shown(state), state.ran, state.site
    if view is None or ran is None or site is None or not _is_of(view, site):
        return None
    row = pointed if 0 <= pointed < site.queries else state.selection.query
    row = view.request.query if isinstance(view, RowView) else row  # the others are not here
    if isinstance(view, HeadView) and view.by_word is not None and by_words(state):
        words, names = site_words(ran, site)[0], site_word_labels(ran, site)[0]
        word = words.word(row)
        return ShownRow(view.by_word.weights[word], word, names[word], is_merged=True)
    return ShownRow(row_of(view, row)[0], row, token_word(state, row), is_merged=False)


def caption(state: State, row: ShownRow, is_shaded: bool) -> str:
    """What is drawn: of which head, and from where. `is_shaded`: the tokens of the source have shades for arcs."""
    before = "" if state.up_to_date else "tokens of the last text that ran · "
    is_picture = state.ran is not None and state.ran.seen is not None
    by, head = "colour" if is_picture else "shades" if is_shaded else "arcs", head_name(state)
    is_typed = state.ran is not None and state.ran.inputs.target is not None
    wrote = ", of a target that was typed" if is_shaded and is_typed else ""
    merged = f" · {MERGED}" if row.is_merged else ""
    return f"{before}{by}: {head[0].lower()}{head[1:]}, from “{row.name}”{wrote}{merged}"


def _is_of(view: HeadView | RowView, site: Site) -> bool:
    """Whether the view's keys (and queries) are as many as those of `site`."""
    return view.weights.shape == ((site.keys,) if isinstance(view, RowView) else (site.queries, site.keys))
