"""Single figures of a run, of the open model or of a formula, as a lesson asks for them by name. No torch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from attention_models.protocol.decoding import DecodeSettings
from attention_models.protocol.effects import ACCOUNTS
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.named_tokens import Named
from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.roles import ROLE_NAMES
from attention_models.protocol.values import SiteRef

OfCell = Literal["weight", "product", "scaled score"]
OfRow = Literal["entropy", "visible", "visible keys", "peak", "peak weight"]
OfMap = Literal["received", "diagonal", "above", "mask", "role"]
OfRole = Literal["role score", "even role score"]
OfAnswer = Literal["next", "next probability", "probability", "rank", "moved"]
OfText = Literal["writes", "tokens", "cosine"]
OfModel = Literal[
    "layers",
    "heads",
    "all heads",
    "head width",
    "joined width",
    "width",
    "vocabulary",
    "context",
    "parameters",
    "query parameters",
]
OfEffects = Literal[
    "head effect",
    "agreement",
    "early",
    "settled after",
    "weights apart",
    "answer apart",
    "gradient",
    "gradient peak",
]
OfValues = Literal["value length", "read length", "read peak"]
OfWords = Literal["raw product", "raw weight", "raw peak"]
OfCost = Literal["cells", "attention products", "matrix products", "cached bytes"]
OfFormula = Literal["softmax", "division", "variance", "largest share", "turn error", "wave likeness"]

FactKind = (
    OfCell | OfRow | OfMap | OfRole | OfAnswer | OfText | OfModel | OfEffects | OfValues | OfWords | OfCost | OfFormula
)
"""What a figure is of: see `attention_models.lessons.facts`, where each is computed."""

KINDS: tuple[str, ...] = tuple(kind for group in get_args(FactKind) for kind in get_args(group))
WORDS = frozenset(
    {
        *("peak", "read peak", "raw peak", "gradient peak", "next", "early", "writes"),
        *("visible keys", "mask", "role"),
    }
)
"""Kinds that are words, where all others are numbers."""

SHARES = frozenset(
    {
        *("weight", "peak weight", "diagonal", "above", "next probability", "probability", "moved", "answer apart"),
        *("role score", "even role score", "raw weight", "gradient"),
        *("softmax", "division", "largest share"),
    }
)
"""Kinds that are shares of one, written in per cent."""

COMPARING = frozenset({"moved", "head effect", "gradient", "gradient peak", *get_args(OfFormula)})
"""Kinds that say by themselves what a change does: of an ablation, of a derivative, of a formula at several places."""

CHANGEABLE = frozenset(
    kind
    for group in (OfCell, OfRow, OfMap, OfAnswer, OfValues, Literal["writes", "cosine"])
    for kind in get_args(group)
    if kind != "role"
)
"""Kinds that can be of a run with other interventions."""

OTHER_MASK = "other"
"""A mask of no kind that has a name."""
NO_ROLE = "none"
"""Of a head that plainly has no role."""
ROLE_KINDS = frozenset(get_args(OfRole))
"""Kinds whose `word` is a role."""

MOST_FACTS = 40
"""Asked for at once."""
MOST_STEPS = 60
_MOST_NUMBERS = 200
_LONGEST = 1000

Value = float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One figure. What a kind has no use for is left alone.

    Attributes:
        site, head, query, key: where it is read; a token by its position or by its word.
        word: an answer as the model spells it, without the mark of a space; of `cosine` a word of both texts; of
            `role score` and `even role score` a role by its name, of `agreement` an account of the tokens by its name.
        text, second, target: another input in the place of the run's, with the same interventions; None for its own.
        unchanged: without interventions.
        interventions: what is changed on top of the run's own interventions, or of none where `unchanged`.
        settings, steps: how and how much is written, of `writes`.
        numbers, at: of formulas: what they are given, and which of the results is meant.

    Raises:
        ValueError: a number or a text outside its bounds.
    """

    kind: FactKind
    site: SiteRef | None = None
    head: int = 0
    query: int | Named = 0
    key: int | Named = 0
    word: str = ""
    text: str | None = None
    second: str | None = None
    target: str | None = None
    unchanged: bool = False
    interventions: tuple[Intervention, ...] = ()
    settings: DecodeSettings = field(default_factory=DecodeSettings)
    steps: int = 20
    numbers: tuple[float, ...] = ()
    at: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no figure “{self.kind}”: there are {', '.join(KINDS)}")
        if self.kind in ROLE_KINDS and self.word not in ROLE_NAMES:
            raise ValueError(f"there is no role “{self.word}”: there are {', '.join(ROLE_NAMES)}")
        if self.kind == "agreement" and self.word not in ACCOUNTS:
            raise ValueError(f"there is no account of the tokens “{self.word}”: there are {', '.join(ACCOUNTS)}")
        if self.interventions and self.kind not in CHANGEABLE:
            raise ValueError(f"the figure “{self.kind}” is of the model without further interventions")
        if not 1 <= self.steps <= MOST_STEPS:
            raise ValueError(f"{self.steps} steps are not written for a figure: 1 to {MOST_STEPS}")
        if len(self.numbers) > _MOST_NUMBERS or not all(math.isfinite(number) for number in self.numbers):
            raise ValueError(f"a figure takes {_MOST_NUMBERS} numbers at most, and finite ones")
        for text in (self.word, self.text, self.second, self.target):
            if text is not None and len(text) > _LONGEST:
                raise ValueError(f"a text of {len(text):,} characters is too long for a figure: {_LONGEST:,} at most")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsRequest(RunRequest):
    """Several figures of run `run`. Answered by `FactsView`."""

    lane: ClassVar[Lane] = Lane("lesson")
    activity: ClassVar[str] = "computing the figures of the lesson"
    answered_by: ClassVar[str] = "attention_models.lessons.facts:answer"
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactsView(Result):
    """`values` are those of `request.facts`, in their order: numbers, and words of kinds in `WORDS`."""

    request: FactsRequest
    values: tuple[Value, ...]


def spans(places: Iterable[int]) -> str:
    """Numbers, in their order, as a person writes them: "0–4, 7"."""
    found: list[list[int]] = []
    for place in sorted(places):
        if found and place == found[-1][1] + 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in found)


def places_in(text: str) -> frozenset[int]:
    """The numbers that `spans` wrote."""
    found: set[int] = set()
    for part in text.split(", ") if text else ():
        first, _, last = part.partition("–")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)
