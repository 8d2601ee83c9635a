"""OV copying: whether what a head writes when it attends to a token makes that token likelier.

Elhage et al. 2021, "Copying behavior": the matrix W_E W_V W_O W_U leads from the token attended to, to the logits. It
is (vocabulary, vocabulary) of rank head_dim at most, and its eigenvalues say whether tokens raise their own logits:
the score is sum(eigenvalues) / sum(|eigenvalues|), 1 where all are positive, -1 where all are negative. They are those
of the (head_dim, head_dim) matrix W_O (W_U W_E) W_V, so that nothing large is made.

Of the normalisations before W_V and before W_U what is linear is part of these matrices, the gain and the mean that is
taken away; their divisors, which are positive and depend on the text, are left out. Logits are taken less their mean
over the vocabulary, on which no probability depends. TransformerLens' defaults give the same numbers (`fold_ln`,
`center_writing_weights`, `center_unembed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.dataflow.norms import Norm
from attention_models.dataflow.readout import readout_of
from attention_models.files.devices import weight_of
from attention_models.forward.capture import Recorder, recording
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.request import Cancelled, ShouldStop, never
from attention_models.protocol.values import Site
from attention_models.views.residual import output_weight

UNFOUND = "The matrices of its values, its outputs or its vocabulary were not found in this model."
_ROWS = 1 << 14  # of the vocabulary that are multiplied at once


@torch.no_grad()
def copying_scores(model: Model, trace: Trace, should_stop: ShouldStop = never) -> np.ndarray | None:
    """(sites, heads) float64 of a causal model, NaN of a site whose matrices are not found; None where none is.

    `trace` is a run of `model`.
    """
    embedding = getattr(model.module, "get_input_embeddings", lambda: None)()
    head = model.output_head
    if not isinstance(embedding, nn.Embedding) or head is None:
        return None
    read, said = weight_of(embedding), weight_of(head)  # (vocabulary, width) each
    mapped = getattr(model.config, "positions", "") == "concatenated"  # embeddings enter the stream through a matrix
    if read.shape[1] != said.shape[1] or mapped or model.info.weights_only:
        return None
    values = value_weights(model, trace.sites, read.shape[1], should_stop)
    if not values:
        return None
    both = torch.zeros(read.shape[1], read.shape[1], dtype=torch.float64)  # W_U W_E, (width, width)
    shared = min(len(read), len(said))
    mean = torch.zeros(read.shape[1], dtype=torch.float64)  # of what is said of each token, (width,)
    for start in range(0, len(said), _ROWS):
        if should_stop():
            raise Cancelled
        mean += said[start : start + _ROWS].float().sum(dim=0).double().cpu() / len(said)
    for start in range(0, shared, _ROWS):
        if should_stop():
            raise Cancelled
        part = slice(start, min(start + _ROWS, shared))
        both += (said[part].float().mT @ read[part].float()).double().cpu()
        both -= torch.outer(mean, read[part].float().sum(dim=0).double().cpu())
    readout = readout_of(model, trace)
    both = folded(readout.norm, both)
    scores = np.full((len(trace.sites), max(site.heads for site in trace.sites)), np.nan)
    for i, site in enumerate(trace.sites):
        w_v = values.get(i)
        if w_v is not None:
            w_v = folded(readout.before.get(site.ref, (None, None))[0], w_v)
        for h in range(site.heads if w_v is not None else 0):
            if should_stop():
                raise Cancelled
            w_o = output_weight(model, trace, site, h)
            if w_o is not None and w_v is not None:
                mine = w_v[h // (site.heads // len(w_v))]  # (width, value_dim)
                scores[i, h] = copying_score(w_o.double().cpu() @ both @ mine)
    return None if np.isnan(scores).all() else scores


def folded(norm: Norm | None, matrix: Tensor) -> Tensor:
    """A matrix (..., width, columns) that reads what a normalisation gives, as one that reads what that is given.

    Its gain and, of a layer norm, the mean that it takes away are folded in; its divisor and its bias are not.
    """
    if norm is None:
        return matrix
    if norm.gain is not None:
        matrix = norm.gain[:, None] * matrix
    return matrix if norm.rms else matrix - matrix.mean(dim=-2, keepdim=True)


def copying_score(matrix: Tensor) -> float:
    """Sum of the eigenvalues of a square matrix over the sum of their sizes; NaN of one that is 0."""
    eigenvalues = torch.linalg.eigvals(matrix.double())
    sizes = float(eigenvalues.abs().sum())
    return float(eigenvalues.real.sum()) / sizes if sizes else float("nan")


@torch.no_grad()
def value_weights(
    model: Model, sites: Sequence[Site], width: int, should_stop: ShouldStop = never
) -> dict[int, Tensor]:
    """W_V of each key head, by the place of the site: (key heads, width, value_dim) float64.

    They are read off the model itself, whatever its modules are called: in one pass the input of every attention module
    is replaced by the unit vectors, so that its values are the rows of W_V, and its bias.
    """
    rows = width + 2  # the unit vectors, 0, and one that shows whether values are linear in what is read
    tokens = min(rows, model.info.context or rows)
    texts = -(-rows // tokens)
    basis = torch.zeros(texts * tokens, width, device=model.device, dtype=model.dtype)
    basis[:width] = torch.eye(width, device=model.device, dtype=model.dtype)
    other = torch.linspace(-1, 1, width, device=model.device, dtype=model.dtype)
    basis[width + 1] = other
    basis = basis.view(texts, tokens, width)
    names = {site.module for site in sites if site.module}
    modules = [module for module, name in model.module_names.items() if name in names]
    replaced = set[str]()
    handles = [
        module.register_forward_pre_hook(_in_place(basis, replaced, model.module_names[module]), with_kwargs=True)
        for module in modules
    ]
    recorder = Recorder(model.module_names, model.seq2seq, should_stop)
    ids = torch.zeros(texts, tokens, dtype=torch.long, device=model.device)
    few: dict[str, Any] = {"logits_to_keep": 1} if model.accepts("logits_to_keep") else {}
    try:
        with recording(recorder):
            model.forward({"input_ids": ids, **few})
    finally:
        for handle in handles:
            handle.remove()
    found: dict[int, Tensor] = {}
    for x, ran in zip(recorder.inputs, recorder.sites, strict=True):
        place = next((i for i, site in enumerate(sites) if site.ref == ran.ref), None)
        given = x.value.transpose(0, 1).flatten(1, 2)  # (key heads, texts * tokens, value_dim)
        if place is not None and ran.module in replaced and given.shape[1] >= rows:
            given = given.double().cpu()
            weight = given[:, :width] - given[:, width : width + 1]
            shown = given[:, width + 1] - given[:, width]
            if torch.allclose(other.double().cpu() @ weight, shown, atol=1e-3 * float(shown.abs().max())):
                found[place] = weight
    return found


def _in_place(basis: Tensor, replaced: set[str], name: str) -> Any:
    """A hook that gives a module the basis in the place of what it was to read, and notes that it did."""

    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = args[0] if args else kwargs.get("hidden_states")
        if not isinstance(given, Tensor) or given.shape != basis.shape:
            return None
        replaced.add(name)
        return ((basis.to(given), *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": basis.to(given)})

    return hook
