"""An axis of two runs: what stands for what, and what is alone."""

from __future__ import annotations

from attention_models.protocol.two_runs import AlignedAxis, AlignedPlace

# A: Tom gave it    B: Tom gave ##d all it up    the second token of A is two of B, "all" and "up" are B's alone
AXIS = AlignedAxis(
    (
        AlignedPlace((0, 1), (0, 1)),
        AlignedPlace((1, 2), (1, 3), same=False),
        AlignedPlace((2, 2), (3, 4)),
        AlignedPlace((2, 3), (4, 5)),
        AlignedPlace((3, 3), (5, 6)),
    ),
    "words",
)


def test_every_token_is_in_the_place_that_covers_it():
    assert [AXIS.place_of_a(i) for i in range(-1, 4)] == [None, 0, 1, 3, None]
    assert [AXIS.place_of_b(j) for j in range(7)] == [0, 1, 1, 2, 3, 4, None]


def test_pairs_and_those_alone_together_are_all_tokens():
    assert AXIS.pairs == ((0, 0), (1, 1), (1, 2), (2, 4))
    assert AXIS.alone_a == ()
    assert AXIS.alone_b == (3, 5)


def test_a_token_leads_to_the_other_runs_and_back():
    assert list(AXIS.b_of(1)) == [1, 2]
    assert list(AXIS.a_of(2)) == [1]
    assert list(AXIS.a_of(3)) == [] == list(AXIS.b_of(9))


def test_only_one_token_for_one_is_single():
    assert not AXIS.is_single
    assert AlignedAxis(AXIS.places[:1] + AXIS.places[2:3], "words").is_single
