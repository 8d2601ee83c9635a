"""A figure of one head over the texts of a file, as it is on screen: what is written as PyTorch. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.values import SiteRef

if TYPE_CHECKING:
    import numpy as np


# A file of texts read through a model: what heads do on average, and where they do something most. No torch.


POSITIONS = 32
"""Places of a text, from its beginning, whose weights are averaged over texts."""

FARTHEST = 64
"""Tokens apart up to which weights are averaged by distance."""

WORD = "word:"
"""Before a token, in a question about that token."""

MOST_HITS = 20
MOST_ROWS = 40


@dataclass(frozen=True, slots=True)
class CorpusQuestion:
    """What is looked for in the texts beside the means.

    Attributes:
        attends_to: where heads attend to it most is listed: the name of a pattern of `attention_models.protocol.roles`,
            or "word:the" for a token that is drawn so.
        rows_of: the rows of tokens that are drawn so are gathered, to be compared; "" for none.
    """

    attends_to: str = ""
    rows_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRequest(Request):
    """Read the next texts of a file through the open model. Answered by `CorpusView`.

    A corpus is many of these, each with the `answers` of the one before as its `have`, so that everything else is
    served in between; the engine goes on from where it is.
    """

    lane: ClassVar[Lane] = Lane("corpus")
    activity: ClassVar[str] = "reading the texts of a file"
    answered_by: ClassVar[str] = "attention_models.corpus.corpus:answer"
    path: str
    question: CorpusQuestion = CorpusQuestion()
    interventions: tuple[Intervention, ...] = ()  # what is changed in every run
    have: int = 0  # answers that came so far; 0 begins anew
    stop: bool = False  # forget it; what was found so far is the answer


@dataclass(frozen=True, slots=True)
class Hit:
    """A query that attends much to what was asked about."""

    line: int  # of the file, from 1
    text: str
    second: str | None  # of a pair; the target of a translation
    query: int  # places among the tokens
    key: int  # of the largest of the weights that count
    weight: float  # of that key
    score: float  # of the whole row: the sum over the keys that count
    before: str  # what stands before the query in its text, cut to a few words
    query_word: str
    key_word: str


@dataclass(frozen=True, slots=True, eq=False)
class WordRow:
    """What a token attends to in one text, for every head."""

    line: int
    text: str
    second: str | None
    query: int
    keys: tuple[str, ...]
    weights: tuple[np.ndarray, ...]  # of each site that has such rows, (heads, keys) float32; NaN where masked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorpusView(Result):
    """What was found so far."""

    request: CorpusRequest
    sites: tuple[SiteRef, ...]
    mean: np.ndarray  # (sites, heads, positions, positions) float32: the mean weight over texts that have both places
    texts_at: np.ndarray  # (sites, positions, positions) int: over how many; 0 where the key is masked
    texts_with: np.ndarray  # (sites, positions, positions) int: how many have both places, masked or not
    distances: np.ndarray  # (distances,) int: query - key
    by_distance: np.ndarray  # (sites, heads, distances) float32, of rows that see two keys or more; else NaN
    scores: np.ndarray  # (sites, heads) float64: how much each does what was asked, NaN where it was not
    even: np.ndarray  # (sites,) float64: what an even head would score
    hits: tuple[tuple[tuple[Hit, ...], ...], ...]  # of each site and head, the highest score first
    rows: tuple[WordRow, ...]
    row_sites: tuple[SiteRef, ...]  # the sites that `WordRow.weights` are of
    texts: int  # that were run
    lines: int  # of the file that were read, those left out included
    tokens: int
    share: float  # of the file
    ended: bool
    left_out: tuple[str, ...]  # sentences, the first few
    left_out_count: int
    seconds: float
    written: int = 0  # texts whose target the model wrote itself, for the file has none
    broken: str = ""  # a sentence about the line at which the file could not be read on
    answers: int = 0  # how many there were, this one included


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
