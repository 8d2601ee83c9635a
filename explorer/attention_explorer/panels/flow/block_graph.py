"""How the boxes of a block hang together: which lie on the residual stream, and which stand side by side. Pure.

All of it follows from what each box reads; no family's order of sublayers is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from attention_models.protocol.flow import STREAM, Box, NormBox, SumBox


class Slot(NamedTuple):
    """A box, and from where to where it reaches in its row, 0 to 1."""

    box: int
    left: float = 0.0
    right: float = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """Boxes at one height. A sum stands on the stream, beside what it adds where that is the only thing."""

    slots: tuple[Slot, ...]
    sums: tuple[int, ...] = ()

    @property
    def boxes(self) -> tuple[int, ...]:
        return tuple(slot.box for slot in self.slots)


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


def rows_of(boxes: Sequence[Box]) -> list[Row]:
    """From below. What reads the same stands side by side, each later box above what it reads.

    Where one sum takes what two sublayers wrote (a parallel block), each has a part of the width.
    """
    lane, rows, segment = on_stream(boxes), list[Row](), list[int]()
    for i in range(len(boxes)):
        if i not in lane:
            segment.append(i)
            continue
        rows += _segment(boxes, segment)
        segment = []
        if not isinstance(boxes[i], SumBox):
            rows.append(Row((Slot(i),)))
            continue
        adds = added(boxes, i)
        if rows and len(adds) == 1 and rows[-1].boxes == adds and not rows[-1].sums:
            rows[-1] = Row(rows[-1].slots, (i,))
        else:
            rows.append(Row((), (i,)))
    return rows + _segment(boxes, segment)


def _segment(boxes: Sequence[Box], members: list[int]) -> list[Row]:
    """The rows of what stands between two boxes of the stream."""
    if not members:
        return []
    levels = _levels(boxes, members)
    shared = {i for i in members if len({boxes[j].part for j in members if i in boxes[j].reads}) > 1}
    parts = list(dict.fromkeys(boxes[i].part for i in members if i not in shared))
    placed: dict[int, Slot] = {}
    rows = []
    for level in range(1, max(levels.values()) + 1):
        here = [i for i in members if levels[i] == level]
        slots = [Slot(i) for i in here if i in shared]
        for place, part in enumerate(parts):
            own = [i for i in here if boxes[i].part == part and i not in shared]
            slots += _side_by_side(boxes, own, placed, place / len(parts), (place + 1) / len(parts))
        placed.update({slot.box: slot for slot in slots})
        rows.append(Row(tuple(slots)))
    return rows


def _levels(boxes: Sequence[Box], members: list[int]) -> dict[int, int]:
    """How many boxes lead to each, itself included; one that reads nothing here stands beside what is read with it."""
    levels: dict[int, int] = {}
    for i in members:
        levels[i] = 1 + max((levels[read] for read in boxes[i].reads if read in levels), default=0)
    for i in members:
        readers = [levels[j] for j in members if i in boxes[j].reads]
        if not boxes[i].reads and readers:
            levels[i] = max(1, min(readers) - 1)
    return levels


def _side_by_side(
    boxes: Sequence[Box], own: list[int], placed: dict[int, Slot], left: float, right: float
) -> list[Slot]:
    """Each above the one box that it reads, where that is so of all; else evenly spread."""
    above = [placed.get(boxes[i].reads[0]) if len(boxes[i].reads) == 1 else None for i in own]
    within = [slot for slot in above if slot is not None and slot.left >= left - 1e-9 and slot.right <= right + 1e-9]
    spans = {(slot.left, slot.right) for slot in within}
    if own and len(spans) == len(own):
        return [Slot(i, slot.left, slot.right) for i, slot in zip(own, within, strict=True)]
    step = (right - left) / max(1, len(own))
    return [Slot(i, left + place * step, left + (place + 1) * step) for place, i in enumerate(own)]
