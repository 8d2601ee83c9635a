"""What a person asked in Effects: of which answers, of which other text, about which words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attention_models.protocol.effects import EPSILON, Align, Metric, Patched, Scope

LONGEST = 4096
"""Characters of a text that is typed there."""

EPSILONS = (0.001, 0.005, 0.01, 0.05, 0.1)


@dataclass(frozen=True, slots=True)
class Answer:
    """One of a model's answers: chosen from its list, with its id, or typed as it stands in a text."""

    label: str
    id: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for what no vocabulary has."""
        _check("an answer", self.label)
        if self.id is not None and self.id < 0:
            raise ValueError(f"no answer has the number {self.id}")

    @property
    def wanted(self) -> int | str:
        """As an `Metric` says it."""
        return self.label.replace("␣", " ") if self.id is None else self.id


@dataclass(frozen=True, slots=True)
class EffectsChoices:
    """None of a token stands for the likeliest; of `against` for none at all."""

    target: Answer | None = None
    against: Answer | None = None
    loss: bool = False  # the text's loss in the place of an answer
    followed: Answer | None = None  # whose rank over the layers is drawn
    other: str = ""  # the text whose activations are patched in
    copied: Patched = "residual"
    aligned: Align = "same"
    scope: Scope = "head"  # whose weights are changed
    epsilon: float = EPSILON
    texts: tuple[str, str] = ("They sat on the river bank.", "She has money in the bank.")
    words: tuple[str, str] = ("bank", "bank")
    starts: tuple[int | None, int | None] = (None, None)  # where each word begins; None for its last place

    def __post_init__(self) -> None:
        """Raise ValueError for a text that is too long, or a bound that is none."""
        for text in (self.other, *self.texts, *self.words):
            _check("a text of Effects", text)
        if not 0 < self.epsilon < 1:
            raise ValueError(f"an answer cannot move by {self.epsilon:g}, only by more than 0 and less than 1")

    def aim(self, position: int) -> Metric:
        """What an effect on an answer at `position` is measured on."""
        target = None if self.target is None else self.target.wanted
        if self.against is None:
            return Metric(position=position, target=target)
        return Metric(measure="difference", position=position, target=target, against=self.against.wanted)

    def without_answers(self) -> EffectsChoices:
        """For another model, whose answers are others."""
        return replace(self, target=None, against=None, followed=None)


def _check(what: str, text: str) -> None:
    if len(text) > LONGEST:
        raise ValueError(f"{what} has {len(text):,} characters, and {LONGEST:,} are taken")
