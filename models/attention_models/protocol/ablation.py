"""Ablation: a part of one block gives nothing, its mean over a few texts, or what it gives at one position."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import MOST, Site, SiteRef

# The parts of each block that can be switched off: see `attention_models.protocol.interventions.Ablation`.


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsRequest(RunRequest):
    """What the blocks of the model of run `run` are made of. Answered by `PartsView`."""

    lane: ClassVar[Lane] = Lane("view:parts")
    activity: ClassVar[str] = "finding the parts of each block"
    answered_by: ClassVar[str] = "attention_models.views.parts:answer"


@dataclass(frozen=True, slots=True)
class Block:
    """One block: `parts` are "attention", "cross", "mlp", "norm1" ... in this order, as many as it has."""

    ref: SiteRef  # stack "encoder" or "decoder"; its layer
    parts: tuple[str, ...]
    why: str = ""  # what could not be found of it, in a sentence
    neurons: int = 0  # of its feed-forward network; 0 where they cannot be told apart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartsView(Result):
    """Every block in the order in which they ran; none of a model in which no list of blocks was found."""

    request: PartsRequest
    blocks: tuple[Block, ...]

    def at(self, ref: SiteRef) -> Block | None:
        """The block of a site: of cross-attention that of the decoder."""
        return next((block for block in self.blocks if block.ref == ref.block), None)


Fill = Literal["zero", "mean", "position"]
"""What stands in the place of what a part gives."""

MOST_NORMS = 9

SUBLAYERS = {"attention": "attention", "cross": "cross-attention", "mlp": "feed-forward network"}
"""What a block adds to the residual stream, by the name of the part, and in words."""

UNITS = {"head": "head", "neuron": "neuron"}
"""What a sublayer has many of, counted from 0."""

LAYER = "layer"
"""All that a block adds."""

_NORM = re.compile(f"norm[1-{MOST_NORMS}]")
_WRITTEN = re.compile(r"(?:(?P<stack>[^.]*)\.)?(?P<layer>\d+)\.(?P<part>[^.:]*?)(?::(?P<fill>.*))?")
_UNIT = re.compile(r"(?P<part>head|neuron)(?P<unit>\d+)")


@dataclass(frozen=True, slots=True)
class Ablation:
    """Switches a part of one block off, or holds it at a value that does not depend on the text.

    Of "attention", "cross" (cross-attention) and "mlp" (the feed-forward network) nothing is added to the residual
    stream, whether it would have been normalised before or after; of a "layer" nothing of all three. Of a "head" the
    output is 0 before it is multiplied by W_O; of a "neuron" the activation is 0 before it is multiplied by the
    network's last matrix. Of "norm1", "norm2", ... the learned gain and bias are left out; what is normalised stays
    normalised. Norms count from 1 in the order in which they run in the block.

    Args:
        part: as above.
        site: the block, as (stack, layer); a number alone, or the stack "", is of the stack that predicts. Of a head
            its attention module, which may be ("cross", layer).
        unit: which head or neuron, from 0.
        fill: what it gives instead: "zero", the "mean" over the positions of a few texts of ours
            (`attention_models.forward.ablation`), or at every "position" what it gives at one of this text.
        position: which, from 0, of the stack's tokens.
        on: True leaves the part as it is.

    Raises:
        ValueError: no such part, a stack that has no blocks, or a unit, fill or position that does not go with it.
    """

    part: str
    site: SiteRef
    unit: int | None = None
    fill: Fill = "zero"
    position: int | None = None
    on: bool = False

    def __post_init__(self) -> None:
        parts = (*SUBLAYERS, *UNITS, LAYER)
        if self.part not in parts and not _NORM.fullmatch(self.part):
            raise ValueError(
                f"A block has no part “{self.part}” that could be switched off: "
                f"choose {', '.join(parts)}, or norm1 to norm{MOST_NORMS}."
            )
        site: Any = self.site
        if isinstance(site, Site):
            site = site.ref
        elif isinstance(site, int):
            site = SiteRef("", site)
        elif isinstance(site, (tuple, list)):
            site = SiteRef(*site)
        stacks = ("", "decoder", "encoder", *(("cross",) if self.part == "head" else ()))
        if site.stack not in stacks:
            raise ValueError(
                f"“{site.stack}” is no stack of blocks: choose decoder or encoder. "
                "Cross-attention is a part, “cross”, of the decoder's blocks."
            )
        if not 0 <= site.layer < MOST:
            raise ValueError(f"There is no block {site.layer}: they count from 0.")
        object.__setattr__(self, "site", site)
        self._check_unit()
        self._check_fill()

    def _check_unit(self) -> None:
        if self.part in UNITS:
            if self.unit is None or not 0 <= self.unit < MOST:
                given = "" if self.unit is None else f": not {self.unit}"
                raise ValueError(f"Say which {self.part}, counted from 0, as in {self.part}3{given}.")
        elif self.unit is not None:
            raise ValueError(f"A {part_name(self.part)} is one part of a block: it has no number {self.unit}.")

    def _check_fill(self) -> None:
        if self.fill not in get_args(Fill):
            raise ValueError(f"A part is held at zero, mean or position, not at “{self.fill}”.")
        if self.norm is not None and self.fill != "zero":
            raise ValueError("Of a norm the gain is left out; it is held at nothing else.")
        if self.fill == "position":
            if self.position is None or not 0 <= self.position < MOST:
                given = "" if self.position is None else f": not {self.position}"
                raise ValueError(f"Say at which position, counted from 0{given}.")
        elif self.position is not None:
            raise ValueError(f"A position goes with the fill “position”, not with “{self.fill}”.")

    @property
    def norm(self) -> int | None:
        """Which norm of the block, counted from 1; None where it is no norm."""
        return int(self.part.removeprefix("norm")) if _NORM.fullmatch(self.part) else None

    def of_stack(self, predicting: str) -> Ablation:
        """With its stack named, in a model whose stack that predicts is called `predicting`."""
        return self if self.site.stack else replace(self, site=SiteRef(predicting, self.site.layer))


def describe_ablation(skip: Ablation) -> str:
    """ "feed-forward network off, decoder layer 5", "head 3 held at its mean, decoder layer 5"."""
    what = part_name(skip.part, skip.unit)
    if skip.norm is not None:
        what = f"gain of {what}"
    done = {"zero": "off", "mean": "held at its mean", "position": f"held at position {skip.position}"}[skip.fill]
    return f"{what} {'on' if skip.on else done}, {f'{skip.site.stack} layer {skip.site.layer}'.strip()}"


def part_name(part: str, unit: int | None = None) -> str:
    """A part of a block in words: "feed-forward network", "norm 1", "head 3"."""
    if part in UNITS:
        return part if unit is None else f"{part} {unit}"
    return SUBLAYERS.get(part) or ("whole layer" if part == LAYER else f"norm {part.removeprefix('norm')}")


def parse_skip(text: str) -> Ablation:
    """A part of a block as written on the command line: "5.mlp", "encoder.2.attention", "5.norm1", "5.head3",
    "5.neuron17", "5.layer"; held at its mean, "5.head3:mean", or at position 0, "5.mlp:0".

    Raises:
        ValueError: not of that form, or no such part.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"“{text}” names no part of a block: write the layer and the part, as in 5.mlp, 5.attention, "
            "5.head3, encoder.2.mlp or 5.norm1."
        )
    part, unit = found["part"], None
    if counted := _UNIT.fullmatch(part):
        part, unit = counted["part"], int(counted["unit"])
    fill, position = _fill(text, found["fill"])
    return Ablation(part, SiteRef(found["stack"] or "", int(found["layer"])), unit, fill, position)


def _fill(text: str, written: str | None) -> tuple[Fill, int | None]:
    if written is None:
        return "zero", None
    if written in ("zero", "mean"):
        return written, None  # type: ignore[return-value]
    if not written.isdecimal():
        raise ValueError(f"“{text}”: after the colon stands mean, zero, or the number of a position, as in 5.mlp:0.")
    return "position", int(written)


def skips_head(skip: Ablation, site: SiteRef, head: int) -> bool:
    """Whether it replaces the output of one head at `site`, by itself or with all of the sublayer or layer.

    Its stack is named (`Ablation.of_stack`).
    """
    if skip.on:
        return False
    if skip.part == "head":
        return (skip.site, skip.unit) == (site, head)
    return skip.site == site.block and skip.part in (LAYER, "cross" if site.stack == "cross" else "attention")


def head_skip(interventions: Iterable[Any], site: SiteRef, head: int, predicting: str) -> Ablation | None:
    """What replaces the output of one head; None where nothing does. `predicting` as in `Ablation.of_stack`."""
    skips = (item.of_stack(predicting) for item in interventions if isinstance(item, Ablation))
    return next((skip for skip in skips if skips_head(skip, site, head)), None)
