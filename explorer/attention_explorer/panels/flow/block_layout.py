"""Where the boxes of a block lie: the residual stream at the left, boxes upward in the order in which they ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF

from attention_models.protocol.flow import (
    STREAM,
    BlockView,
    Box,
    FeedForwardBox,
    HeadsBox,
    NormBox,
    SumBox,
)

# How the boxes of a block hang together: which lie on the residual stream, and which stand side by side. Pure.
# All of it follows from what each box reads; no family's order of sublayers is assumed.


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


LANE = 30.0
"""Where the residual stream runs, from the left."""

_LEFT = 74.0  # where boxes begin
_GAP = 10.0  # between boxes side by side
_PLUS = 11.0  # radius of a sum
_HEAD = 44.0  # the least width of a head
_MOST_RISE = 46.0  # from box to box


@dataclass(frozen=True, slots=True)
class Arrow:
    """From what is read to who reads it, through corners."""

    points: tuple[QPointF, ...]
    has_head: bool = True
    part: str = ""  # whose colour it has; "" for none
    reader: int = -1  # the box that it leads to


@dataclass(frozen=True, slots=True)
class BlockLayout:
    width: float
    height: float
    line: float
    dense: bool  # titles and what is said of them on one line
    tight: bool = False  # and what is drawn in boxes as low as it can be read
    rects: dict[int, QRectF] = field(default_factory=dict)
    sums: dict[int, QPointF] = field(default_factory=dict)
    arrows: tuple[Arrow, ...] = ()
    top: float = 0.0  # of the stream
    foot: float = 0.0

    def rect(self, box: int) -> QRectF:
        """Where a box or a sum lies."""
        if box in self.sums:
            return QRectF(self.sums[box].x() - _PLUS, self.sums[box].y() - _PLUS, 2 * _PLUS, 2 * _PLUS)
        return self.rects.get(box, QRectF())

    def box_at(self, point: QPointF) -> int:
        """The box or sum under a point, -1 for none."""
        hits = (box for box in (*self.sums, *self.rects) if self.rect(box).contains(point))
        return next(hits, -1)

    def head_rect(self, box: int, head: int, heads: int) -> QRectF:
        """Where a head's row of weights lies in the box of all heads."""
        rect = self.rects[box]
        across = heads_across(rect.width(), heads)
        row, column = divmod(head, across)
        width = (rect.width() - 2 * PAD - (across - 1) * 8) / across
        high = head_height(self.line, self.tight)
        top = rect.top() + title_height(self.line, self.dense) + row * high
        return QRectF(rect.left() + PAD + column * (width + 8), top, width, high - (1 if self.tight else 4))

    def neuron_rect(self, box: int, place: int, count: int) -> QRectF:
        """The column of a neuron in the box of a feed-forward network; place -1 is what is written before the first."""
        rect, names = self.rects[box], NAMES * self.line
        width = (rect.width() - 2 * PAD - names) / max(1, count)
        top = rect.top() + title_height(self.line, self.dense)
        left = rect.left() + PAD + (0.0 if place < 0 else names + place * width)
        return QRectF(left, top, names if place < 0 else width, rect.bottom() - top - 6)


PAD = 12.0
"""Between a box's frame and what is in it."""


NAMES = 4.6
"""Room for what the numbers of neurons are, in heights of a line."""


def title_height(line: float, dense: bool) -> float:
    return line + 9 if dense else 2 * line + 14


def strip_height(line: float, tight: bool) -> float:
    """Of a head's row of weights."""
    return (0.7 if tight else 1.35) * line


def head_height(line: float, tight: bool) -> float:
    return strip_height(line, tight) + line + (1 if tight else 4)


def heads_across(width: float, heads: int) -> int:
    """How many heads stand in a line."""
    return max(1, min(heads, int((width - 2 * PAD + 8) / (_HEAD + 8))))


def box_height(box: Box, line: float, dense: bool, tight: bool, width: float) -> float:
    plain = line + (9 if tight else 11) if dense else 2 * line + 16
    match box:
        case HeadsBox(heads=heads):
            rows = -(-heads // heads_across(width, heads))
            return title_height(line, dense) + rows * head_height(line, tight) + (2 if tight else 4)
        case FeedForwardBox(neurons=neurons) if neurons:
            words = 2.0 if any(neuron.effect is not None for neuron in neurons) else 1.0
            bars = 0.7 if tight else (3.3 if dense else 3.9) - 2.0
            return title_height(line, dense) + (bars + words) * line + 6
    return plain


_SPACINGS = ((False, False), (True, False), (True, True))
"""Dense and tight, from the roomiest."""


def block_layout(view: BlockView, width: float, height: float, line: float) -> BlockLayout:
    """With room for what is said of each box below its title where the height allows, else beside it."""
    for dense, tight in _SPACINGS:
        needed = _needed(view, width, line, dense, tight)
        if needed <= height:
            return _placed(view, width, height, line, dense, tight)
    return _placed(view, width, needed, line, dense=True, tight=True)


def least_height(view: BlockView, width: float, line: float) -> float:
    return _needed(view, width, line, dense=True, tight=True)


def _above(line: float) -> float:
    """Over the last box, where it is said where the stream goes."""
    return line + 6


def _below(line: float) -> float:
    """Under the first box, where it is said where the stream comes from."""
    return line + 15


def _rows(view: BlockView, width: float, line: float, dense: bool, tight: bool) -> list[tuple[Row, float]]:
    """The rows, each with its height."""
    rows = []
    for row in rows_of(view.boxes):
        heights = [
            box_height(view.boxes[slot.box], line, dense, tight, (width - _LEFT - 4) * (slot.right - slot.left) - _GAP)
            for slot in row.slots
        ]
        rows.append((row, max(heights, default=2 * _PLUS)))
    return rows


def _needed(view: BlockView, width: float, line: float, dense: bool, tight: bool) -> float:
    rows = _rows(view, width, line, dense, tight)
    gap = max(6.0, (0.42 if tight else 0.62) * line)
    return _above(line) + _below(line) + sum(height for _, height in rows) + (len(rows) - 1) * gap


def _placed(view: BlockView, width: float, height: float, line: float, dense: bool, tight: bool) -> BlockLayout:
    rows = _rows(view, width, line, dense, tight)
    free = height - _above(line) - _below(line) - sum(high for _, high in rows)
    gap = min(_MOST_RISE, free / max(1, len(rows) - 1))
    lane, room = on_stream(view.boxes), width - _LEFT - 4
    rects: dict[int, QRectF] = {}
    sums: dict[int, QPointF] = {}
    y = height - _below(line)
    for row, high in rows:
        for box, start, end in row.slots:
            left = 8.0 if box in lane else _LEFT + start * room + (_GAP / 2 if start > 0 else 0.0)
            right = width - 4 if box in lane else _LEFT + end * room - (_GAP / 2 if end < 1 else 0.0)
            rects[box] = QRectF(left, y - high, right - left, high)
        sums.update({number: QPointF(LANE, y - high / 2) for number in row.sums})
        y -= high + gap
    top = max(0.0, y + gap - _above(line))
    shell = BlockLayout(width, height, line, dense, tight, rects, sums, (), top, height - 2)
    return replace(shell, arrows=_arrows(view.boxes, shell, lane))


def _arrows(boxes: Sequence[Box], layout: BlockLayout, lane: frozenset[int]) -> tuple[Arrow, ...]:
    arrows: list[Arrow] = []
    for number, box in enumerate(boxes):
        if isinstance(box, SumBox):
            arrows += _into_sum(boxes, number, layout)
        elif number not in lane:
            arrows += _into_box(box, number, layout, lane)
    return tuple(arrows)


def _into_sum(boxes: Sequence[Box], number: int, layout: BlockLayout) -> list[Arrow]:
    at, made = layout.sums[number], []
    for read in added(boxes, number):
        rect = layout.rect(read)
        part = boxes[read].part
        if rect.top() - 1 <= at.y() <= rect.bottom() + 1:
            points: tuple[QPointF, ...] = (QPointF(rect.left(), at.y()), QPointF(at.x() + _PLUS, at.y()))
        else:
            x = rect.center().x()
            points = (QPointF(x, rect.top()), QPointF(x, at.y()), QPointF(at.x() + _PLUS, at.y()))
        made.append(Arrow(points, has_head=False, part=part, reader=number))
    return made


def _into_box(box: Box, number: int, layout: BlockLayout, lane: frozenset[int]) -> list[Arrow]:
    rect, made = layout.rect(number), []
    for read in box.reads:
        into = QPointF(rect.center().x(), rect.bottom())
        if read == STREAM or read in lane:
            y = rect.bottom() + min(0.4 * layout.line, 8.0)
            points: tuple[QPointF, ...] = (QPointF(LANE, y + 0.0), QPointF(into.x(), y), into)
        else:
            source = layout.rect(read)
            left, right = max(source.left(), rect.left()), min(source.right(), rect.right())
            x = (left + right) / 2 if right > left else source.center().x()
            points = (QPointF(x, source.top()), QPointF(x, rect.bottom()))
            if right <= left:
                points = (
                    QPointF(x, source.top()),
                    QPointF(x, rect.bottom() + 8),
                    QPointF(into.x(), rect.bottom() + 8),
                    into,
                )
        made.append(Arrow(points, reader=number))
    return made
