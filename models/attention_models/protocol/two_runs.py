"""Two runs side by side: A, which is open, and B, another state of any kind. Of texts, checkpoints, interventions.

Not to be confused with `attention_models.protocol.comparison`: that is one run beside the same text without its
interventions.

    the panel posts    TwoRunsRequest(run=ran.run, site=…, head=…, other=OtherRun(inputs=…))
    and is answered    TwoRunsView, at first with `done` below 1: it asks again with `have` set to that `done`
    when B goes        DropOtherRequest()
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from attention_models.protocol.request import Lane, Request, Result, RunRequest
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import Candidate, Placement, SeenPicture, Site, SiteRef, StackInfo, Tile, Token

if TYPE_CHECKING:
    import numpy as np


# Which tokens of one run stand for which of another: what two runs are compared along.


AlignedBy = Literal["place", "patches", "characters", "words"]
"""What tokens were aligned by: their place, that of patches in a picture, the characters of one text that they cover,
or the words of two texts."""

HOW = {
    "place": "token by token: both runs have the same tokens",
    "patches": "patch by patch, by their place in the picture",
    "characters": "by the characters they cover: one text, cut into other tokens",
    "words": "by words: as few as can be are added, left out or replaced between the two texts",
}
"""As it stands after "aligned"."""


@dataclass(frozen=True, slots=True)
class AlignedPlace:
    """Tokens of A and of B that stand for each other: a range each, (first, behind the last). Alone, one is empty.

    Mostly one token each. Where tokenizers cut a text otherwise, the fewest whole tokens that cover the same
    characters; where a word stands in the place of another, all tokens of both.
    """

    a: tuple[int, int]
    b: tuple[int, int]
    same: bool = (
        True  # both cover the same characters, but for case and white space; False of a word in another's place
    )

    @property
    def is_shared(self) -> bool:
        """Whether both runs have tokens here."""
        return self.a[0] < self.a[1] and self.b[0] < self.b[1]

    @property
    def is_single(self) -> bool:
        """Whether it is one token of each."""
        return self.a[1] - self.a[0] == 1 == self.b[1] - self.b[0]


@dataclass(frozen=True, slots=True)
class AlignedAxis:
    """The queries, or the keys, of two runs in one order: every token of either is in exactly one place."""

    places: tuple[AlignedPlace, ...]
    by: AlignedBy
    _of_a: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _of_b: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            found: list[int] = []
            for i, place in enumerate(self.places):
                first, end = getattr(place, name)
                found += [i] * (end - first)
            object.__setattr__(self, f"_of_{name}", tuple(found))

    def __len__(self) -> int:
        return len(self.places)

    @property
    def how(self) -> str:
        """After "aligned": "by words: …"."""
        return HOW[self.by]

    @property
    def is_single(self) -> bool:
        """Whether every shared place is one token of each: no weight is merged with another."""
        return all(place.is_single for place in self.places if place.is_shared)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(place of A's token, place of B's token) of every two that are in one place, in the order of A."""
        return tuple(
            (i, j) for place in self.places if place.is_shared for i in range(*place.a) for j in range(*place.b)
        )

    @property
    def alone_a(self) -> tuple[int, ...]:
        """A's tokens for which B has none."""
        return tuple(i for place in self.places if not place.is_shared for i in range(*place.a))

    @property
    def alone_b(self) -> tuple[int, ...]:
        """B's tokens for which A has none."""
        return tuple(j for place in self.places if not place.is_shared for j in range(*place.b))

    def place_of_a(self, token: int) -> int | None:
        """The place that A's token is in; None for no token of A."""
        return self._of_a[token] if 0 <= token < len(self._of_a) else None

    def place_of_b(self, token: int) -> int | None:
        """The place that B's token is in; None for no token of B."""
        return self._of_b[token] if 0 <= token < len(self._of_b) else None

    def b_of(self, token: int) -> range:
        """B's tokens that stand for A's token; empty where none does."""
        place = self.place_of_a(token)
        return range(0) if place is None else range(*self.places[place].b)

    def a_of(self, token: int) -> range:
        """A's tokens that stand for B's token; empty where none does."""
        place = self.place_of_b(token)
        return range(0) if place is None else range(*self.places[place].a)


Matching = Literal["index", "similarity"]
"""Which head of B is held against one of A: that of the same layer and number, or the one that is most like it."""

OutputKind = Literal["words", "classes", "none"]

_LANE = Lane("view:two runs", finishes=True)


@dataclass(frozen=True, slots=True)
class OtherRun:
    """What B is: a checkpoint and what it is given.

    Attributes:
        inputs: as of a forward request; an encoder-decoder model without a `target` writes its own.
        reference: the checkpoint's, "" for the open one. That of the open one means the open one too.
        placement: where it is opened; None for where the open one is. Of the open checkpoint it is ignored.
    """

    inputs: RunInputs
    reference: str = ""
    placement: Placement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRunsRequest(RunRequest):
    """Run `run`, which is A, beside B. Answered by `TwoRunsView`, or by a `Failure` where B cannot be opened or run.

    B is opened and run once; both are kept for the requests that follow, until B is another or a `DropOtherRequest`
    comes. Another head, tile or position costs no forward pass.

    Attributes:
        site, head: the head of A that is shown; None (a model without attention) for outputs alone.
        other: None for the same run: two heads of it are shown, and nothing is run.
        other_site, other_head: the head of B that is shown; None for the one that `matching` holds against A's.
        matching: by "index" where stacks have the same layers and heads, else by similarity: the view says which.
        position: of A's tokens, where it says what is shown above; None for the end of the text, of a masked model
            its first mask. B says it at the token that stands for that one.
        top: how many tokens or classes are named.
        tile: of a map that is long, the part that is wanted, counted in places of `TwoRunsView.queries` and `keys`;
            None for all of it in one tile.
        have: the `done` of the answer before it.
    """

    lane: ClassVar[Lane] = _LANE
    activity: ClassVar[str] = "comparing the two runs"
    answered_by: ClassVar[str] = "attention_models.compare.answering:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.two_runs:write"
    no_memory: ClassVar[str] = (
        "There is not enough memory for B beside what is open. Shorten its text, or choose a smaller checkpoint for B."
    )
    site: SiteRef | None
    head: int = 0
    other: OtherRun | None = None
    other_site: SiteRef | None = None
    other_head: int | None = None
    matching: Matching = "index"
    position: int | None = None
    top: int = 6
    tile: Tile | None = None
    have: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOtherRequest(Request):
    """Let go of B: of its run and, where it is another checkpoint, of its model. Answered by `OtherDropped`.

    In the lane of `TwoRunsRequest`; `session.call_off(TwoRunsRequest.lane)` calls off what runs for B.
    """

    lane: ClassVar[Lane] = _LANE
    activity: ClassVar[str] = "letting go of B"
    answered_by: ClassVar[str] = "attention_models.compare.answering:drop"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OtherDropped(Result):
    request: DropOtherRequest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunOutput:
    """What one of the runs says.

    Attributes:
        kind: "words" of a model that says tokens; "classes" of a classifier or a vision model; "none".
        why: where `kind` is "none" a sentence that says why.
        position: of the token at which it says it.
        candidates: the likeliest first, with probability (NaN of a class that is a plain number) and logit; ids are
            of its own vocabulary, `label` is what to draw.
        entropy: bits, of the whole distribution; NaN of classes that do not exclude each other.
        loss: nats, the mean cross-entropy of the text's own next tokens; None for other than causal models, and for a
            long text.
    """

    kind: OutputKind
    why: str = ""
    position: int = 0
    candidates: tuple[Candidate, ...] = ()
    entropy: float = float("nan")
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class SaidByBoth:
    """One token or class, and how likely each run finds it. NaN where a run's vocabulary has no such single token."""

    label: str
    probability_a: float
    probability_b: float
    logit_a: float
    logit_b: float
    id_a: int | None = None  # of each run's own vocabulary, or classes; None where it has no such token
    id_b: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunSide:
    """One of the two runs: what it is of, what it says, and the head of it that is shown.

    Attributes:
        reference, name: the checkpoint as it was asked for, and what to call it.
        family, model_type, stacks: as in `CheckpointInfo`.
        files: (name, SHA-256 in hexadecimal) of each of its weight files; empty for a model that is no file, and for
            files of over 200 MB that nothing else has read for their hash.
        device, dtype: "cpu", "cuda:0"; "float32".
        text: what it was given to read, as plain text; a vision model's picture.
        written: what the decoder of an encoder-decoder model was given, or wrote itself.
        tokens, source, sites, seen: as in `Ran`.
        interventions: each in words, "scores × 0.5, everywhere"; empty for the model as it is.
        adapter: the name of the LoRA adapter that is in its weights, "" where none is, or it is off.
        output: what it says.
        site, head: the head that is shown; None where there is none, or its counterpart is not known yet.
        weights: (queries, keys) float32, rows sum to 1 (less a sink's share), masked cells exactly 0. None without a
            head, and where the map is long (`attention_models.protocol.values.is_long`): see `TwoRunsView.maps`.
        masked: (queries, keys) bool; None where no cell is masked, or `weights` is None.
    """

    reference: str
    name: str
    family: str
    model_type: str
    stacks: tuple[StackInfo, ...]
    files: tuple[tuple[str, str], ...]
    device: str
    dtype: str
    text: str
    written: str
    tokens: tuple[Token, ...]
    source: tuple[Token, ...]
    sites: tuple[Site, ...]
    seen: SeenPicture | None
    interventions: tuple[str, ...]
    adapter: str
    output: RunOutput
    site: SiteRef | None = None
    head: int | None = None
    weights: np.ndarray | None = None
    masked: np.ndarray | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignedMaps:
    """The two heads that are shown, and their difference, over the places of `TwoRunsView.queries` and `keys`.

    All arrays have one shape, (down, across): of maps that are not long one cell for each pair of places. A place of
    several tokens is averaged over the tokens it is from and summed over those it is to, as words are elsewhere. What a
    run has no tokens for is NaN in its map and in the difference.

    Of a long map a pixel stands for `cell` x `cell` places: of `a` and `b` it is the largest weight, of the difference
    the one that is furthest from 0, both over those of its cells that have one.

    Attributes:
        a, b: float32.
        difference: float32, a - b, from -1 to 1.
        masked_a, masked_b: bool, True where every token of the place is masked (of several cells, in all).
        largest: the largest absolute difference in these arrays; 0.0 where there is none.
        largest_at: (query place, key place) of it; None where no cell is shared, or all differences are 0.
        tile: the part of a long map that this is; None for all of a map that is not long.
        cell: places along the side of a pixel.
    """

    a: np.ndarray
    b: np.ndarray
    difference: np.ndarray
    masked_a: np.ndarray
    masked_b: np.ndarray
    largest: float
    largest_at: tuple[int, int] | None
    tile: Tile | None = None
    cell: int = 1

    @property
    def masked_throughout(self) -> np.ndarray:
        """(down, across) bool: masked in both, so that there is no weight to differ."""
        both: np.ndarray = self.masked_a & self.masked_b
        return both


@dataclass(frozen=True, slots=True)
class HeadChange:
    """How much one head of A differs from the head of B that it is held against.

    `change` is the mean over aligned queries, but padding, of the total variation distance of their rows, 0 to 1:

        1/2 (sum over shared places |p_k - q_k| + sum of p alone + sum of q alone + |r_p - r_q|)

    where p and q are the two rows over the places of the keys, "alone" are keys that only one run has, and r is what a
    row lacks to 1: the share of a sink, or all of a row to which nothing is visible. 0 means the same weights, 1 that
    the two attend to nothing in common. NaN while it is not computed.

    `similarity` is 1 less that distance, over the queries that heads were matched by (`TwoRunsView.matched_over`); NaN
    where they were matched by index.
    """

    site: SiteRef
    head: int
    other_site: SiteRef
    other_head: int
    change: float
    similarity: float = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRunsView(Result):
    """A and B side by side.

    Attributes:
        a, b: the two runs. Of two heads of one run `b` is the same run, with the other head.
        same_checkpoint: both are one open model.
        same_run: both have the same inputs too: `other` is None, or says what A is.
        said: the likeliest of both, by the larger of their two probabilities; empty where not both say words, or not
            both classes of the same kinds.
        queries, keys: how the tokens of the two heads' rows and columns are aligned; None where `why_not` says why not.
        maps: the two heads and their difference; None without a head of B, or without alignment.
        matching: by what heads were matched. None where no head of A has a counterpart.
        why_not_by_index: where "index" was asked for and could not be had, a sentence that says why.
        changes: of every head of A that has a counterpart, in the order of `a.sites`; empty where `other` is None.
        matched_over: queries that similarity was found over, spread evenly over those that are aligned; 0 by index.
        why_not: sentences about what cannot be compared, and why; empty where all can.
        remarks: sentences about what is compared in another way than one might think.
        done: the share that is computed; below 1 `changes` holds NaN, or heads are not matched yet.
    """

    request: TwoRunsRequest
    a: RunSide
    b: RunSide
    same_checkpoint: bool
    same_run: bool
    said: tuple[SaidByBoth, ...] = ()
    queries: AlignedAxis | None = None
    keys: AlignedAxis | None = None
    maps: AlignedMaps | None = None
    matching: Matching | None = None
    why_not_by_index: str = ""
    changes: tuple[HeadChange, ...] = ()
    matched_over: int = 0
    why_not: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    done: float = 1.0

    @property
    def changed_most(self) -> tuple[HeadChange, ...]:
        """Every head whose change is computed, the largest first; of equal ones that of the lower layer and number."""
        known = [change for change in self.changes if change.change == change.change]
        return tuple(sorted(known, key=lambda change: -change.change))

    def counterpart(self, site: SiteRef, head: int) -> HeadChange | None:
        """What is known of one head of A; None where no head of B is held against it."""
        return next((change for change in self.changes if (change.site, change.head) == (site, head)), None)
