"""The score functions: how well a decoder state fits each encoder state. Chosen once, by the config's `score`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention_models.textbook.config import RecurrentConfig


class Score(nn.Module):
    """How well a decoder state fits each encoder state."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()

    def prepare(self, states: Tensor) -> Tensor:
        """What does not depend on the step, from the encoder states (batch, source, encoded)."""
        return states

    def forward(self, state: Tensor, keys: Tensor) -> Tensor:
        """Scores (batch, source) of a decoder state (batch, hidden) against what `prepare` gave."""
        raise NotImplementedError("the bottleneck scores nothing")


class Additive(Score):
    """v . tanh(W s + U h)."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.w = nn.Linear(config.hidden, config.hidden, bias=False)
        self.u = nn.Linear(config.encoded, config.hidden, bias=False)
        self.v = nn.Linear(config.hidden, 1, bias=False)

    def prepare(self, states: Tensor) -> Tensor:
        """U h_j does not depend on the step: (batch, source, hidden)."""
        return self.u(states)  # type: ignore[no-any-return]

    def forward(self, state: Tensor, keys: Tensor) -> Tensor:
        return self.v(torch.tanh(self.w(state)[:, None] + keys))[..., 0]  # type: ignore[no-any-return]


class Dot(Score):
    """s . h, with h brought to the decoder's width where it is wider."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        same = config.encoded == config.hidden
        self.narrow = nn.Identity() if same else nn.Linear(config.encoded, config.hidden, bias=False)

    def prepare(self, states: Tensor) -> Tensor:
        return self.narrow(states)  # type: ignore[no-any-return]

    def forward(self, state: Tensor, keys: Tensor) -> Tensor:
        return torch.einsum("bd,bsd->bs", state, keys)


class General(Dot):
    """s . W h."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.narrow = nn.Linear(config.encoded, config.hidden, bias=False)


class Concat(Additive):
    """v . tanh(W [s; h]): W s + U h with one matrix, as Luong writes it."""


class Place(nn.Module):
    """p = (S - 1) sigmoid(v . tanh(W s)): Luong et al. 2015, equation 9, with places counted from 0."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.w = nn.Linear(config.hidden, config.hidden, bias=False)
        self.v = nn.Linear(config.hidden, 1, bias=False)

    def forward(self, state: Tensor, lengths: Tensor) -> Tensor:
        """Places (batch, 1), of decoder states (batch, hidden) in sources of `lengths` (batch,) words."""
        return torch.sigmoid(self.v(torch.tanh(self.w(state)))) * (lengths[:, None] - 1)


SCORES: dict[str, Callable[[RecurrentConfig], Score]] = {
    "none": Score,
    "bahdanau": Additive,
    "dot": Dot,
    "general": General,
    "concat": Concat,
}
