"""Places of two runs: their labels, and the way from a place to A's tokens and back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.panels.compare.places import (
    NO_TOKEN,
    cell_at_place,
    differs,
    padding_of,
    place_of_cell,
    words_of,
)
from attention_models.protocol.two_runs import AlignedAxis, AlignedPlace
from tests.explorer.panels.compare.two_runs import AXIS, view


def test_each_map_calls_a_place_by_its_own_tokens() -> None:
    words = words_of(view(), "keys")
    assert words.a == ("Tom", "ran", "home", NO_TOKEN)
    assert words.b == ("Tom", "ran", "far", "away")
    assert words.both == ("Tom", "ran", "home | far", "away")


def test_a_cell_of_a_has_a_place_and_a_place_a_cell() -> None:
    for query in range(3):
        for key in range(3):
            place = place_of_cell(view(), query, key)
            assert cell_at_place(view(), place, -1, -1) == (query, key)
    assert place_of_cell(view(), -1, 2) == (-1, 2)
    assert place_of_cell(None, 1, 2) == (-1, -1)


@pytest.mark.parametrize("place", [(3, 0), (0, 3), (-1, 0), (4, 0)])
def test_where_a_has_no_token_there_is_no_cell(place: tuple[int, int]) -> None:
    assert cell_at_place(view(), place, 0, 0) is None


def test_of_a_place_of_several_tokens_the_selected_one_stays() -> None:
    merged = AlignedAxis((AlignedPlace((0, 3), (0, 1)),), "characters")
    several = replace(view(), queries=merged, keys=merged)
    assert cell_at_place(several, (0, 0), 2, 1) == (2, 1)
    assert cell_at_place(several, (0, 0), 7, -1) == (0, 0)


def test_places_of_padding_are_faint_on_the_maps_that_have_it() -> None:
    assert padding_of(view()) == (((), ()),) * 3
    both = view()
    padded = replace(both.b, tokens=(*both.b.tokens[:3], replace(both.b.tokens[3], padding=True)))
    assert padding_of(replace(both, b=padded)) == (((), ()), ((3,), (3,)), ((3,), (3,)))
    assert padding_of(replace(both, keys=None)) == (((), ()),) * 3


def test_equal_tokens_leave_no_alignment_to_show() -> None:
    assert differs(AXIS)
    assert not differs(AlignedAxis((AlignedPlace((0, 1), (0, 1)),), "place"))
    assert not differs(None)
