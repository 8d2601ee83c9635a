"""What the model writes after a text: the tree that is kept of it, and the step that is under way. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attention_explorer.session.branches import Branches
from attention_models.protocol.decoding import (
    MOST_SAMPLES,
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
    Strategy,
)
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import CheckpointInfo

# How a person lets the model write: the strategy and every number of the Decode panel. Pure.


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


Origin = tuple[str, RunInputs]
"""What a tree of branches belongs to: a checkpoint, and what it writes after and with. Without a picture."""

TEXTS_KEPT = 8
"""Trees of other texts that are there again when one comes back to the text."""

Into = Literal["branches", "prompt", "target"]
"""What the answer to a step goes into: the tree, or that which the model is given."""


@dataclass(frozen=True, slots=True)
class Writing:
    """The tree of what one checkpoint wrote after one text, as it is or with interventions."""

    checkpoint: str
    inputs: RunInputs
    branches: Branches

    @property
    def origin(self) -> Origin:
        return self.checkpoint, self.inputs


@dataclass(frozen=True, slots=True)
class PendingStep:
    """The step of decoding that was asked for and is not answered yet."""

    request: DecodeStepRequest | DecodeSamplesRequest
    parents: tuple[int, ...]  # the node that it goes on from; one for each of several samples, none for the input
    current: int  # the selected node when it was asked for
    into: Into = "branches"
    shown: int = 0  # the place among the samples of the selected one; -1 for one that goes no further

    @property
    def grows(self) -> bool:
        """Whether the answer is a token for the tree: a beam search has a tree of its own."""
        return self.into == "branches" and self.request.settings.strategy != "beam"

    def grown(self, branches: Branches, view: DecodeStepView | DecodeSamplesView) -> Branches:
        """The tree with the tokens that were chosen. Another node that was selected meanwhile stays selected."""
        before = shown = branches.current
        steps = view.steps if isinstance(view, DecodeSamplesView) else (view,)
        for place, (parent, step) in enumerate(zip(self.parents, steps, strict=True)):
            if step.chosen is None or parent not in branches:
                continue
            settings, forced = step.request.settings, step.request.forced is not None
            over = step.ending in ("model", "context", "masks", "misread")
            branches = branches.go(parent).grow(
                step.chosen.id, step.chosen.label, step.log_probability, over, settings, forced
            )
            if place == self.shown and before == self.current:
                shown = branches.current
        return branches.go(shown)


def with_tree(writings: tuple[Writing, ...], new: Writing) -> tuple[Writing, ...]:
    """`writings` with `new` in the place of the tree of the same origin; the oldest beyond `TEXTS_KEPT` go."""
    others = tuple(writing for writing in writings if writing.origin != new.origin)
    kept = (*others, new) if new.branches != Branches() else others
    return kept[-TEXTS_KEPT:]
