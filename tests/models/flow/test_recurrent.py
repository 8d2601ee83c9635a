"""Recurrent models in time: against torch's own modules, run by hand over the same tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_models import open_checkpoint
from attention_models.flow.block import answer as block_answer
from attention_models.flow.model import answer
from attention_models.protocol.errors import InputError
from attention_models.protocol.flow import FlowRequest
from attention_models.textbook.recurrent import RecurrentSeq2Seq
from tests.models.flow.blocks import context_of, request

SENTENCE = "Good morning, how are you?"


@pytest.mark.parametrize("name", ["recurrent-en-es-bahdanau", "recurrent-en-es-bottleneck", "dates-luong"])
def test_states_are_those_of_the_cells(name):
    model = open_checkpoint(name)
    context = context_of(model, SENTENCE if "en-es" in name else "12 May 1990")
    trace, module = context.run(1).trace, model.module
    assert isinstance(module, RecurrentSeq2Seq)
    view = answer(FlowRequest(run=1), context)
    assert view.stacks == ()
    flow = view.recurrent
    assert flow is not None
    source = torch.tensor([[token.id for token in trace.source]])
    with torch.no_grad():
        states, _ = module.encoder(module.source_embedding(source))
    hidden = module.config.hidden
    for direction, norms in enumerate(flow.encoder):
        part = states[0, :, direction * hidden : (direction + 1) * hidden]
        np.testing.assert_allclose(norms, part.norm(dim=-1).numpy(), rtol=1e-5)
    assert len(flow.encoder) == (2 if module.config.bidirectional else 1)
    assert len(flow.decoder) == len(trace.tokens)
    if name.endswith("bottleneck"):
        last = states[0, -1, :hidden]
        if module.config.bidirectional:
            last = torch.cat([last, states[0, 0, hidden:]])
        with torch.no_grad():
            first = torch.tanh(module.bridge(last))
        assert flow.bottleneck is not None
        np.testing.assert_allclose(flow.bottleneck, first.numpy(), rtol=1e-5, atol=1e-6)
        assert flow.contexts is None
    else:
        assert flow.bottleneck is None
        weights = trace.weights(0, 0).astype(np.float64)
        assert flow.contexts is not None
        np.testing.assert_allclose(
            flow.contexts, np.linalg.norm(weights @ states[0].double().numpy(), axis=1), rtol=1e-4
        )


def test_there_is_no_block_to_look_into():
    context = context_of(open_checkpoint("dates-bottleneck"), "12 May 1990")
    with pytest.raises(InputError, match="no blocks"):
        block_answer(request("decoder", 0, 0), context)
