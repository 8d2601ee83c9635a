"""The choices that make a recurrent model, checked where they are made."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from attention_models.textbook.typed_numbers import typed_number

ScoreKind = Literal["none", "bahdanau", "dot", "general", "concat"]
Scope = Literal["global", "monotonic", "predictive"]
CellKind = Literal["gru", "lstm"]

_MOST = 1 << 20  # of any count


@dataclass(frozen=True, slots=True)
class RecurrentConfig:
    """Raises ValueError for a pair of choices that no paper describes, and for numbers that make no model."""

    vocabulary: int
    target_vocabulary: int
    score: ScoreKind = "bahdanau"
    scope: Scope = "global"
    cell: CellKind = "gru"
    bidirectional: bool = True
    embedding: int = 128
    hidden: int = 256
    window: int = 3  # D, words to each side of the place that local attention attends to
    pad: int = 0
    start: int = 1
    end: int = 2
    dropout: float = 0.1
    most_words: int = 10  # of the sentences it was trained on
    model_type: str = "explorer-recurrent"

    def __post_init__(self) -> None:
        for value, kind in ((self.score, ScoreKind), (self.scope, Scope), (self.cell, CellKind)):
            if value not in get_args(kind):
                raise ValueError(f"“{value}” is none of {', '.join(get_args(kind))}.")
        if self.scope != "global" and self.score in ("none", "bahdanau"):
            raise ValueError(f"Local attention is Luong's: it goes with dot, general or concat, not with {self.score}.")
        for name in ("vocabulary", "target_vocabulary", "embedding", "hidden", "window"):
            _check_number(name, getattr(self, name), 1, _MOST)
        for name in ("pad", "start", "end"):
            _check_number(name, getattr(self, name), 0, min(self.vocabulary, self.target_vocabulary) - 1)

    @property
    def is_luong(self) -> bool:
        """Whether the decoder takes its turn before it looks back, not after."""
        return self.score not in ("none", "bahdanau")

    @property
    def encoded(self) -> int:
        """Width of one encoder state."""
        return self.hidden * (2 if self.bidirectional else 1)

    @property
    def width(self) -> int:
        """As a transformer's config calls the width of what is passed on from step to step."""
        return self.hidden

    @property
    def decoder_start_token_id(self) -> int:
        return self.start

    @property
    def eos_token_id(self) -> int:
        return self.end

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


RECURRENT_SWITCHES: dict[str, tuple[str, ...]] = {
    "score": get_args(ScoreKind),
    "scope": get_args(Scope),
    "cell": get_args(CellKind),
    "bidirectional": ("on", "off"),
    **dict.fromkeys(("embedding", "hidden", "window"), ()),
    "dropout": (),
}
"""All that can be set by name, each with its words; () where it is a number."""


def as_recurrent_switch(name: str, text: str) -> Any:
    """What `--set name=text` means, in the type of the switch.

    Raises:
        ValueError: no such switch, or nothing that it can be set to.
    """
    words = RECURRENT_SWITCHES.get(name)
    if words is None:
        raise ValueError(f"a recurrent model has no switch “{name}”. It has {', '.join(sorted(RECURRENT_SWITCHES))}")
    if words:
        if text not in words:
            raise ValueError(f"{name} is “{text}”, and has to be one of {', '.join(words)}")
        return text == "on" if name == "bidirectional" else text
    number = typed_number(name, text, float if name == "dropout" else int)
    if name == "dropout" and not 0 <= number < 1:
        raise ValueError(f"dropout is {text}, and has to be at least 0 and less than 1")
    return number


def _check_number(name: str, value: object, least: int, most: int) -> None:
    """A config is read from a file, and a file may say anything."""
    if not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}, and has to be a whole number from {least} to {most:,}.")
