"""What can be switched off in each block of the open model."""

from __future__ import annotations

from attention_models.forward.batches import encode
from attention_models.forward.context import Context
from attention_models.forward.sublayers import sublayers_of
from attention_models.protocol.ablation import Block, PartsRequest, PartsView


def answer(request: PartsRequest, context: Context) -> PartsView:
    run = context.run(request.run)
    if run.model.info.textbook:
        return PartsView(request=request, blocks=())
    inputs = encode(run.model, run.text, run.written).inputs
    blocks = sublayers_of(run.model, inputs)
    return PartsView(
        request=request,
        blocks=tuple(Block(ref, found.names, found.why, found.neuron_count) for ref, found in blocks.items()),
    )
