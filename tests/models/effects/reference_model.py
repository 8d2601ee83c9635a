"""A random GPT-2 that another program can be given too: its numbers are NumPy's, which stay the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from attention_models import open_checkpoint
from attention_models.forward.model import Model
from tests.models import tiny

HERE = [5, 17, 3, 29, 11, 8, 17, 21]
THERE = [5, 17, 3, 29, 30, 8, 12, 21]
TARGET, AGAINST = 7, 19


def reference_model(folder: Path) -> Model:
    """Saved in `folder`, opened from there."""
    tiny.save("gpt2", folder / "gpt2")
    module = tiny.eager(open_checkpoint(folder / "gpt2"))
    numbers = np.random.RandomState(0)
    with torch.no_grad():
        for name, parameter in sorted(module.named_parameters()):
            drawn = torch.tensor(numbers.standard_normal(tuple(parameter.shape)), dtype=torch.float32)
            parameter.copy_(1 + 0.1 * drawn if ".ln_" in name and name.endswith("weight") else 0.2 * drawn)
    module.save_pretrained(folder / "gpt2")
    return open_checkpoint(folder / "gpt2")
