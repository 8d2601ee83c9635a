"""Where everything of the picture of the whole model lies. Pure geometry, no widget.

Lanes stand side by side, blocks lie on one another. What does not fit is scrolled: the chips at the foot of the lanes
and the names of the blocks stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF

from attention_explorer.panels.flow.model_scene import Place

_LEAST_PITCH = 2.05  # of a line's height
_CLOSE_PITCH, _WIDE_PITCH = 1.3, 2.5  # between which chips stand in two rows
_LEAST_BLOCK, _FEW_BLOCK = 0.84, 1.5  # of a line's height: where all then fit, and where they are scrolled
_GAP = 26.0  # between two stacks
_UNDER = 3.0  # between two rows of chips
_MOST_BAR = 58.0
_MOST_LANE = 13.0
_LANE = 0.36
"""Where in its column a lane stands: left of the middle, for bars are drawn at its right."""
_TAIL = 0.36  # of a pitch: room for the bars of the last lane


@dataclass(frozen=True, slots=True)
class StackSize:
    """How much of it there is."""

    positions: int
    blocks: int
    embedding: int  # parts of the embedding, each with a bar


@dataclass(frozen=True, slots=True)
class ModelLayout:
    """All lengths in logical pixels. `scroll` counts from the left, and upwards from the lowest block."""

    stacks: tuple[StackSize, ...]
    width: float
    height: float
    line: float  # height of a line of text
    gutter: float  # room for the names of the blocks, left of every stack
    header: float  # above the blocks: the legend and what the model says
    pitch: float  # from lane to lane
    block: float  # height of a block
    staggered: bool = False  # chips stand in two rows, every second one below: so all lanes fit
    scroll_x: float = 0.0
    scroll_y: float = 0.0

    @property
    def chip_rows(self) -> int:
        return 2 if self.staggered else 1

    @property
    def chip_height(self) -> float:
        return self.line + 9

    @property
    def foot(self) -> float:
        """Where blocks and embedding end and the chips begin."""
        return self.height - self.chip_rows * (self.chip_height + _UNDER) - 8 + _UNDER

    @property
    def area(self) -> QRectF:
        """What shows blocks and embedding; the rest of them is scrolled out of it."""
        return QRectF(0, self.header, self.width, max(0.0, self.foot - self.header))

    @property
    def embedding(self) -> float:
        """Height of the row of the embedding."""
        return max(1.25 * self.line, 10.0 + 8.0 * max((stack.embedding for stack in self.stacks), default=0))

    @property
    def most_scroll_x(self) -> float:
        return max(0.0, self._reach() - self.width)

    @property
    def most_scroll_y(self) -> float:
        blocks = max((stack.blocks for stack in self.stacks), default=0)
        return max(0.0, self.embedding + blocks * self.block - self.area.height())

    @property
    def least_width(self) -> float:
        """What shows every lane with no scrolling."""
        lanes = sum(stack.positions + _TAIL for stack in self.stacks)
        gutters = len(self.stacks) * self.gutter + (len(self.stacks) - 1) * _GAP
        return gutters + lanes * _LEAST_PITCH * self.line

    @property
    def lane_room(self) -> float:
        """The width of the widest lane."""
        return min(_MOST_LANE, 0.22 * self.pitch)

    @property
    def bar_room(self) -> float:
        """The length of the longest bar."""
        return max(4.0, min(_MOST_BAR, self.pitch - self.lane_room - 5))

    def _reach(self) -> float:
        return self._left(len(self.stacks)) - _GAP if self.stacks else 0.0

    def _left(self, stack: int) -> float:
        """Where a stack begins, its gutter first, before scrolling."""
        return sum(self.gutter + (each.positions + _TAIL) * self.pitch + _GAP for each in self.stacks[:stack])

    def lane_x(self, stack: int, position: int) -> float:
        """The middle of a lane."""
        return self._left(stack) + self.gutter + (position + _LANE) * self.pitch - self.scroll_x

    def column(self, stack: int, position: int) -> QRectF:
        """All of a lane, from the top of the blocks to the foot."""
        left = self.lane_x(stack, position) - _LANE * self.pitch
        return QRectF(left, self.header, self.pitch, self.area.height())

    def base(self) -> float:
        """The y at which the stream enters block 0."""
        return self.foot - self.embedding + self.scroll_y

    def block_bottom(self, block: int) -> float:
        """The y at which the stream enters a block."""
        return self.base() - block * self.block

    def block_rect(self, stack: int, block: int) -> QRectF:
        """A block over the whole width of its stack; block -1 is the embedding."""
        left = self._left(stack) - self.scroll_x
        width = self.gutter + (self.stacks[stack].positions + _TAIL) * self.pitch
        if block < 0:
            return QRectF(left, self.base(), width, self.embedding)
        return QRectF(left, self.block_bottom(block + 1), width, self.block)

    def crossing(self, place: Place) -> QRectF:
        """A block at a position."""
        rect = self.block_rect(place.stack, place.block)
        column = self.column(place.stack, place.position)
        return QRectF(column.left(), rect.top(), self.pitch, rect.height())

    def row_y(self, block: int, row: int, rows: int) -> float:
        """The middle of one of a block's bars, counted from below in the order in which they were written."""
        return self.block_bottom(block) - self.block * (row + 1) / (rows + 1)

    def arc_y(self, block: int, row: int, rows: int) -> float:
        """Where arcs run along a block: under the bar of what they brought."""
        bar = self.row_y(block, row, rows)
        return bar + 0.5 * self.bar_height(rows) + 0.25 * (self.block / (rows + 1))

    def embedding_y(self, row: int, rows: int) -> float:
        """The middle of a bar of the embedding, counted from below."""
        return self.foot + self.scroll_y - self.embedding * (row + 1) / (rows + 1)

    def is_under_names(self, stack: int, position: int) -> bool:
        """Whether a lane was scrolled behind the names of the blocks."""
        return self.lane_x(stack, position) < self.gutter_rect(stack, -1).right()

    def gutter_rect(self, stack: int, block: int) -> QRectF:
        """Where the name of a block stands: at the left of its stack, as much of which is in view."""
        rect = self.block_rect(stack, block)
        left = min(max(rect.left(), 0.0), rect.right() - self.gutter)
        return QRectF(left, rect.top(), self.gutter, rect.height())

    def chip_slot(self, stack: int, position: int) -> QRectF:
        """The room for a lane's chip."""
        x, wide = self.lane_x(stack, position), self.chip_rows * self.pitch
        y = self.foot + 4 + (position % self.chip_rows) * (self.chip_height + _UNDER)
        return QRectF(x - wide / 2 + 1.5, y, wide - 3, self.chip_height)

    def _chip_at(self, stack: int, point: QPointF) -> int:
        """The position of the nearest chip in the row under a point."""
        rows, across = self.chip_rows, (point.x() - self.lane_x(stack, 0)) / self.pitch
        row = min(rows - 1, int((point.y() - self.foot - 4) / (self.chip_height + _UNDER)))
        return rows * round((across - row) / rows) + row

    def bar_height(self, rows: int) -> float:
        return max(2.0, min(0.6 * self.line, 0.44 * self.block / max(rows, 1)))

    def visible(self, stack: int) -> range:
        """The positions whose lanes can be seen."""
        size = self.stacks[stack]
        first = (self.scroll_x - self._left(stack) - self.gutter) / self.pitch
        last = (self.scroll_x + self.width - self._left(stack) - self.gutter) / self.pitch
        return range(max(0, int(first) - 1), min(size.positions, int(max(last, 0.0)) + 2))

    def visible_blocks(self, stack: int) -> range:
        first = (self.base() - self.foot) / self.block
        last = (self.base() - self.header) / self.block
        return range(max(0, int(first)), min(self.stacks[stack].blocks, int(max(last, 0.0)) + 1))

    def place_at(self, point: QPointF) -> Place | None:
        """What is under a point: a crossing, a block's name (position -1) or a chip (block -2)."""
        for stack, size in enumerate(self.stacks):
            whole = self.block_rect(stack, -1)
            if not whole.left() <= point.x() <= whole.right():
                continue
            at_foot = self.foot < point.y() <= self.height  # chips stand under their lanes, bars right of them
            left = self.lane_x(stack, 0) - _LANE * self.pitch
            position = self._chip_at(stack, point) if at_foot else int((point.x() - left) // self.pitch)
            if at_foot:
                shown = 0 <= position < size.positions and not self.is_under_names(stack, position)
                return Place(stack, CHIP, position) if shown else None
            in_gutter = self.gutter_rect(stack, -1).left() <= point.x() < self.gutter_rect(stack, -1).right()
            position = -1 if in_gutter or not 0 <= position < size.positions else position
            if not self.area.contains(point):
                return None
            block = int((self.base() - point.y()) // self.block) if point.y() < self.base() else -1
            return Place(stack, block, position) if block < size.blocks else None
        return None

    def showing(self, place: Place) -> ModelLayout:
        """Scrolled no further than it takes to show a place."""
        x, y = self.scroll_x, self.scroll_y
        if place.position >= 0:
            middle = self.lane_x(place.stack, place.position)
            least, most = self.gutter + 0.5 * self.pitch, self.width - (1 - _LANE + _TAIL) * self.pitch
            x += min(0.0, middle - least) + max(0.0, middle - most)
        if place.block >= -1:
            rect, area = self.block_rect(place.stack, place.block), self.area
            y += max(0.0, area.top() - rect.top()) - max(0.0, rect.bottom() - area.bottom())
        return self.scrolled(x, y)

    def scrolled(self, x: float, y: float) -> ModelLayout:
        return replace(
            self, scroll_x=min(max(x, 0.0), self.most_scroll_x), scroll_y=min(max(y, 0.0), self.most_scroll_y)
        )


CHIP = -2
"""In the place of a block: the chip at the foot of a lane."""


def model_layout(
    stacks: tuple[StackSize, ...],
    width: float,
    height: float,
    line: float,
    gutter: float,
    header: float,
) -> ModelLayout:
    """Lanes as far apart as the width allows, blocks as high as the height allows, but no less than can be read.

    Where lanes fit but for their chips, these stand in two rows.
    """
    lanes = sum(stack.positions + _TAIL for stack in stacks)
    room = width - len(stacks) * gutter - (len(stacks) - 1) * _GAP
    shared = room / max(lanes, 1)
    staggered = _CLOSE_PITCH * line <= shared < _WIDE_PITCH * line
    pitch = shared if staggered else max(_LEAST_PITCH * line, shared)
    shell = ModelLayout(stacks, width, height, line, gutter, header, pitch, line, staggered)
    blocks = max((stack.blocks for stack in stacks), default=1)
    fits = (shell.area.height() - shell.embedding) / max(blocks, 1)
    return replace(shell, block=fits if fits >= _LEAST_BLOCK * line else _FEW_BLOCK * line)
