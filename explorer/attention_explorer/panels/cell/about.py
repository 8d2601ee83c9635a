"""What the (i) of one cell says, with the numbers of its steps. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.panels.selected_head import site_words
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import counted, signed, value_text
from attention_models.protocol.cell import CellView

_WHAT = "How one attention weight comes about and what it does, step by step, with the model's own numbers."
_ORDER = (
    "Query times key gives a score; softmax makes weights of a row's scores; the weight says how much of the "
    "key's value is read."
)
_RECURRENT = (
    "The decoder's state and an encoder's state give a score; softmax makes weights of a row's scores; the weight says "
    "how much of the encoder's state is in the context."
)
_NONE = "The open model attends to nothing, so there is no weight to take apart."
_TRY = (
    "Try: click another key in the row at the bottom, and compare its score and its weight; or a step, to read "
    "what it means."
)


def about(state: State, view: CellView | None) -> About:
    """`view` is the cell that is shown."""
    ran = state.ran
    if ran is not None and not ran.sites:
        return About((_NONE, _WHAT))
    site = None if ran is None or view is None else ran.site(view.request.site)
    if ran is None or view is None or site is None or view.request.run != ran.run:
        return About((_WHAT, _ORDER, "The numbers appear when the model has run."), _TRY)
    queries, keys = site_words(ran, site)
    query, key = queries[view.request.query], keys[view.request.key]
    order = _ORDER if view.recurrent is None else _RECURRENT
    return About((f"“{query}” looks at “{key}”. {order}", _score(view), _weight(view, query), _effect(view)), _TRY)


def _score(view: CellView) -> str:
    raw, products = value_text(view.raw), counted(len(view.products), "product")
    if view.recurrent is not None:
        return f"The score e is {raw}, the sum of {products}; softmax is given {value_text(view.score)}."
    if view.additive is not None:
        return f"v · tanh(q + k) is {raw}, the sum of {products}; softmax is given {value_text(view.score)}."
    return (
        f"q · k is {raw}, the sum of {products}; scaled by {value_text(view.scale * view.factor)} it is "
        f"{value_text(view.scaled)}, and softmax is given {value_text(view.score)}."
    )


def _weight(view: CellView, query: str) -> str:
    if view.masked:
        return "The cell is masked: its score counts as minus infinity, and its weight is 0."
    count = int((~view.row_masked).sum())
    return (
        f"Among the {counted(count, 'key')} that “{query}” may look at softmax makes a weight of "
        f"{value_text(view.weight)} of it."
    )


def _effect(view: CellView) -> str:
    mixed = (
        f"That much of a vector of length {value_text(view.value_norm)} is read: {value_text(view.mixed_norm)} "
        f"of the {'head' if view.recurrent is None else 'context'}'s {value_text(view.head_output_norm)}"
    )
    if view.effect is None:
        return f"{mixed}."
    return (
        f"{mixed}; its write moves the logit of “{view.target_label.lstrip('␣') or view.target_label}” by "
        f"{signed(view.effect)} directly."
    )
