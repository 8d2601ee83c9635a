"""Where the positions of one text lie in the tensors of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_models.attention.numbers import copied, to_numpy
from attention_models.forward.model import Model
from attention_models.protocol.values import read_only


class Layout:
    """Finds one text's positions in a tensor of a batch: (batch, tokens, ...), or flat, or the tokens first (XLNet)."""

    def __init__(self, model: Model, row: int, batch: int) -> None:
        self.row, self.batch = row, batch
        self.time_first = getattr(model.config, "model_type", "") == "xlnet"

    def rows(self, t: Tensor) -> Tensor:
        """(tokens, ...) of the text: the stream, or what is computed of it position by position."""
        if t.dim() == 2:  # batch and tokens in one
            shape = (-1, self.batch) if self.time_first else (self.batch, -1)
            t = t.reshape(*shape, t.shape[-1])
        if self.time_first:
            t = t.transpose(0, 1)
        return t[self.row if t.shape[0] > 1 else 0]

    def vectors(self, t: Tensor, tokens: int) -> Tensor | None:
        """(tokens, width) of the text; None where there is no one vector of floats for each position.

        Heads may lie before the tokens or after: a position's vectors are put together, head by head.
        """
        if t.dim() not in (2, 3, 4) or not t.is_floating_point():
            return None
        if t.dim() == 2 and t.shape[0] != self.batch * tokens:
            return None
        found = self.rows(t)
        if t.dim() == 4:
            if found.shape[0] != tokens and found.shape[1] == tokens:
                found = found.transpose(0, 1)
            found = found.reshape(found.shape[0], -1)
        return found if found.shape[0] == tokens else None

    def hidden(self, stream: Tensor) -> Tensor:
        """A block's argument of the stream that a trace keeps, (tokens, width), of a text that ran alone."""
        return stream[:, None] if self.time_first else stream[None]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """One vector for each position, (tokens, width)."""

    tensor: Tensor
    shared: np.ndarray | None  # the same memory, where numpy can read it: a row of it takes a fraction of the time

    def row(self, position: int) -> np.ndarray:
        """(width,) float32, in memory of its own."""
        return copied(self.tensor[position]) if self.shared is None else read_only(self.shared[position].copy())


def vectors_of(t: Tensor | None) -> Vectors | None:
    if t is None:
        return None
    return Vectors(t, to_numpy(t) if t.device.type == "cpu" and t.dtype == torch.float32 else None)


def norms(rows: Tensor) -> Tensor:
    """The length of each row, (tokens,) float32."""
    lengths: Tensor = torch.linalg.vector_norm(rows.float(), dim=-1)
    return lengths
