"""What a head writes into the residual stream, and what that write does to a logit directly.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits": the output of a layer's attention is a sum over
heads, and each head's a sum over keys, w_ij v_j W_O; with the last normalisation's divisor held at its value, a logit
is a sum over these writes too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attention_models.attention.numbers import to_numpy
from attention_models.dataflow.matrices import matrix_of
from attention_models.dataflow.norms import Norm
from attention_models.dataflow.readout import readout_of
from attention_models.files.devices import weight_of
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.values import Site

IN_BETWEEN = (
    "Between the last block and the logits stand layers that are not linear (a pooler, say), so no write adds to a "
    "logit."
)
_ALTERED = (
    "What a layer of this model gives is normalised or scaled before it is added, so its writes are not what is added."
)
_UNREAD = "How a block of this model comes to what it gives was not found, so no write is known to reach a logit."
_RESCALED = "Each block of this model rescales all that was written before, so no write reaches a logit unchanged."


def output_weight(model: Model, trace: Trace, site: Site, head: int) -> Tensor | None:
    """The rows of W_O that belong to `head`: (value_dim, width); None where no matrix reads the joined heads."""
    projection = output_projection(model, trace, site)
    weight = None if projection is None else matrix_of(projection)  # (heads * value_dim, width)
    if weight is None or weight.shape[0] % site.heads:
        return None
    size = weight.shape[0] // site.heads
    return weight[head * size : (head + 1) * size]


def output_projection(model: Model, trace: Trace, site: Site) -> nn.Linear | Conv1D | None:
    """The module that multiplies the joined heads by W_O (and adds its bias, where it has one)."""
    found = None if model.info.textbook else readout_of(model, trace).outputs.get(site.ref)
    return found if isinstance(found, (nn.Linear, Conv1D)) else None


@dataclass(frozen=True, slots=True, eq=False)
class LogitPath:
    """How a logit is read from the stream at a position: stream @ direction + constant, in this run.

    The last normalisation's mean is linear and taken along, its divisor is held at the value of this run; `constant`
    is what its bias and the output head's add.
    """

    direction: Tensor  # (width,) float32
    constant: float


def logit_direction(
    model: Model, trace: Trace, stack: str, position: int, token: int | None
) -> tuple[Tensor | None, str]:
    """The direction (width,) along which the residual stream at `position` moves the logit of `token` (or a class).

    What is written into `stack` there changes the logit directly by `write @ direction`. Where there is none: None and
    the reason, which without a `token` is what stands against any.
    """
    path, why = logit_path(model, trace, stack, position, token)
    return None if path is None or token is None else path.direction, why


def logit_path(
    model: Model, trace: Trace, stack: str, position: int, token: int | None
) -> tuple[LogitPath | None, str]:
    """As `logit_direction`, with what is added; without a `token` that of the first."""
    if not trace.has_logits:
        return None, "This model has no output head: there is no logit that a write could change."
    predicting = model.info.predicting_stack
    if stack not in (predicting, "cross"):
        return None, "What the encoder writes reaches a logit only through the decoder's cross-attention."
    readout, stream = readout_of(model, trace), trace.residual.get(predicting)
    if not readout.known or not stream:
        return None, _UNREAD
    if not readout.adds:
        return None, _RESCALED
    if readout.alters:
        return None, _ALTERED
    chooses = model.info.class_head is not None and model.info.class_head.of == "choice"  # by way of a pooler, all do
    if chooses or not isinstance(readout.head, nn.Linear):
        return None, IN_BETWEEN
    final = stream_after(model, trace, predicting, len(stream) - 2)
    norm, head = readout.norm, readout.head
    here = _vector(final[position])
    said = trace.logits_at([position])[0]  # (vocabulary,) or (classes,)
    logits, tolerance = to_numpy(said), _tolerance(said.dtype)
    factor = _logit_factor(norm, head, here, logits, tolerance, token or 0, _says_classes(model))
    if factor is None:
        return None, _read_elsewhere(model, trace, norm, head, final, logits, tolerance)
    row = _vector(weight_of(head)[token or 0])  # (width,)
    constant = 0.0 if getattr(head, "bias", None) is None else float(weight_of(head, "bias").detach()[token or 0])
    if norm is None:
        return LogitPath(torch.from_numpy((factor * row).astype(np.float32)), constant), ""
    constant += 0.0 if norm.bias is None else factor * float(row @ norm.bias.numpy())
    gained = row if norm.gain is None else row * norm.gain.numpy()
    _, deviation = norm.statistics(here)
    along = gained if norm.rms else gained - gained.mean()
    scaled = factor / math.sqrt(deviation**2 + norm.eps) * along
    return LogitPath(torch.from_numpy(scaled.astype(np.float32)), constant), ""


def stream_after(model: Model, trace: Trace, stack: str, layer: int) -> Tensor:
    """The residual stream after a block, (tokens, width).

    Raises:
        IndexError: this stack has no such block.
    """
    stream = trace.residual[stack]
    after = stream[layer + 1]
    is_last = layer + 2 == len(stream) and stack == model.info.predicting_stack
    if is_last and len(stream) > 1 and readout_of(model, trace).outer:  # kept is what the block gave
        return stream[layer] + after.to(stream[layer].device)
    return after


def _vector(t: Tensor) -> np.ndarray:
    """(width,) float64; the layers of a large model lie on different devices."""
    return to_numpy(t).astype(np.float64)


def _says_classes(model: Model) -> bool:
    return model.info.class_head is not None or model.info.family == "vision"


def _read_elsewhere(
    model: Model, trace: Trace, norm: Norm | None, head: nn.Linear, final: Tensor, logits: np.ndarray, tolerance: float
) -> str:
    """Why a logit is not what the output head makes of the stream at its position."""
    if not _says_classes(model):
        return "This model changes its logits after the output head (by a cap, say), so no write adds to them."
    for place in range(len(trace.tokens)):
        if _logit_factor(norm, head, _vector(final[place]), logits, tolerance, 0, True) is not None:
            return (
                f"The classes are read off at “{trace.tokens[place].word}”, position {place}: what is written "
                "elsewhere reaches them only through the attention of later layers."
            )
    return IN_BETWEEN


def _logit_factor(
    norm: Norm | None,
    head: nn.Linear,
    final: np.ndarray,
    logits: np.ndarray,
    tolerance: float,
    token: int,
    is_classifier: bool,
) -> float | None:
    """What the model multiplies the output head's numbers by (T5: 1/sqrt(width)), found from a few of its logits.

    None where these are no multiple of the head's numbers: then something else comes between.
    """
    weight = weight_of(head)
    if weight.shape[1] != len(final):
        return None
    ids = [token, *range(min(8, len(logits)))]
    read = to_numpy(weight[ids]) @ (final if norm is None else norm.of_vector(final))  # (9,) float64
    added = 0.0 if getattr(head, "bias", None) is None else to_numpy(weight_of(head, "bias"))[ids]
    given = logits[ids]
    largest = float(np.abs(given).max())
    # of a single class any factor would fit
    factors = (1.0,) if is_classifier else (1.0, len(final) ** -0.5, float(read @ given / (read @ read)))
    for factor in factors:
        if np.abs(factor * read + added - given).max() <= tolerance * largest:
            return factor
    return None


def _tolerance(dtype: torch.dtype) -> float:
    """By how much of the largest logit another way to compute them may be off: rounding."""
    return 1e-4 if dtype == torch.float32 else 2e-2
