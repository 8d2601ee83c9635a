"""Figures that lessons, examples and tours ask for by name, and sentences on causes with what shows them. Pure.

A sentence that says why the model does something is a claim of its own: that a weight is large, or an answer right,
does not show it. It is shown by a run in which the cause is taken away, or put back (`Because`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from attention_explorer.session import changes
from attention_explorer.session.hidden import HIDDEN_WITH, WEIGHTS, Hide
from attention_explorer.session.named_tokens import Count, Place, Word
from attention_explorer.session.state import Selection
from attention_explorer.session.statements import LONGEST, NAME, Statement, Value, statement
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_models.protocol.decoding import DecodeSettings
from attention_models.protocol.facts import COMPARING, MOST_FACTS, NO_ROLE, OTHER_MASK, SHARES, Fact, FactKind
from attention_models.protocol.mask_kinds import MASK_KINDS
from attention_models.protocol.named_tokens import Named
from attention_models.protocol.roles import ROLE_NAMES
from attention_models.protocol.values import SiteRef

_WHY = re.compile(
    r"\b(?:because|through|thanks to|due to|that is why|all (?:that )?it (?:takes|needs)|(?:out of|within) reach)\b"
    r"|, so (?:it|he|she|they|the|its|what|who|“)|, for (?:it|he|she|they)\b"
    r"|\bby (?:one|what|way of|order|that|this|attending|reading)\b",
    re.IGNORECASE,
)
"""What a sentence has in it that says why."""

_NO_CAUSE = re.compile(r"\b(?:multipl|divi|shift|turn|scal)\w* by (?:one|what|this)\b|\b(\w+) by \1\b", re.IGNORECASE)
"""The same words where they say how something is computed, or in which order."""

_Said = Annotated[str, Meta(min_length=3, max_length=LONGEST)]

_SENTENCE_END = re.compile(r"(?<=[.!?])[”\"*)]*\s+|\n\s*\n|\n- ")


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure of what is on screen. What is not named is selected. See `attention_models.protocol.facts.Fact`."""

    kind: FactKind
    stack: Literal["decoder", "encoder", "cross"] | None = None
    layer: Place | None = None
    head: Place | None = None
    query: Word | None = None
    query_place: Count = 1
    key: Word | None = None
    key_place: Count = 1
    word: Annotated[str, Meta(max_length=60)] = ""
    text: Annotated[str, Meta(max_length=1000)] | None = None
    second: Annotated[str, Meta(max_length=1000)] | None = None
    target: Annotated[str, Meta(max_length=1000)] | None = None
    unchanged: bool = False
    interventions: Annotated[tuple[changes.Change, ...], Meta(max_length=50)] = ()  # on top of those on screen
    settings: DecodeSettings = DecodeSettings()
    steps: Annotated[int, Meta(ge=1, le=60)] = 20
    numbers: Annotated[tuple[float, ...], Meta(max_length=200)] = ()
    at: Annotated[int, Meta(ge=0, le=100_000)] = 0

    def __post_init__(self) -> None:
        _ = self.fact(Selection())

    def fact(self, selection: Selection) -> Fact:
        """What to ask for with this cell selected. ValueError for a number outside its bounds."""
        site = selection.site
        if self.layer is not None:
            site = SiteRef(self.stack or ("decoder" if site is None else site.stack), self.layer)
        return Fact(
            kind=self.kind,
            site=site,
            head=selection.head if self.head is None else self.head,
            query=selection.query if self.query is None else Named(self.query, self.query_place),
            key=selection.key if self.key is None else Named(self.key, self.key_place),
            word=self.word,
            text=self.text,
            second=self.second,
            target=self.target,
            unchanged=self.unchanged,
            interventions=tuple(changes.intervention(record) for record in self.interventions),
            settings=self.settings,
            steps=self.steps,
            numbers=self.numbers,
            at=self.at,
        )

    @property
    def hidden(self) -> Hide:
        """What is to be covered for it not to be read on screen; "" for nothing: it may be of another input or run.

        A cosine is of two texts, one of which is on screen. What is of another cell than the selected one is hidden
        with all that lies between.
        """
        what, others = HIDDEN_WITH.get(self.kind, ""), (self.second, self.target)
        is_of_others = any(other is not None for other in others) or (self.text and self.kind != "cosine")
        if self.unchanged or self.interventions or is_of_others:
            return ""
        if what in WEIGHTS and any(each is not None for each in (self.layer, self.head, self.query)):
            return "map" if what != "mask" else "mask"
        return "row" if what == "weight" and self.key is not None else what

    def text_of(self, value: Value) -> str:
        """As a sentence has it: a share in per cent, a count without decimals, a role in words."""
        if isinstance(value, str):
            if self.kind == "mask":
                return _MASK_WORDS[value]
            return _role_words(value) if self.kind == "role" else value
        if self.kind in SHARES:
            return percent_text(value)
        return f"{value:,.0f}" if value == round(value) and abs(value) >= 1 else value_text(value)

    @property
    def intervenes(self) -> bool:
        """Whether something differs from the run on screen: what is changed in the model, or what it reads."""
        return bool(self.interventions) or not (self.text is self.second is self.target is None)


Figures = Annotated[dict[Annotated[str, Meta(pattern=f"^{NAME}$")], Figure], Meta(max_length=MOST_FACTS)]
"""Of one step or example, by their names."""


class Because(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a sentence that names a cause is so: statements on figures of runs in which that cause is taken away.

    Attributes:
        says: words of the sentence, as the step has them.
        holds: what must be so. One of the figures in it is of a run that differs from the one on screen.
    """

    says: Annotated[str, Meta(min_length=3, max_length=600)]
    holds: Annotated[
        tuple[Annotated[str, Meta(min_length=3, max_length=LONGEST)], ...], Meta(min_length=1, max_length=20)
    ]

    def __post_init__(self) -> None:
        _ = self.statements

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(statement(text) for text in self.holds)

    @property
    def names(self) -> frozenset[str]:
        """The figures that it needs."""
        return frozenset(name for each in self.statements for name in each.names)


def check_reasons(
    reasons: Iterable[Because], texts: Iterable[str], figures: Mapping[str, Figure], *, changed: bool
) -> None:
    """Raise ValueError for a reason of no sentence in `texts`, or with nothing that would show it.

    Args:
        changed: whether the run on screen may have interventions, so that one without them differs from it.
    """
    whole = "\n".join(map(_in_one_line, texts))
    for reason in reasons:
        if _in_one_line(reason.says) not in whole:
            raise ValueError(f"it gives a reason for “{reason.says[:80]}”, and does not say that")
        for name in sorted(reason.names):
            if name not in figures:
                raise ValueError(f"there is no figure “{name[:60]}” among its figures")
        used = [figures[name] for name in reason.names]
        if not any(f.intervenes or f.kind in COMPARING or (changed and f.unchanged) for f in used):
            raise ValueError(
                f"nothing shows “{reason.says[:80]}”: one of its figures must be of a run with other interventions, or "
                "of another text"
            )


def unshown(texts: Iterable[str], reasons: Iterable[Because]) -> tuple[str, ...]:
    """The sentences in `texts` that say why the model does something, and that none of `reasons` shows."""
    shown = [_in_one_line(reason.says) for reason in reasons]
    sentences = [_in_one_line(part) for text in texts for part in _SENTENCE_END.split(text) if part]
    return tuple(s for s in sentences if names_a_cause(s) and not any(says in s for says in shown))


def names_a_cause(sentence: str) -> bool:
    """Whether a sentence says why something is so, as far as its words tell."""
    return _WHY.search(_NO_CAUSE.sub("", sentence)) is not None


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _role_words(name: str) -> str:
    """What a head does that has this role, or none."""
    if name == NO_ROLE:
        return "none of the roles plainly"
    role = ROLE_NAMES[name]
    return f"attends to {role.title}" if role.kind == "pattern" else f"attends by grammar, {role.title}"


_MASK_WORDS = {
    OTHER_MASK: "a mask without a name",
    **{name: kind.title.lower() for name, kind in MASK_KINDS.items()},
    "none": "no mask",
}
