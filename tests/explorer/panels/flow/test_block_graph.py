"""How boxes hang together, from what they read alone."""

from __future__ import annotations

from dataclasses import replace

from explorer.panels.flow.block_graph import Row, added, on_stream, rows_of
from models.protocol.flow import STREAM, Box, SumBox
from tests.explorer.panels.flow.made import boxes, norm


def post_norm() -> tuple[Box, ...]:
    """q, k, v, heads, output, sum, norm of the sum, feed-forward network, sum, norm of the sum."""
    made = boxes()
    return (
        *(replace(box, reads=(STREAM,)) for box in made[1:4]),
        replace(made[4], reads=(0, 1, 2)),
        replace(made[5], reads=(3,)),
        replace(made[6], reads=(STREAM, 4)),
        norm((5,)),
        replace(made[8], reads=(6,)),
        replace(made[9], reads=(6, 7)),
        norm((8,), "feed_forward"),
    )


def parallel() -> tuple[Box, ...]:
    """Attention and feed-forward network read the same normalised stream, and one sum takes both (GPT-J)."""
    made = boxes()
    return (*made[:6], replace(made[8], reads=(0,)), replace(made[9], reads=(STREAM, 5, 6)))


def both_norms() -> tuple[Box, ...]:
    """What attention writes is normalised before it is added (Gemma 2)."""
    made = boxes()
    return (*made[:6], norm((5,)), replace(made[6], reads=(STREAM, 6)))


def test_a_pre_norm_block_has_its_sums_alone_on_the_stream():
    assert on_stream(boxes()) == {6, 9}
    assert added(boxes(), 6) == (5,)
    assert added(boxes(), 9) == (8,)


def test_a_post_norm_lies_on_the_stream():
    """A planted error: read as pre-norm, the second sum would add the norm and the network to nothing."""
    assert on_stream(post_norm()) == {5, 6, 8, 9}
    assert added(post_norm(), 8) == (7,)


def test_a_norm_of_what_is_written_does_not_lie_on_the_stream():
    assert on_stream(both_norms()) == {7}
    assert added(both_norms(), 7) == (6,)


def test_projections_of_one_input_stand_side_by_side_and_sums_beside_what_they_add():
    assert rows_of(boxes()) == [
        Row((0,)),
        Row((1, 2, 3)),
        Row((4,)),
        Row((5,), (6,)),
        Row((7,)),
        Row((8,), (9,)),
    ]


def test_a_parallel_block_has_both_sublayers_side_by_side():
    rows = rows_of(parallel(), parallel=True)
    assert [row.boxes for row in rows if row.boxes] == [(0,), (1, 2, 3), (4,), (5, 6)]
    assert [row.sums for row in rows if row.sums] == [(7,)]
    assert isinstance(parallel()[7], SumBox)
    assert added(parallel(), 7) == (5, 6)
