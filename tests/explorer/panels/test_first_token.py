"""The sentence about the first token: where it is said, with which figures, and where it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.panels.first_token import attention_sink
from attention_explorer.session.intents import SelectHead, SelectQuery
from attention_explorer.session.state import State
from attention_models.protocol.head import FirstKey, HeadRequest, HeadView, RowRequest, RowView
from attention_models.protocol.values import LARGEST_WHOLE, SiteRef
from tests.explorer.session import answers
from tests.explorer.session.answers import after

SITE = SiteRef("decoder", 5)
RESTS = FirstKey(key=0, rows=3, of_rows=3, norm=0.5, others_norm=4.0)
WEIGHTS = np.array(
    [[1, 0, 0, 0], [0.9, 0.1, 0, 0], [0.6, 0.2, 0.2, 0], [0.3, 0.5, 0.1, 0.1]], np.float32
)  # the last row attends to "and"


def state_of(first: FirstKey | None, query: int = 2) -> State:
    view = HeadView(request=HeadRequest(run=1, site=SITE, head=5), weights=WEIGHTS, masked=None, first=first)
    return after(State(), answers.loaded(), answers.ran(), SelectHead(SITE, 5), SelectQuery(query), view)


def test_share_rows_and_norms_are_said() -> None:
    place = attention_sink(state_of(RESTS))
    assert place is not None
    assert place.sentence == (
        "“Tom” takes 60.0 % of the row of “Anna”. It has the most of 3 of the 3 other rows of this head. Its value "
        "is short (norm 0.500, the others’ 4.000 on average), so little is passed on: a row has to sum to 1, and a "
        "head that finds nothing leaves its weight here."
    )
    assert place.note == ", which has the most of 3 of 3 other rows"


def test_beside_a_sink_no_row_has_to_sum_to_1() -> None:
    state = state_of(RESTS)
    view = HeadView(request=HeadRequest(run=1, site=SITE, head=5), weights=WEIGHTS / 2, masked=None, first=RESTS)
    place = attention_sink(after(state, view))
    assert place is not None
    assert "30.0 % of the row" in place.sentence
    assert "sum to 1" not in place.sentence


def test_a_row_that_finds_something_is_not_said_to_rest() -> None:
    state = state_of(RESTS)
    view = state.results.of(HeadView)
    assert view is not None
    weights = view.weights.copy()
    weights[2] = [0.4, 0.3, 0.3, 0]
    place = attention_sink(after(state, replace(view, weights=weights)))
    assert place is not None
    assert place.sentence.startswith("“Tom” takes 40.0 % of the row of “Anna”.")
    assert place.sentence.endswith("so little of it is handed on.")
    assert "finds nothing" not in place.sentence


def test_the_row_may_be_one_that_is_pointed_at() -> None:
    state = state_of(RESTS)
    place = attention_sink(state, 1)
    assert place is not None
    assert "90.0 % of the row of “and”" in place.sentence
    assert attention_sink(state, 3) is None
    assert attention_sink(state, 99) is None


@pytest.mark.parametrize(
    ("first", "query"),
    [
        (RESTS, 3),  # this row has more elsewhere
        (RESTS, 0),  # it sees itself alone
        (replace(RESTS, rows=1), 2),  # most rows have more elsewhere
        (None, 2),  # cross-attention
    ],
)
def test_it_is_not_said_where_it_is_not_so(first: FirstKey | None, query: int) -> None:
    assert attention_sink(state_of(first, query)) is None


def test_a_value_as_long_as_others_is_not_called_short() -> None:
    place = attention_sink(state_of(replace(RESTS, norm=3.9)))
    assert place is not None
    assert place.sentence.endswith("3 other rows of this head. Its value: norm 3.900, the others’ 4.000 on average.")
    without = attention_sink(state_of(replace(RESTS, norm=None, others_norm=None)))
    assert without is not None
    assert without.sentence.endswith("3 other rows of this head.")


def test_weights_of_another_head_say_nothing() -> None:
    assert attention_sink(after(state_of(RESTS), SelectHead(SITE, 4))) is None


@pytest.mark.parametrize(("share", "said"), [(0.6, True), (0.4, False)])
def test_of_a_long_text_the_row_decides(share: float, said: bool) -> None:
    count = LARGEST_WHOLE + 1
    ran = answers.ran(text=" ".join(["Tom"] * count))
    row = np.full(count, (1 - share) / (count - 1), np.float32)
    row[0] = share
    first = replace(RESTS, rows=None, of_rows=None)
    view = RowView(request=RowRequest(run=1, site=SITE, head=5, query=9), weights=row, masked=None, first=first)
    state = after(State(), answers.loaded(), ran, SelectHead(SITE, 5), SelectQuery(9), view)
    place = attention_sink(state)
    assert (place is not None) == said
    assert place is None or (f"{100 * share:.1f} % of the row" in place.sentence and "rows" not in place.sentence)
