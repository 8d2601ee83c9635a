"""What the window asks of the engine: frozen values, no torch.

The engine may answer from a thread, another process or another machine. A `Request` names its lane; within a lane the
newest request wins (see `explorer.compute.mailbox`). The answers are in `models.protocol.results`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from models.protocol.chat import Prompt
from models.protocol.values import DEFAULT_PLACEMENT, Placement, SiteRef, Tile

if TYPE_CHECKING:
    from models.protocol.interventions import Intervention


ShouldStop = Callable[[], bool]
"""Asked between blocks of work; once true the work raises `Cancelled`."""

Report = Callable[[str, float | None], None]
"""Told what is being done, and the share that is done (None where that is unknown)."""


def never() -> bool:
    """The `ShouldStop` of work that nobody calls off."""
    return False


class Cancelled(Exception):
    """The work was called off (`should_stop()` was true). Nobody waits for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`ticket` is set by the mailbox; a result whose ticket is no longer its lane's newest is dropped."""

    lane: ClassVar[str]
    ticket: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest(Request):
    """Open a checkpoint, a shipped name or a folder, on a device. Answered by `Loaded`."""

    lane: ClassVar[str] = "load"
    reference: str
    placement: Placement = DEFAULT_PLACEMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesRequest(Request):
    """Where models can run, and how much memory is free there now. Answered by `DevicesView`."""

    lane: ClassVar[str] = "view:devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardRequest(Request):
    """Run the open model on a text or a conversation, with what is to be changed. Answered by `Ran`."""

    lane: ClassVar[str] = "forward"
    text: Prompt
    interventions: tuple[Intervention, ...] = ()
    target: str | None = None  # for the decoder of an encoder-decoder model; None lets it write by beam search
    picture: str = ""  # what a vision model looks at, in place of the text: a path, or "sample:NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRequest(Request):
    """The whole weight matrix of one head of run `run`. Answered by `HeadView`. For a site that is not long."""

    lane: ClassVar[str] = "view:head"
    run: int
    site: SiteRef
    head: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRequest(Request):
    """Where one query looks in one head of run `run`. Answered by `RowView`."""

    lane: ClassVar[str] = "view:row"
    run: int
    site: SiteRef
    head: int
    query: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TilesRequest(Request):
    """Parts of one head's map, those that matter most first. Answered by `TilesView`, which may hold fewer."""

    lane: ClassVar[str] = "view:tiles"
    run: int
    site: SiteRef
    head: int
    tiles: tuple[Tile, ...]
    pooling: str = "max"
    scale_rows: bool = False  # each weight divided by the largest of its row


@dataclass(frozen=True, slots=True, kw_only=True)
class AtlasRequest(Request):
    """All heads of run `run`, each pooled to at most `size` x `size`. Answered by `AtlasView`.

    Of a long text an answer holds what could be computed in a moment; asked again with `have` set to the share that is
    there, the engine goes on from it.
    """

    lane: ClassVar[str] = "view:atlas"
    run: int
    size: int
    pooling: str = "max"
    have: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRequest(Request):
    """The `top` likeliest tokens at each of `positions` of run `run`. Answered by `PredictionView`."""

    lane: ClassVar[str] = "view:prediction"
    run: int
    positions: tuple[int, ...]
    top: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest(Request):
    """One head of run `run` beside the same text run without interventions. Answered by `CompareView`.

    Of a long text an answer holds what could be computed in a moment, as that of an `AtlasRequest` does.
    """

    lane: ClassVar[str] = "view:compare"
    run: int
    site: SiteRef
    head: int
    position: int  # where the next token is compared
    top: int = 6
    have: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest(Request):
    """One cell's arithmetic, from q and k to the logit of token `target`. Answered by `CellView`.

    `target` is a vocabulary id, or None for the likeliest next token at `query`.
    """

    lane: ClassVar[str] = "view:cell"
    run: int
    site: SiteRef
    head: int
    query: int
    key: int
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceRequest(Request):
    """Why scores are divided by sqrt(d): random vectors, and one head of run `run`. Answered by `VarianceView`.

    Queries and keys are drawn with shape (batch, tokens, d) for each d. Without a run only they are measured.
    """

    lane: ClassVar[str] = "view:variance"
    widest: ClassVar[int] = 1024  # the largest d
    most_elements: ClassVar[int] = 1 << 24
    batch: int
    tokens: int
    deviation: float  # of every component
    seed: int
    run: int | None = None
    site: SiteRef | None = None
    head: int = 0

    def refusal(self) -> str:
        """A sentence that says why these numbers cannot be drawn; "" where they can."""
        elements = self.batch * self.tokens * self.widest
        if not (self.batch >= 1 and self.tokens >= 2):
            return f"B is {self.batch} and T is {self.tokens}: it takes at least 1 row and 2 keys."
        if not 0 < self.deviation <= 100:
            return f"The standard deviation m is {self.deviation:g}: choose more than 0 and at most 100."
        if self.seed < 0:
            return f"The seed is {self.seed}: choose 0 or more."
        if elements > self.most_elements:
            most = self.most_elements // self.widest
            return (
                f"B × T × {self.widest} is {elements:,} numbers, more than {self.most_elements:,}. "
                f"Choose B × T of at most {most:,}."
            )
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionsRequest(Request):
    """How the open model tells positions apart, seen from one cell of run `run`. Answered by `PositionsView`."""

    lane: ClassVar[str] = "view:positions"
    run: int
    site: SiteRef
    head: int
    query: int
    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPositionsRequest(Request):
    """How alike the positions of the patches of run `run` are to a vision model. Answered by `PatchPositionsView`."""

    lane: ClassVar[str] = "view:patches"
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleRequest(Request):
    """Run the text of run `run` in another order of words, with positions and without. Answered by `ShuffleView`.

    Seed 0 swaps the first word and the last; every other seed is an order of its own.
    """

    lane: ClassVar[str] = "view:shuffle"
    run: int
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentRequest(Request):
    """Cross-attention weights of run `run` as an alignment of its two texts. Answered by `AlignmentView`.

    One head of `site`; the mean over the site's heads where `head` is None; over every cross head where both are.
    """

    lane: ClassVar[str] = "view:alignment"
    run: int
    site: SiteRef | None = None
    head: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentRequest(Request):
    """The hidden states of run `run` of a recurrent model. Answered by `RecurrentView`."""

    lane: ClassVar[str] = "view:recurrent"
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRequest(Request):
    """Compare run `run` with the model's own eager forward, or with its papers' formulas. Answered by `TrustReport`."""

    lane: ClassVar[str] = "trust"
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest(Request):
    """Let the model write one more token after run `run` (or fill its surest mask). Answered by `Stepped`."""

    lane: ClassVar[str] = "decode"
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest(Request):
    """Write all weights of run `run` to the .npz file `path`. Answered by `Exported`."""

    lane: ClassVar[str] = "export"
    run: int
    path: str
