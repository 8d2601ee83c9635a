"""The papers' formulas once more, in float64 NumPy and apart from the modules: what a run is held against.

It begins at the run's hidden states, so it vouches for scores, windows, weights, contexts and logits:

    e_ij  Bahdanau et al. 2015, appendix A.1.2; Luong et al. 2015, equations 7 to 10
    a_ij = exp(e_ij) / sum_k exp(e_ik),  c_i = sum_j a_ij h_j,  logits = W_o tanh(W_c [..] + b_c) + b_o
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.trace import Trace
from attention_models.textbook.config import RecurrentConfig
from attention_models.trust.check import Comparison

Array = NDArray[np.float64]
Weights = dict[str, Array]


def compare_with_formulas(model: RecurrentModel, trace: Trace) -> Comparison:
    """How far the weights and logits of `trace` are from the formulas."""
    run, config = model.read_again(trace), model.module.config
    named = {name: t.cpu().double().numpy() for name, t in model.module.state_dict().items()}
    encoded, looking, states = (
        t[0].cpu().double().numpy() for t in (run.encoded, run.looking, run.states)
    )  # (source, encoded), (steps, hidden), (steps, hidden)
    source, target = ([token.id for token in side] for side in (trace.source, trace.tokens))
    weight_difference = 0.0
    if config.score == "none":
        first = run.first[0].cpu().double().numpy()
        contexts = np.tile(np.pad(first, (0, config.encoded - config.hidden)), (len(target), 1))
    else:
        weights = alignment(config, named, looking, encoded, np.array(source) == config.pad)
        contexts = weights @ encoded
        weight_difference = float(np.abs(weights - trace.weights(trace.sites[0], 0)).max())
    words = named["target_embedding.weight"][target]
    joined = [contexts, states] if config.is_luong else [states, contexts, words]
    mixed = np.tanh(np.concatenate(joined, axis=1) @ named["combine.weight"].T + named["combine.bias"])
    logits = mixed @ named["output.weight"].T + named["output.bias"]  # (steps, target vocabulary)
    assert trace.output_logits is not None
    difference = np.abs(logits - trace.output_logits.cpu().double().numpy()).max()
    return Comparison(
        logit_difference=float(difference / max(1.0, np.abs(logits).max())),
        weight_difference=weight_difference,
    )


def alignment(
    config: RecurrentConfig, named: Weights, looking: Array, encoded: Array, padding: NDArray[np.bool_]
) -> Array:
    """The weights a_ij, (steps, source), of decoder states (steps, hidden) over encoder states (source, encoded)."""
    e = scores(config.score, named, looking, encoded)
    masked = np.broadcast_to(padding, e.shape)
    if config.scope != "global":
        length = int((~padding).sum())
        distance = np.arange(len(encoded)) - places(config, named, looking, length)[:, None]  # (steps, source)
        masked = masked | (np.abs(distance) > config.window)
        if config.scope == "predictive":
            e = e - distance**2 / (2 * (config.window / 2) ** 2)
    e = np.where(masked, -np.inf, e)
    numerators = np.exp(e - e.max(axis=1, keepdims=True))
    weights: Array = numerators / numerators.sum(axis=1, keepdims=True)
    return weights


def scores(kind: str, named: Weights, looking: Array, encoded: Array) -> Array:
    """e_ij before any window, (steps, source)."""
    if kind in ("dot", "general"):
        narrow = named.get("score.narrow.weight")
        e: Array = looking @ (encoded if narrow is None else encoded @ narrow.T).T
        return e
    ws, uh = looking @ named["score.w.weight"].T, encoded @ named["score.u.weight"].T
    additive: Array = np.tanh(ws[:, None] + uh[None]) @ named["score.v.weight"][0]
    return additive


def places(config: RecurrentConfig, named: Weights, looking: Array, length: int) -> Array:
    """The source place that local attention looks around at each step, (steps,)."""
    if config.scope == "monotonic":
        return np.minimum(np.arange(len(looking)), length - 1).astype(np.float64)
    x = np.tanh(looking @ named["place.w.weight"].T) @ named["place.v.weight"][0]
    p: Array = (length - 1) / (1 + np.exp(-x))
    return p
