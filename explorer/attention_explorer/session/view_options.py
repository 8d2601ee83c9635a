"""How things are drawn, as a person chose it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from attention_explorer.look.theme import SEQUENTIAL_MAPS
from attention_models.protocol.information import Unit
from attention_models.protocol.values import Pooling

Normalisation = Literal["none", "row", "column", "difference", "raw", "scaled", "masked"]
"""What the colours of a head's map show: its weights, each row or column by its largest, what interventions changed,
or the scores that the weights were made of: q . k, scaled, and scaled with the mask."""

SCORES: tuple[Normalisation, ...] = ("raw", "scaled", "masked")

Block = Literal["all", "aa", "ab", "ba", "bb"]
"""Which part of a map of two texts is shown: "ab" is from the first text to the second."""

Distance = Literal["model", "block", "attention"]
"""How near the picture of the model is: all of it, one block box by box, its attention as matrices."""

MOST_CANDIDATES = 100
"""Candidates that the next-token bars can list."""


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How things are drawn, and how much of what was written is; never what is computed of it."""

    normalisation: Normalisation = "none"
    colour_map: str = "viridis"
    mean_column: bool = False  # the mean over heads beside each layer's heads
    dim_special: bool = True
    words: bool = False  # weights between words, not pieces, in texts whose heads are held whole
    pooling: Pooling = "max"
    block: Block = "all"  # of a head's map where two texts were read together
    top: int = 10  # candidates listed in the next-token bars
    edit_scope: Literal["head", "layer", "everywhere"] = "head"  # where a mask or scale that is set now applies
    painting: Literal["off", "block", "allow", "ask"] = "off"  # what a drag over the head map does to cells
    distance: Distance = "model"  # of the picture of the model
    unit: Unit = "bits"  # of every entropy, loss and log-probability
    follow: bool = True  # every panel shows what Decode has written along with the text
    reduce_motion: bool = False  # nothing moves by itself: what is played jumps

    @property
    def lasting(self) -> ViewOptions:
        """Those that hold at the next start: how a person likes it, without what they were doing."""
        scaling = "none" if self.normalisation in ("difference", *SCORES) else self.normalisation
        return replace(self, normalisation=scaling, block="all", edit_scope="head", painting="off", distance="model")

    def __post_init__(self) -> None:
        """Raise ValueError for an option that there is not."""
        if self.colour_map not in SEQUENTIAL_MAPS:
            raise ValueError(f"there is no colour map “{self.colour_map}”")
        if not 1 <= self.top <= MOST_CANDIDATES:
            raise ValueError(f"{self.top} candidates cannot be listed, only 1 to {MOST_CANDIDATES}")
