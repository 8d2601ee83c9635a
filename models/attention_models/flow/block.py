"""One block at one position, box by box: rows of what its modules gave when it ran again."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attention_models.attention.numbers import copied, to_numpy
from attention_models.flow.block_rerun import BlockRerun, block_of
from attention_models.flow.box_specs import Drafting
from attention_models.flow.boxes import Position, box_of
from attention_models.flow.targets import target_of
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.flow import STREAM, BlockRequest, BlockView, Box, SumBox


def answer(request: BlockRequest, context: Context) -> BlockView:
    """Raises IndexError where the run has no such block or position."""
    run = context.run(request.run)
    return block_view(request, run, block_of(run, request.stack, request.layer, context))


@torch.no_grad()
def block_view(request: BlockRequest, run: CurrentRun, block: BlockRerun) -> BlockView:
    position = request.position
    if not 0 <= position < len(block.before):
        raise IndexError(f"There is no position {position}: this stack has {len(block.before)} tokens.")
    with run.model.adapter_as(run.trace.interventions):
        target = target_of(run, block, position, request.target)
        if block.drafts is None:
            block.drafts = Drafting(block.reader, block.anatomy).made()
        here = Position(run, block, position, target)
        boxes = [box_of(draft, here) for draft in block.drafts]
    before, after = block.before[position].float(), block.after[position].float()
    return BlockView(
        request=request,
        module=block.call.name,
        placement=block.anatomy.placement,
        parallel=block.anatomy.parallel,
        before=copied(before),
        after=copied(after),
        boxes=tuple(boxes),
        remainder=_remainder(before, boxes, after),
        candidates=target.candidates,
        target=target.id,
        target_label=target.label,
        effect_note=target.note,
    )


def _remainder(before: Tensor, boxes: list[Box], after: Tensor) -> float:
    """How far the sums are from what they are sums of, and the last box from the stream as it leaves: rounding."""
    off = float(np.linalg.norm(to_numpy(after) - boxes[-1].after)) if len(boxes[-1].after) else 0.0
    for box in boxes:
        if isinstance(box, SumBox) and len(box.after):
            read = [to_numpy(before) if place == STREAM else boxes[place].after for place in box.reads]
            factors = box.factors or (1.0,) * len(read)
            left = box.after.astype(np.float64)
            for factor, vector in zip(factors, read, strict=True):
                left -= factor * vector if len(vector) else 0.0
            off += float(np.linalg.norm(left))
    return off
