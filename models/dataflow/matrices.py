"""The matrices of a model: modules that multiply by a learned weight."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from models.files.devices import weight_of


def is_matrix(module: nn.Module) -> bool:
    return isinstance(module, (nn.Linear, Conv1D))


def matrix_of(module: nn.Module) -> Tensor:
    """The weight as it multiplies a row vector from the right: (in, out)."""
    weight = weight_of(module)
    return weight if isinstance(module, Conv1D) else weight.mT


def column_norms(module: nn.Module) -> Tensor:
    """The length of what each hidden unit would write at activation 1, (hidden,) float32."""
    lengths: Tensor = torch.linalg.vector_norm(matrix_of(module).float(), dim=1)
    return lengths.cpu()
