"""Work that is done piece by piece, so that other requests are answered in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from attention_models.protocol.request import Cancelled, never

_DEVICE = 1 << 26


@dataclass(frozen=True, slots=True)
class BlockSize:
    """Numbers that a block holds: on a CPU what a cache of it takes, on a device more, where a block costs launches."""

    cpu: int
    device: int = _DEVICE  # 256 MB of float32

    def on(self, device: torch.device) -> int:
        return self.cpu if device.type == "cpu" else self.device


class IncrementalWork:
    """Subclasses say in `_run` what a piece is. `work` and what pieces yield count weights, or what costs as much."""

    def __init__(self, work: int) -> None:
        self.work = max(1, work)
        self._did = 0
        self._ended = False
        self._pieces = self._run()

    @property
    def is_whole(self) -> bool:
        return self._ended

    @property
    def did(self) -> int:
        """How much of `work` is done; all of it at the end, whatever was estimated."""
        return self.work if self._ended else min(self._did, self.work - 1)

    def advance(self, most: float = float("inf"), should_stop: Callable[[], bool] = never) -> float:
        """Do at least `most` more, or all that is left; none where `most` is not above 0. Returns how much was done.

        Raises:
            Cancelled: `should_stop()` was true between two pieces. What was done stays.
        """
        spent = 0.0
        while not self._ended and spent < most:
            if should_stop():
                raise Cancelled
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
            else:
                spent += piece
                self._did += piece
        return spent

    def _run(self) -> Iterator[int]:
        raise NotImplementedError
