"""The matrices of a model: modules that multiply by a learned weight."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attention_models.files.devices import weight_of


def is_matrix(module: nn.Module) -> bool:
    return isinstance(module, (nn.Linear, Conv1D))


def matrix_of(module: nn.Module) -> Tensor:
    """The weight as it multiplies a row vector from the right: (in, out)."""
    weight = weight_of(module)
    return weight if isinstance(module, Conv1D) else weight.mT


def column_norms(matrix: Tensor) -> np.ndarray:
    """The length of what each hidden unit would write at activation 1, of a matrix (in, out): (in,) float32."""
    lengths: np.ndarray = torch.linalg.vector_norm(matrix.detach().float(), dim=1).cpu().numpy()
    return lengths
