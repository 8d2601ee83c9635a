"""A recurrent model in time: the state after each token read, the bottleneck or the contexts, each token written."""

from __future__ import annotations

import torch

from attention_models.attention.numbers import copied
from attention_models.flow.layout import norms
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.trace import Trace
from attention_models.protocol.flow import RecurrentFlow

NO_BLOCKS = "A recurrent model has no blocks: its states follow one another in time."


@torch.no_grad()
def unrolled(model: RecurrentModel, trace: Trace) -> RecurrentFlow:
    """The lengths of its states, by place in the text. A backward direction ends at the first token."""
    run, config = model.read_again(trace), model.module.config
    attends = bool(trace.sites)
    return RecurrentFlow(
        encoder=tuple(copied(norms(direction)) for direction in run.encoded[0].split(config.hidden, dim=-1)),
        decoder=copied(norms(run.states[0])),
        contexts=copied(norms(run.contexts[0])) if attends else None,
        bottleneck=None if attends else copied(run.first[0]),
    )
