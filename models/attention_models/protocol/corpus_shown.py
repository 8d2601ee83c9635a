"""A figure of one head over the texts of a file, as it is on screen: what is written as PyTorch. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.corpus import CorpusRequest, Hit
from attention_models.protocol.request import Request
from attention_models.protocol.values import SiteRef


@dataclass(frozen=True, slots=True)
class ShownCell:
    """The mean weight from one place of the texts to another."""

    query: int
    key: int
    mean: float


@dataclass(frozen=True, slots=True)
class ShownDistances:
    """Mean weights by distance."""

    means: tuple[tuple[int, float], ...]  # (query - key, mean)


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """Where the head does what was asked, and how much it does that over all texts."""

    score: float
    hit: Hit | None  # None where no text has such a place


@dataclass(frozen=True, slots=True)
class ShownRow:
    """What a token attends to in one text."""

    line: int
    text: str
    second: str | None  # of a pair; the target of a translation
    query: int
    weights: tuple[tuple[int, float], ...]  # (key, weight) of a few keys


CorpusFigure = ShownCell | ShownDistances | ShownPlace | ShownRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownInCorpus(Request):
    """A figure of one head, over so many texts and tokens of a file. `ended`: these are all that the file has."""

    printed_by: ClassVar[str] = "attention_models.scripts.corpus:write"
    of: CorpusRequest
    site: SiteRef
    head: int
    figure: CorpusFigure
    texts: int
    tokens: int
    ended: bool
