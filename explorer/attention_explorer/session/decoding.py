"""How a person lets the model write: the strategy and every number of the Decode panel. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from attention_explorer.session.branches import Branches
from attention_models.protocol.decoding_settings import MOST_SAMPLES, DecodeSettings, Strategy
from attention_models.protocol.values import CheckpointInfo

MOST_STEPS = 1000

_FIRST = DecodeSettings()


@dataclass(frozen=True, slots=True)
class Decoding:
    """What the Decode panel says, those numbers included that the strategy at hand leaves alone.

    Raises:
        ValueError: numbers outside their ranges; the sentence says which and what they may be.
    """

    settings: DecodeSettings = _FIRST  # `sample` does not matter, nor `strategy` until one is chosen
    steps: int = 20  # the most tokens to write
    samples: int = 1  # drawn side by side
    chosen: bool = False  # a person chose the strategy; before that it is what suits the model

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MOST_SAMPLES:
            raise ValueError(f"{self.samples} samples are not offered: 1 to {MOST_SAMPLES}.")
        if not 1 <= self.steps <= MOST_STEPS:
            raise ValueError(f"{self.steps} steps are not offered: 1 to {MOST_STEPS:,}.")


def strategy_of(decoding: Decoding, info: CheckpointInfo | None, branches: Branches) -> Strategy:
    """The strategy that was chosen; else a beam search for a translator, as its target is written by one.

    What a translator wrote otherwise comes first.
    """
    if decoding.chosen:
        return decoding.settings.strategy
    translates = info is not None and info.family == "seq2seq" and not info.textbook
    return "beam" if translates and not branches.nodes else "greedy"
