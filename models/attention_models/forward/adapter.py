"""A LoRA adapter that was merged into a model's weights, and how it is taken out and put in again.

Merged, every weight of the model is an ordinary one, and what reads it (the steps of a cell, say) reads the tuned one.
The untuned ones are kept beside, so that the model without the adapter is its base to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attention_models.files.adapter_files import PREFIX, TENSORS
from attention_models.protocol.values import AdapterInfo


@dataclass(slots=True, eq=False)
class MergedAdapter:
    """The weights that an adapter tuned or replaced. `base` are those before, by the name of the parameter."""

    info: AdapterInfo
    base: dict[str, Tensor]
    is_off: bool = field(default=False)

    @contextmanager
    def off(self, module: nn.Module) -> Iterator[None]:
        """While it lasts, `module` is its base."""
        self.is_off = True
        try:
            with _holding(module, self.base):
                yield
        finally:
            self.is_off = False

    @contextmanager
    def computed_again(self, module: nn.Module) -> Iterator[None]:
        """While it lasts, the tuned weights are those of the formula, W + scale * B A, read from the adapter's file.

        Nothing of it goes through peft: whatever was run is held against this. A weight that is off by no more than two
        roundings of its format stays: adding in another order, as peft may, is no fault.
        """
        found = {name: weight for name, weight in self.from_file(module).items() if _is_apart(module, name, weight)}
        with _holding(module, found):
            yield

    def from_file(self, module: nn.Module) -> dict[str, Tensor]:
        """The weights that it makes, by parameter. Hu et al. 2021, equation 3; DoRA: Liu et al. 2024, equation 5."""
        info, made = self.info, {}
        with safe_open(Path(info.folder) / TENSORS, framework="pt") as file:
            there = set(file.keys())

            def read(name: str, like: Tensor) -> Tensor:
                tensor: Tensor = file.get_tensor(PREFIX + name)
                return tensor.to(like.device, torch.float32)

            for name, scale in zip(info.modules, info.scales, strict=True):
                weight = self.base[f"{name}.weight"]
                is_turned = isinstance(module.get_submodule(name), Conv1D)  # they hold their weights as (in, out)
                tuned = (weight.mT if is_turned else weight).float()
                a, b = (read(f"{name}.lora_{part}.weight", weight) for part in "AB")
                tuned = tuned + (b @ a) * scale  # (out, in)
                if info.dora:
                    magnitude = f"{name}.lora_magnitude_vector"
                    magnitude += ".weight" if PREFIX + magnitude not in there else ""
                    tuned = tuned * (read(magnitude, weight) / tuned.norm(dim=1))[:, None]
                made[f"{name}.weight"] = (tuned.mT if is_turned else tuned).to(weight.dtype)
            for name in info.replaced:
                made[name] = read(name, self.base[name]).to(self.base[name].dtype)
        return made


def _is_apart(module: nn.Module, name: str, weight: Tensor) -> bool:
    now = module.get_parameter(name)
    room = 2 * torch.finfo(weight.dtype).eps * float(weight.abs().max())
    return not float((now.float() - weight.float()).abs().max()) <= room


@contextmanager
def _holding(module: nn.Module, weights: dict[str, Tensor]) -> Iterator[None]:
    """While it lasts, some parameters are others: no tensor is copied."""
    parameters = {name: module.get_parameter(name) for name in weights}
    before = {name: parameter.data for name, parameter in parameters.items()}
    try:
        for name, parameter in parameters.items():
            parameter.data = weights[name]
        yield
    finally:
        for name, parameter in parameters.items():
            parameter.data = before[name]
