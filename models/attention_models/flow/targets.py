"""What the model says at a position, and which way in the residual stream leads to the logit of one of its answers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attention_models.flow.block_rerun import BlockRerun
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.values import Candidate
from attention_models.views.candidates import label_of, likeliest
from attention_models.views.residual import logit_direction


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    candidates: tuple[Candidate, ...]
    id: int | None
    label: str
    direction: Tensor | None  # (width,) float32
    note: str


def target_of(run: CurrentRun, block: BlockRerun, position: int, chosen: int | None) -> Target:
    """The answer `chosen`, or the likeliest one."""
    model, trace = run.model, run.trace
    candidates = likeliest(model, trace, block.stack, position)
    id_ = chosen if chosen is not None else candidates[0].id if candidates else None
    direction, note = logit_direction(model, trace, block.stack, position, id_)
    return Target(candidates, id_, label_of(model, trace, id_), direction, note)
