"""A run of ours beside what transformers' own eager forward gives for the same checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from attention_models import run
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.values import SiteRef
from tests.models import tiny

TARGET = "La casa tiene tres puertas"


def target_for(model: Model) -> str | None:
    return TARGET if model.seq2seq else None


def attentions(out: Any, model: Model) -> dict[SiteRef, np.ndarray]:
    """transformers' weights, (heads, queries, keys), by site."""
    if model.seq2seq:
        stacks = {
            "encoder": out.encoder_attentions,
            "decoder": out.decoder_attentions,
            "cross": out.cross_attentions,
        }
    else:
        stacks = {model.info.stacks[0].stack: out.attentions}
    return {
        SiteRef(stack, layer): weights[0].numpy()
        for stack, layers in stacks.items()
        for layer, weights in enumerate(layers)
    }


def logits_of(out: Any) -> torch.Tensor:
    """transformers' logits of words, or of a classifier: of a discriminator (batch, tokens, 1)."""
    logits: torch.Tensor = out.prediction_logits if hasattr(out, "prediction_logits") else out.logits
    return logits[..., None] if type(out).__name__ == "ElectraForPreTrainingOutput" else logits


def hidden_states(out: Any, model: Model) -> dict[str, tuple[torch.Tensor, ...]]:
    """transformers' embedding and the stream after each block, (tokens, width), by stack."""
    if model.seq2seq:
        stacks = {"encoder": out.encoder_hidden_states, "decoder": out.decoder_hidden_states}
    else:
        stacks = {model.info.stacks[0].stack: out.hidden_states}
    return {stack: tuple(state[0] for state in states) for stack, states in stacks.items()}


def assert_same_as_eager(model: Model, text: str, tolerance: float = 1e-6) -> Trace:
    trace = run(model, text, target=target_for(model))
    out = tiny.eager_run(model, text, target_for(model))
    theirs = attentions(out, model)
    assert {site.ref for site in trace.sites} == set(theirs)
    for site in trace.sites:
        assert theirs[site.ref].shape == (site.heads, site.queries, site.keys)
        for head in range(site.heads):
            ours = trace.weights(site, head)
            np.testing.assert_allclose(ours, theirs[site.ref][head], atol=tolerance)
            masked = trace.masked(site, head)
            if masked is not None:
                assert (ours[masked] == 0).all()
    for stack, states in hidden_states(out, model).items():
        stream = trace.residual[stack]
        assert len(stream) == len(states)
        # the last one of transformers is behind the final norm, where there is one
        for ours_state, state in zip(stream[:-1], states[:-1], strict=True):
            torch.testing.assert_close(ours_state, state, atol=1e-4, rtol=1e-5)
    if trace.output_logits is not None:
        # what a classifier says of a text stands at every token
        theirs_logits = np.broadcast_to(logits_of(out)[0].numpy(), trace.logits.shape)
        np.testing.assert_allclose(trace.logits, theirs_logits, atol=1e-5, rtol=1e-5)
    return trace
