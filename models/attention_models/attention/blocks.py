"""How much is computed at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch

_DEVICE = 1 << 26


@dataclass(frozen=True, slots=True)
class BlockSize:
    """Numbers that a block holds: on a CPU what a cache of it takes, on a device more, where a block costs launches."""

    cpu: int
    device: int = _DEVICE  # 256 MB of float32

    def on(self, device: torch.device) -> int:
        return self.cpu if device.type == "cpu" else self.device
