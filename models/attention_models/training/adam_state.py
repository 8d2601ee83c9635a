"""What Adam keeps of each parameter between two steps, as tensors by name: for snapshots."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

_MOMENTS = ("exp_avg", "exp_avg_sq")


def moments_of(optimizer: torch.optim.Optimizer, named: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """Its running means, as "exp_avg.NAME" and "exp_avg_sq.NAME"; there are none before the first step."""
    kept = optimizer.state
    return {f"{key}.{name}": kept[p][key] for name, p in named.items() if p in kept for key in _MOMENTS}


def take_moments(
    optimizer: torch.optim.Optimizer, named: Mapping[str, nn.Parameter], state: Mapping[str, Tensor], step: int
) -> None:
    """Be as `moments_of` told after `step` steps. Other tensors in `state` are passed by."""
    for name, p in named.items():
        optimizer.state.pop(p, None)
        if f"exp_avg.{name}" in state:
            optimizer.state[p] = {
                "step": torch.tensor(float(step)),
                **{key: state[f"{key}.{name}"].clone() for key in _MOMENTS},
            }
