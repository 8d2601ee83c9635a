"""A loaded model's own rotary module (RoPE: Su et al. 2021): how fast each pair of dimensions turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.protocol.values import Site

if TYPE_CHECKING:
    from attention_models.forward.model import Model


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How fast each pair turns, in radians a position, and what the turned vectors are multiplied by."""

    inverse: np.ndarray  # (pairs,) float64
    gain: float


def rotary_module(model: Model) -> nn.Module | None:
    """The module that gives cosines and sines; None for a model without rotations."""
    return next((m for m in model.module_names if any(n.endswith("inv_freq") for n, _ in _buffers(m))), None)


def frequencies(model: Model, site: Site) -> Frequencies:
    """Of `site`, as the model's rotary module has them for a text of its length (dynamic scaling depends on that)."""
    rotary: Any = rotary_module(model)
    assert rotary is not None
    kind = _layer_type(model, site, rotary)
    places = torch.arange(site.keys, device=model.device)[None]
    # a call brings frequencies that depend on the length up to date
    model.forget_lengths()
    rotary(torch.zeros(1, device=model.device), places, *([kind] if kind else []))
    prefix = f"{kind}_" if kind else ""
    inverse: Tensor = getattr(rotary, f"{prefix}inv_freq")
    gain = getattr(rotary, f"{prefix}attention_scaling", 1.0)
    return Frequencies(inverse.cpu().double().numpy(), float(gain))


def rope_settings(model: Model, site: Site) -> dict[str, Any]:
    """What the config says of the rotations of `site`: rope_type, rope_theta, factor and so on."""
    settings: Any = getattr(model.config, "rope_parameters", None) or {}
    kind = _layer_type(model, site, rotary_module(model))
    nested = settings.get(kind) if kind else None
    return dict(nested if isinstance(nested, dict) else settings)


def _layer_type(model: Model, site: Site, rotary: Any) -> str | None:
    """The name under which the rotary module keeps the frequencies of this layer, where it has several."""
    kinds = getattr(model.config, "layer_types", None)
    if rotary is None or hasattr(rotary, "inv_freq") or not kinds:
        return None
    return str(kinds[site.layer])


def _buffers(module: nn.Module) -> list[tuple[str, Tensor]]:
    return list(module.named_buffers(recurse=False))
