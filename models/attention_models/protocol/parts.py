"""The parts of each block that can be switched off: see `attention_models.protocol.interventions.Ablation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import SiteRef


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
