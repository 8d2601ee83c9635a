"""What the (i) of a head's map says, with the numbers of the selected row. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attention_explorer.panels.about import About
from attention_explorer.panels.head.shown_map import SCALES
from attention_explorer.panels.selected_head import (
    NO_HEADS,
    head_name,
    head_shown,
    row_of,
    site_word_labels,
    site_words,
)
from attention_explorer.session.state import State
from attention_explorer.session.view_options import Normalisation
from attention_explorer.widgets.number_text import counted, of_possible, value_text
from attention_models.protocol.head import HeadView, RowView
from attention_models.protocol.information import entropy
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Site
from attention_models.protocol.word_spans import site_words as words_of_site

_WHAT = "One head's attention: each row is a token that looks (the query), each column one that is looked at (the key)."
_BEFORE = (
    "When the model has run, the colour of a cell is the weight that the row's token gives to the column's: "
    "its share of the row."
)
_TRY = "Try: click another cell, or press Alt+→ for the next head, and see how the entropy of its row changes."
_TRY_ONE = "Try: click a cell of another row, and see how the entropy of that row is another one."


@dataclass(frozen=True, slots=True)
class _Row:
    """The selected row as it is drawn: of words where those are shown."""

    query: str
    keys: list[str]
    weights: np.ndarray
    open: np.ndarray  # bool, what the mask lets it look at
    key: int


def about(state: State, how: Normalisation) -> About:
    """`how` is what the colours show."""
    ran, site, view = state.ran, state.site, head_shown(state)
    if ran is not None and not ran.sites:
        return About(
            (NO_HEADS, _WHAT, "The recurrent models with attention, and all transformers, have heads to show here.")
        )
    try_ = _TRY_ONE if ran is not None and sum(each.heads for each in ran.sites) == 1 else _TRY
    row = None if ran is None or site is None or view is None else _row(state, ran, site, view)
    if row is None:
        return About((_WHAT, _BEFORE), try_)
    return About.of((f"{head_name(state)}. {_WHAT}", _most(row), _spread(state, row), _colours(how)), try_)


def _row(state: State, ran: Ran, site: Site, view: HeadView | RowView) -> _Row | None:
    query, key = state.selection.query, state.selection.key
    if view.request.site != site.ref or view.request.head != state.selection.head:
        return None  # those of another head stay until its own are here
    if isinstance(view, RowView) and view.request.query != query:
        return None
    if isinstance(view, HeadView) and view.by_word is not None and state.document.view.words:
        queries, keys = words_of_site(ran, site)
        names = site_word_labels(ran, site)
        query, key = queries.word(query), keys.word(key)
        weights, mask = view.by_word.weights[query], view.by_word.masked
        masked = None if mask is None else mask[query]
    else:
        names = site_words(ran, site)
        weights, masked = row_of(view, query)
    visible = np.ones(len(weights), bool) if masked is None else ~masked
    return _Row(names[0][query], names[1], weights, visible, key)


def _most(row: _Row) -> str:
    count = int(row.open.sum())
    if not count or not row.weights.any():
        return f"“{row.query}” may look at nothing: all weights of its row are 0."
    best = int(row.weights.argmax())
    said = (
        f"The row of “{row.query}” puts {value_text(float(row.weights[best]))} on “{row.keys[best]}”, the most "
        f"of {counted(count, 'key')} that it may look at"
    )
    if not 0 <= row.key < len(row.keys) or row.key == best:
        return f"{said}."
    if not row.open[row.key]:
        return f"{said}; the framed one, “{row.keys[row.key]}”, is masked."
    return f"{said}; “{row.keys[row.key]}”, which is framed, has {value_text(float(row.weights[row.key]))}."


def _spread(state: State, row: _Row) -> str:
    count, unit = int(row.open.sum()), state.document.view.unit
    if count < 2 or not row.weights.any():
        return (
            "With one key to look at there is nothing to choose: that has all of the row, and the entropy is 0."
            if count
            else ""
        )
    bits = of_possible(float(entropy(row.weights)), math.log2(count), unit)
    return f"The entropy of that row is {bits}: 0 is all on one key, the most is the same for each of the {count}."


def _colours(how: Normalisation) -> str:
    meaning = SCALES[how][1]
    return "" if how == "none" else f"The colours show another thing just now: {meaning[0].lower()}{meaning[1:]}."
