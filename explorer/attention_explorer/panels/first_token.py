"""Why so many heads attend to the first token: said where one does, with its share and its value's norm. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from attention_explorer.panels.selected_head import head_shown, row_of, site_words
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_models.protocol.head import FirstKey, RowView

_MOST_OF_A_LONG_ROW = 0.5
"""Of a long text no rows are counted: there the first token must have this much of the row."""

_RESTS = 0.5
"""A row that gives it less has found something: it is not said to rest here."""

_SHORT = 0.75
"""Of the other values' mean norm: a value below that is called short."""

_WHOLE = 0.999
"""A row that sums to less shares itself with a sink of its own (gpt-oss)."""


@dataclass(frozen=True, slots=True)
class AttentionSink:
    """The first token, where the selected row of the selected head rests on it."""

    key: int
    note: str  # in a few words, for a readout
    sentence: str


def attention_sink(state: State, query: int | None = None) -> AttentionSink | None:
    """What is to be said of the first token; None where it does not have the most of this row, and of most rows.

    The row is that of `query`, of the selected one if None.
    """
    view, ran, site, selection = head_shown(state), state.ran, state.site, state.selection
    if view is None or view.first is None or ran is None or site is None:
        return None
    query = selection.query if query is None else query
    asked = view.request
    if (asked.site, asked.head) != (site.ref, selection.head):
        return None
    if isinstance(view, RowView) and view.request.query != query:
        return None
    queries, keys = site_words(ran, site)
    if not 0 <= query < len(queries):
        return None
    first, (row, _) = view.first, row_of(view, query)
    share = float(row[first.key])
    if query == first.key or share < row.max():
        return None
    if not _is_in_most_rows(first) if first.rows is not None else share < _MOST_OF_A_LONG_ROW:
        return None
    return AttentionSink(
        first.key, _note(first), _sentence(first, queries[query], keys[first.key], share, float(row.sum()))
    )


def _is_in_most_rows(first: FirstKey) -> bool:
    return first.rows is not None and first.of_rows is not None and 2 * first.rows > first.of_rows


def _note(first: FirstKey) -> str:
    return "" if first.rows is None else f", which has the most of {first.rows} of {first.of_rows} other rows"


def _sentence(first: FirstKey, query: str, key: str, share: float, row_sum: float) -> str:
    rows = f"{first.rows} of the {first.of_rows} other rows"
    most = "" if first.rows is None else f" It has the most of {rows} of this head."
    value = _of_value(first, share, row_sum > _WHOLE)
    return f"“{key}” takes {percent_text(share)} of the row of “{query}”.{most}{value}"


def _of_value(first: FirstKey, share: float, sums_to_1: bool) -> str:
    if first.norm is None or first.others_norm is None:
        return ""
    norms = f"norm {value_text(first.norm)}, the others’ {value_text(first.others_norm)} on average"
    if first.norm >= _SHORT * first.others_norm:
        return f" Its value: {norms}."
    if share < _RESTS:
        return f" Its value is short ({norms}), so little of it is handed on."
    why = "a row has to sum to 1, and a head" if sums_to_1 else "a head"
    return f" Its value is short ({norms}), so little is passed on: {why} that finds nothing leaves its weight here."
