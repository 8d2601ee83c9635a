"""What a head writes into the residual stream, and what that write does to a logit directly.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits": the output of a layer's attention is a sum over
heads, and each head's a sum over keys, w_ij v_j W_O; with the last normalisation's divisor held at its value, a logit
is a sum over these writes too.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from models.model import Model
from models.requests import Site
from models.trace import Trace

# where a family keeps W_O: inside its attention module, or beside it (BERT and its kin)
_INSIDE = ("c_proj", "o_proj", "out_proj", "out_lin", "dense", "o")
_BESIDE = ("output.dense",)
_LAST_NORMS = ("ln_f", "final_layer_norm", "final_layernorm", "norm", "final_norm")


def output_weight(model: Model, site: Site, head: int) -> Tensor | None:
    """The rows of W_O that belong to `head`: (value_dim, width); None where no projection of fitting shape is found."""
    projection = _projection(model, site)
    if projection is None:
        return None
    weight = projection.weight if isinstance(projection, Conv1D) else projection.weight.mT
    assert isinstance(weight, Tensor)  # (heads * value_dim, width)
    if weight.shape[0] % site.heads:
        return None
    size = weight.shape[0] // site.heads
    return weight[head * size : (head + 1) * size]


def _projection(model: Model, site: Site) -> nn.Linear | Conv1D | None:
    by_name = {name: module for module, name in model.module_names.items()}
    parent = site.module.rpartition(".")[0]
    for name in (*(f"{site.module}.{end}" for end in _INSIDE), *(f"{parent}.{end}" for end in _BESIDE)):
        module = by_name.get(name)
        if isinstance(module, (nn.Linear, Conv1D)):
            return module
    return None


def last_norm(model: Model) -> nn.Module | None:
    """The normalisation between the last block and the output head, in models whose blocks only add to the stream.

    None for the others: where each block ends in a normalisation of its own (the post-norm of 2017 and BERT, the
    sandwich of Gemma 2), no write reaches the logits by addition alone.
    """
    blocks = [name for module, name in model.module_names.items() if isinstance(module, nn.ModuleList)]
    if any("post_feedforward_layernorm" in name for name in model.module_names.values()):
        return None
    for module, name in model.module_names.items():
        inside = any(name.startswith(block + ".") for block in blocks)
        is_norm = isinstance(module, nn.LayerNorm) or type(module).__name__.endswith("RMSNorm")
        if not inside and is_norm and name.rpartition(".")[2] in _LAST_NORMS and "encoder" not in name.split("."):
            return module
    return None


def direct_effect(
    model: Model, trace: Trace, site: Site, position: int, write: Tensor, token: int
) -> tuple[float | None, str]:
    """What `write` (width,) at `position` adds to the logit of `token` directly, or None and the reason.

    The last normalisation's mean is linear and taken along; its divisor is held at the value of this run.
    """
    if model.info.family not in ("causal", "seq2seq") or site.stack == "encoder":
        return None, "Only what is written where the next token is predicted reaches a logit directly."
    norm, head = last_norm(model), model.output_head
    if norm is None or head is None:
        return (
            None,
            "Each block of this model rescales all that was written before: no write reaches a logit unchanged.",
        )
    final = trace.residual[site.stack if site.stack in trace.residual else "decoder"][-1][position].float()
    gain = getattr(norm, "weight", None)
    if isinstance(norm, nn.LayerNorm):
        spread = torch.sqrt(final.var(unbiased=False) + norm.eps)
        normed = (write - write.mean()) / spread
        normed = normed * gain.float() if gain is not None else normed
    else:
        # an RMS norm of ones shows its own gain, whether the family stores it as g or as 1 + g
        ones = norm(torch.ones_like(final)[None])[0].float()
        eps = float(getattr(norm, "variance_epsilon", getattr(norm, "eps", 1e-6)))
        normed = write / torch.sqrt(final.square().mean() + eps) * ones * (1 + eps) ** 0.5
    return float(normed @ head.weight[token].float()), ""
