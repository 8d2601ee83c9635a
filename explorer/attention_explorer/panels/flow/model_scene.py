"""What the picture of the whole model shows: the stacks with their tokens, what the model says, what is selected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PySide6.QtGui import QImage

from attention_explorer.panels.flow.norm_scale import NormScale, norm_scale
from attention_models.protocol.flow import BlockFlow, StackFlow, Written


@dataclass(frozen=True, slots=True, eq=False)
class LaneLabel:
    """What stands at the foot of a lane: a token's word, or a patch of a picture."""

    word: str
    tooltip: str = ""
    special: bool = False
    patch: QImage | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StackScene:
    """One stack. There is a label for every position."""

    flow: StackFlow
    labels: tuple[LaneLabel, ...]
    title: str = ""  # "encoder" where there are two


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One thing that the model may say. `share` is between 0 and 1, and so is `before`, of the model as it is."""

    label: str
    share: float
    text: str
    before: float | None = None
    tooltip: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class OutputGroup:
    """What the model says at one position of one stack, or (position -1) of the whole input."""

    heading: str
    rows: tuple[OutputRow, ...]
    stack: int
    position: int = -1
    vector: np.ndarray | None = None  # in the place of rows: the text's vector


class Place(NamedTuple):
    """A block (-1: the embedding) at a position (-1: all of them), of a stack by its place in the scene."""

    stack: int
    block: int
    position: int


NOWHERE = Place(-1, -1, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """Where the selected head attends to from the selected position. `weights` are (keys,)."""

    weights: np.ndarray
    keys: int  # the stack that holds the keys


@dataclass(frozen=True, slots=True)
class Marks:
    """What is selected and pointed at; all of it follows the session."""

    selected: Place = NOWHERE
    key: tuple[int, int] = (-1, -1)  # stack and position
    hovered: tuple[int, int] = (-1, -1)  # stack and position
    playing: Place | None = None  # where Play is


@dataclass(frozen=True, slots=True, eq=False)
class ModelScene:
    stacks: tuple[StackScene, ...] = ()

    def blocks(self) -> Iterator[BlockFlow]:
        return (block for stack in self.stacks for block in stack.flow.blocks)

    def parts(self) -> tuple[str, ...]:
        """The kinds of sublayers that there are, in the order of the legend."""
        there = {written.part for block in self.blocks() for written in block.written}
        return tuple(part for part in ("attention", "cross", "feed_forward", "other") if part in there)


class Scales(NamedTuple):
    """Of what is written (all bars of a picture) and of the streams (all lanes)."""

    writes: NormScale
    streams: NormScale


def scales_of(scene: ModelScene) -> Scales:
    written: list[Written] = [each for block in scene.blocks() for each in block.written]
    written += [each for stack in scene.stacks for each in stack.flow.embedding]
    streams = [block.norms for block in scene.blocks()] + [stack.flow.norms for stack in scene.stacks]
    return Scales(norm_scale(each.norms for each in written), norm_scale(streams))
