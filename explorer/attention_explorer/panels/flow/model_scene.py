"""A recurrent model unrolled in time: where its states stand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PySide6.QtGui import QImage

from attention_models.protocol.flow import BlockFlow, RecurrentFlow, StackFlow, Written

# What the picture of the whole model shows: the stacks with their tokens, what the model says, what is selected.


# How long a norm is drawn: one scale for all bars of a picture, and one for all lanes.


_OUTLIER = 6.0
"""Times the upper quartile: a longer norm is drawn cut off. That of the first token is 50 times in many models."""


@dataclass(frozen=True, slots=True)
class NormScale:
    """Lengths in proportion to norms, up to `longest`. What is beyond it is drawn as long, with a mark that says so."""

    longest: float = 1.0
    cuts: bool = False  # whether there is something beyond

    def share(self, norm: float) -> float:
        """Of the room there is, 0 to 1."""
        return min(1.0, max(0.0, norm / self.longest))

    def is_beyond(self, norm: float) -> bool:
        return self.cuts and norm > self.longest * (1 + 1e-6)


def norm_scale(norms: Iterable[np.ndarray]) -> NormScale:
    """A scale on which most of `norms` can be told apart: in proportion to the largest that is no outlier."""
    every = np.concatenate([np.zeros(0), *(np.asarray(each, np.float64).ravel() for each in norms)])
    every = every[np.isfinite(every) & (every > 0)]
    if not len(every):
        return NormScale()
    bound = _OUTLIER * float(np.quantile(every, 0.75))
    return NormScale(float(every[every <= bound].max()), cuts=bool((every > bound).any()))


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


@dataclass(frozen=True, slots=True, eq=False)
class RecurrentScene:
    """The words that are read and written, the norms of the states, and where each step looks."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    flow: RecurrentFlow
    weights: np.ndarray | None = None  # (source,) of the selected step

    @property
    def steps(self) -> int:
        """How many steps there are: first the source is read, then the target is written."""
        return len(self.source) + len(self.target)

    def largest(self) -> float:
        """The largest norm of a state."""
        states = [*self.flow.encoder, self.flow.decoder]
        return max((float(np.max(each, initial=0.0)) for each in states), default=0.0) or 1.0
