"""How boxes hang together, from what they read alone."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.panels.flow.block_layout import Slot, added, on_stream, rows_of
from attention_models.protocol.flow import STREAM, Box, SumBox
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


def names(made: tuple[Box, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(row.boxes, row.sums) for row in rows_of(made)]


def test_projections_of_one_input_stand_side_by_side_and_sums_beside_what_they_add():
    assert names(boxes()) == [
        ((0,), ()),
        ((1, 2, 3), ()),
        ((4,), ()),
        ((5,), (6,)),
        ((7,), ()),
        ((8,), (9,)),
    ]


def test_a_norm_of_the_queries_stands_above_them():
    """Qwen 3 normalises q and k, head by head: each above its own, and values beside them."""
    made = boxes()
    q_norm, k_norm = norm((1,), module="q_norm"), norm((3,), module="k_norm")
    ran = (made[0], made[1], q_norm, made[2], k_norm, made[3], replace(made[4], reads=(2, 4, 5)))
    first, made_of, normed, heads = rows_of(ran)
    assert (first.boxes, made_of.boxes, normed.boxes, heads.boxes) == ((0,), (1, 3, 5), (2, 4), (6,))
    spans = {slot.box: (slot.left, slot.right) for row in (made_of, normed) for slot in row.slots}
    assert spans[2] == spans[1]
    assert spans[4] == spans[3]


def test_what_comes_from_the_other_stack_stands_beside_the_queries():
    made = boxes()
    ran = (made[0], made[1], replace(made[2], reads=()), replace(made[3], reads=()), made[4])
    assert [row.boxes for row in rows_of(ran)] == [(0,), (1, 2, 3), (4,)]


def test_a_parallel_block_has_each_sublayer_in_its_half():
    shared, projections, *_, last = rows = rows_of(parallel())
    assert shared.slots == (Slot(0),)
    assert isinstance(parallel()[7], SumBox)
    assert (last.boxes, last.sums) == ((), (7,))
    assert added(parallel(), 7) == (5, 6)
    halves = {slot.box: slot.left >= 0.5 for row in rows for slot in row.slots if slot.box}
    assert halves == {1: False, 2: False, 3: False, 4: False, 5: False, 6: True}
    assert 6 in projections.boxes  # it reads the same norm
