"""Gradients that `Tensor.grad` adds up, or never has: of a tied output matrix, and of a recurrent encoder's states.

output matrix     dL/dW = sum over tokens of dL/dlogits h^T: the part of a tied matrix that comes by its use as the
                  head; what is left of its gradient comes by its use as embedding
hidden states     dL/dh_t = (what the decoder reads of h_t) + (dh_{t+1}/dh_t)^T dL/dh_{t+1}
                  the second summand is where gradients vanish (Bengio et al. 1994); attention adds to the first
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

# How long the gradient of each part of a model is: an embedding, a block, the head.


NORMS_EVERY = 10  # steps
AND_HEAD = " and head"
"""What the name of a part ends with whose embedding is the output matrix too."""

_STACK = re.compile(r"(?:^|\.)(encoder|decoder)\.")
_BLOCK = re.compile(r"\.(?:h|layers?|blocks?)\.([0-9]+)\.")
_EMBEDDING = re.compile(r"embed|shared|wte|wpe", re.IGNORECASE)
_NORM = re.compile(r"norm|ln_f", re.IGNORECASE)


class StateGradient(NamedTuple):
    """Lengths of the gradient of one hidden state of a recurrent encoder: the root of the mean square over rows."""

    whole: float
    read: float  # what the decoder reads of it: by attention, and of the last states as its own first one
    passed: float  # by way of the states that were made from it


class Tied(NamedTuple):
    """An output matrix that embeds texts too, and the part of its gradient that it has as the head."""

    weight: nn.Parameter
    head: Tensor


def gradient_norms(
    parts: Mapping[str, Sequence[nn.Parameter]], tied: Tied | None = None
) -> tuple[tuple[str, float], ...]:
    """By the name of the part; 0 where it has no gradient. Of a tied matrix the head is told apart, and comes last."""
    found = []
    for name, parameters in parts.items():
        own = (p.grad if tied is None or p is not tied.weight else _by_embedding(tied) for p in parameters)
        lengths = [gradient.norm() for gradient in own if gradient is not None]
        part = name if tied is None else name.removesuffix(AND_HEAD)
        found.append((part, float(torch.stack(lengths).norm()) if lengths else 0.0))
    return (*found, *([] if tied is None else [("head", float(tied.head.norm()))]))


def _by_embedding(tied: Tied) -> Tensor:
    assert tied.weight.grad is not None
    return tied.weight.grad - tied.head


def parts_of(named: Mapping[str, nn.Parameter]) -> dict[str, list[nn.Parameter]]:
    """Parameters of a transformers model by the part that they belong to: "embedding", "decoder block 1", "head"."""
    found: dict[str, list[nn.Parameter]] = {}
    for name, parameter in named.items():
        found.setdefault(_part_of(name), []).append(parameter)
    return found


def _part_of(name: str) -> str:
    stack = _STACK.search(name)
    which = "" if stack is None else f"{stack[1]} "
    if block := _BLOCK.search(name):
        return f"{which}block {block[1]}"
    if _EMBEDDING.search(name):
        return f"{which}embedding"
    return f"{which}norm" if _NORM.search(name) else "head"


class HeadPass:
    """Inside a `with`, what the output matrix reads is kept; after `backward` there is the gradient of that use."""

    states: Tensor  # (..., width)
    logits: Tensor  # (..., vocabulary)

    def __init__(self, head: nn.Module) -> None:
        self._head = head

    def __enter__(self) -> HeadPass:
        self._handle = self._head.register_forward_hook(self._keep)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._handle.remove()

    def _keep(self, _head: nn.Module, read: tuple[Tensor, ...], logits: Tensor) -> None:
        self.states, self.logits = read[0].detach(), logits
        logits.retain_grad()

    @property
    def tied(self) -> Tied:
        """The matrix, where it embeds texts too, and its gradient as the head."""
        return Tied(self._head.get_parameter("weight"), self.gradient)

    @property
    def gradient(self) -> Tensor:
        """(vocabulary, width), without what the matrix gets where it embeds texts."""
        assert self.logits.grad is not None
        return self.logits.grad.flatten(0, -2).T @ self.states.flatten(0, -2)


class EncoderPass:
    """Inside a `with`, what a recurrent encoder reads and gives is kept; after `backward` its states' gradients."""

    def __init__(self, encoder: nn.GRU | nn.LSTM) -> None:
        self._encoder = encoder

    def __enter__(self) -> EncoderPass:
        self._handle = self._encoder.register_forward_hook(self._keep)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._handle.remove()

    def _keep(self, _encoder: nn.Module, read: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        self._read, self._given = read[0], given[0]
        self._given.data.retain_grad()

    def gradients(self) -> tuple[StateGradient, ...]:
        """One a step of the encoder: over the rows that are so long."""
        gradient = self._given.data.grad
        assert gradient is not None
        read, lengths = _padded(self._given, gradient)  # (rows, steps, encoded)
        inputs, _ = _padded(self._read, self._read.data.detach())  # (rows, steps, embedding)
        is_there = torch.arange(read.shape[1])[None] < lengths[:, None]  # (rows, steps)
        halves = read.chunk(2 if self._encoder.bidirectional else 1, dim=-1)
        whole = torch.cat(
            [self._through_time(inputs, is_there, half, number == 1) for number, half in enumerate(halves)], dim=-1
        )
        passed = (whole - read) * is_there[..., None]
        return tuple(map(StateGradient, *(_lengths(t, is_there) for t in (whole, read, passed))))

    def _through_time(self, inputs: Tensor, is_there: Tensor, read: Tensor, backward: bool) -> Tensor:
        """The whole gradient of each state of one direction, (rows, steps, hidden).

        Step by step, so that each state is a tensor of its own: of the sum over t of <read_t, h_t> the gradient by h_t
        is read_t and all that comes by later states.
        """
        ending = "l0_reverse" if backward else "l0"
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = [getattr(self._encoder, f"{name}_{ending}").detach() for name in names]
        rows, steps, hidden = read.shape
        state, memory = (inputs.new_zeros(rows, hidden).requires_grad_() for _ in range(2))
        states: list[Tensor] = [state] * steps
        with torch.enable_grad():
            for t in reversed(range(steps)) if backward else range(steps):
                here = is_there[:, t, None]
                if isinstance(self._encoder, nn.GRU):
                    new = torch.gru_cell(inputs[:, t], state, *weights)
                else:
                    new, cell = torch.lstm_cell(inputs[:, t], (state, memory), *weights)
                    memory = torch.where(here, cell, memory)
                state = states[t] = torch.where(here, new, state)
            total = (torch.stack(states, dim=1) * read).sum()
            found = torch.autograd.grad(total, states)
        return torch.stack(found, dim=1) * is_there[..., None]


def _padded(packed: PackedSequence, data: Tensor) -> tuple[Tensor, Tensor]:
    """`data` in the places of what was packed, (rows, steps, width), and the length of each row."""
    return pad_packed_sequence(packed._replace(data=data), batch_first=True)


def _lengths(gradients: Tensor, is_there: Tensor) -> list[float]:
    """(steps,): the root of the mean square over the rows that are so long."""
    squares = gradients.square().sum(dim=-1).sum(dim=0)  # (steps,)
    found: list[float] = (squares / is_there.sum(dim=0)).sqrt().tolist()
    return found


def tied_head(model: Any) -> nn.Module | None:
    """The output matrix of a transformers model, where it embeds texts too and is learned."""
    head: nn.Module | None = model.get_output_embeddings()
    if head is None:
        return None
    weight = head.get_parameter("weight")
    return head if weight.requires_grad and weight is model.get_input_embeddings().weight else None
