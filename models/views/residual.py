"""What a head writes into the residual stream, and what that write does to a logit directly.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits": the output of a layer's attention is a sum over
heads, and each head's a sum over keys, w_ij v_j W_O; with the last normalisation's divisor held at its value, a logit
is a sum over these writes too.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from models.files.devices import apply, weight_of
from models.forward.model import Model
from models.forward.trace import Trace
from models.protocol.values import Site

# where a family keeps W_O: inside its attention module, or beside it (BERT and its kin)
_INSIDE = ("c_proj", "o_proj", "out_proj", "out_lin", "dense", "o")
_BESIDE = ("output.dense",)
_LAST_NORMS = ("ln_f", "final_layer_norm", "final_layernorm", "norm", "final_norm")

IN_BETWEEN = (
    "Between the last block and the logits stand layers that are not linear (a pooler, say), so no write adds to a "
    "logit."
)
_RESCALED = "Each block of this model rescales all that was written before, so no write reaches a logit unchanged."


def output_weight(model: Model, site: Site, head: int) -> Tensor | None:
    """The rows of W_O that belong to `head`: (value_dim, width); None where no projection of fitting shape is found."""
    projection = output_projection(model, site)
    if projection is None:
        return None
    weight = weight_of(projection) if isinstance(projection, Conv1D) else weight_of(projection).mT
    assert isinstance(weight, Tensor)  # (heads * value_dim, width)
    if weight.shape[0] % site.heads:
        return None
    size = weight.shape[0] // site.heads
    return weight[head * size : (head + 1) * size]


def output_projection(model: Model, site: Site) -> nn.Linear | Conv1D | None:
    """The module that multiplies the joined heads by W_O (and adds its bias, where it has one)."""
    parent = site.module.rpartition(".")[0]
    for name in (*(f"{site.module}.{end}" for end in _INSIDE), *(f"{parent}.{end}" for end in _BESIDE)):
        try:
            module = model.module.get_submodule(name)
        except AttributeError:
            continue
        if isinstance(module, (nn.Linear, Conv1D)):
            return module
    return None


def last_norm(model: Model) -> nn.Module | None:
    """The normalisation between the last block and the output head, in models whose blocks only add to the stream.

    None for the others: where each block ends in a normalisation of its own (the post-norm of 2017 and BERT, the
    sandwich of Gemma 2), no write reaches the logits by addition alone.
    """
    names = model.module_names
    if any("post_feedforward_layernorm" in name for name in names.values()):
        return None
    blocks = tuple(name + "." for module, name in names.items() if isinstance(module, nn.ModuleList))
    for module, name in names.items():
        outside = not name.startswith(blocks) and "encoder" not in name.split(".")
        is_norm = isinstance(module, nn.LayerNorm) or type(module).__name__.endswith(("RMSNorm", "T5LayerNorm"))
        if outside and is_norm and name.rpartition(".")[2] in _LAST_NORMS:
            return module
    return None


def logit_direction(model: Model, trace: Trace, stack: str, position: int, token: int) -> tuple[Tensor | None, str]:
    """The direction (width,) along which the residual stream at `position` moves the logit of `token` (or a class).

    What is written into `stack` there changes the logit directly by `write @ direction`: the last normalisation's
    mean is linear and taken along, its divisor is held at the value of this run. Where there is none: None and the
    reason.
    """
    reason = _unreachable(model, trace, stack) or _read_elsewhere(model, trace, position)
    if reason:
        return None, reason
    is_classifier = model.info.class_head is not None
    norm, head = last_norm(model), model.class_projection if is_classifier else model.output_head
    stream = trace.residual.get("decoder")
    # a block that multiplies what it adds (Granite) is one more that no plain sum describes
    if norm is not None and head is None and is_classifier:
        return None, IN_BETWEEN
    if norm is None or head is None or not stream or getattr(model.config, "residual_multiplier", 1.0) != 1.0:
        return None, _RESCALED
    final = stream[-1][position].float().cpu()  # (width,); the layers of a large model lie on different devices
    factor = _logit_factor(norm, head, final, trace.logits_at([position])[0].cpu(), token, is_classifier)
    if factor is None and is_classifier:
        return None, IN_BETWEEN
    if factor is None:
        return None, "This model changes its logits after the output head (by a cap, say), so no write adds to them."
    row = weight_of(head)[token].float().cpu()  # (width,)
    if isinstance(norm, nn.LayerNorm):
        gained = row if getattr(norm, "weight", None) is None else row * weight_of(norm).float().cpu()
        return factor * (gained - gained.mean()) / torch.sqrt(final.var(unbiased=False) + norm.eps), ""
    # an RMS norm of ones shows its own gain, whether the family stores it as g or as 1 + g
    eps = float(getattr(norm, "variance_epsilon", None) or getattr(norm, "eps", None) or 1e-6)
    gain = apply(norm, torch.ones_like(final)[None])[0].float() * (1 + eps) ** 0.5
    return factor * row * gain / torch.sqrt(final.square().mean() + eps), ""


def _unreachable(model: Model, trace: Trace, stack: str) -> str:
    """Why nothing written into `stack` can reach a logit by addition, "" where it may."""
    if not trace.has_logits:
        return "This model has no output head: there is no logit that a write could change."
    if model.info.family == "seq2seq" and stack == "encoder":
        return "What the encoder writes reaches a logit only through the decoder's cross-attention."
    is_causal = model.info.class_head is not None and stack == "decoder"
    if is_causal or model.info.family in ("causal", "seq2seq"):
        return ""
    return _RESCALED if last_norm(model) is None else IN_BETWEEN


def _read_elsewhere(model: Model, trace: Trace, position: int) -> str:
    """Why a write at `position` is not what a classifier of texts reads, "" where it is (or it reads every token)."""
    head = model.info.class_head
    if head is None or head.of != "text":
        return ""
    # as transformers finds it: the last token that is no padding
    padding = getattr(model.config.get_text_config(), "pad_token_id", None)
    read = max((i for i, token in enumerate(trace.tokens) if token.id != padding), default=0)
    if position == read:
        return ""
    return (
        f"The classes are read off at “{trace.tokens[read].word}”, position {read}: what is written elsewhere reaches "
        "them only through the attention of later layers."
    )


def _logit_factor(
    norm: nn.Module, head: nn.Linear, final: Tensor, logits: Tensor, token: int, is_classifier: bool
) -> float | None:
    """What the model multiplies the output head's numbers by (T5: 1/sqrt(width)), found from a few of its logits.

    None where these are no multiple of the head's numbers: then something else comes between.
    """
    weight = weight_of(head)
    if weight.shape[1] != len(final):
        return None
    ids = torch.tensor([token, *range(min(8, len(logits)))])
    normed = apply(norm, final[None].to(weight.dtype))[0].float()
    read = weight[ids.to(weight.device)].float().cpu() @ normed  # (9,)
    added = 0.0 if getattr(head, "bias", None) is None else weight_of(head, "bias").cpu()[ids].float()
    given = logits[ids].float()
    # of a single class any factor would fit
    factors = (1.0,) if is_classifier else (1.0, len(final) ** -0.5, float(read @ given / (read @ read)))
    for factor in factors:
        if torch.allclose(factor * read + added, given, rtol=0.0, atol=_tolerance(logits) * float(given.abs().max())):
            return factor
    return None


def _tolerance(logits: Tensor) -> float:
    return 1e-4 if logits.dtype == torch.float32 else 2e-2
