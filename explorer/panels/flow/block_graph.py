"""How the boxes of a block hang together: which lie on the residual stream, and which stand side by side. Pure.

All of it follows from what each box reads; no family's order of sublayers is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.protocol.flow import STREAM, Box, NormBox, ProjectionBox, SumBox


@dataclass(frozen=True, slots=True)
class Row:
    """Boxes at one height. A sum stands on the stream, beside what it adds where that is the only thing."""

    boxes: tuple[int, ...]
    sums: tuple[int, ...] = ()


def on_stream(boxes: Sequence[Box]) -> frozenset[int]:
    """The boxes whose output is the residual stream itself: sums, and normalisations of a whole sum (post-norm).

    A normalisation of a sum lies on the stream where a later sum adds to it, or where it is the last of all.
    """
    lane = {STREAM, *(i for i, box in enumerate(boxes) if isinstance(box, SumBox))}
    last = len(boxes) - 1
    for i, box in enumerate(boxes):
        if i in lane or not box.reads or not set(box.reads) <= lane:
            continue
        carries = any(_carries(later, i, lane) for later in boxes[i + 1 :])
        if isinstance(box, NormBox) and (carries or i == last):
            lane.add(i)
    return frozenset(lane - {STREAM})


def _carries(later: Box, box: int, lane: set[int]) -> bool:
    """Whether a sum adds to `box`, and not to something that is on the stream already."""
    return isinstance(later, SumBox) and box in later.reads and not (set(later.reads) - {box}) & lane


def added(boxes: Sequence[Box], number: int) -> tuple[int, ...]:
    """What the sum `number` adds to the stream."""
    lane = on_stream(boxes)
    return tuple(read for read in boxes[number].reads if read != STREAM and read not in lane)


def rows_of(boxes: Sequence[Box], parallel: bool = False) -> list[Row]:
    """From below. Projections that read the same stand side by side, and in a parallel block both sublayers."""
    rows: list[Row] = []
    for i, box in enumerate(boxes):
        if isinstance(box, SumBox):
            adds = added(boxes, i)
            if rows and len(adds) == 1 and rows[-1].boxes[-1:] == adds and not rows[-1].sums:
                rows[-1] = Row(rows[-1].boxes, (i,))
            else:
                rows.append(Row((), (i,)))
        elif rows and rows[-1].boxes and not rows[-1].sums and _beside(boxes[rows[-1].boxes[-1]], box):
            rows[-1] = Row((*rows[-1].boxes, i))
        else:
            rows.append(Row((i,)))
    return _side_by_side(boxes, rows) if parallel else rows


def _beside(box: Box, after: Box) -> bool:
    return isinstance(box, ProjectionBox) and isinstance(after, ProjectionBox) and box.part == after.part


def _side_by_side(boxes: Sequence[Box], rows: list[Row]) -> list[Row]:
    """A parallel block: the feed-forward network beside the last row of attention."""
    merged: list[Row] = []
    for row in rows:
        last = merged[-1] if merged else None
        if last is None or not row.boxes or not last.boxes or last.sums:
            merged.append(row)
            continue
        here, there = boxes[row.boxes[0]], boxes[last.boxes[0]]
        apart = here.part != there.part and not set(here.reads) & set(last.boxes)
        merged[-1:] = [Row((*last.boxes, *row.boxes), row.sums)] if apart else [last, row]
    return merged
