"""What a run would say if part of another run's activations stood in it: activation patching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from attention_models.protocol.choices import check_choice
from attention_models.protocol.effects import LIKELIEST, Metric, MetricView
from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import SiteRef

if TYPE_CHECKING:
    import numpy as np

Patched = Literal["residual", "attention", "mlp", "head", "pattern"]
"""The stream as it enters a block, what its attention or its feed-forward network adds, at one position; the output of
a head, or its weights alone, at all."""

Align = Literal["same", "start", "end", "tokens"]
"""Which token stands for which: in texts of one length, counted from the start or the end, or equal ones in order."""

BY_POSITION = ("residual", "attention", "mlp")


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchRequest(RunRequest):
    """`aim` in run `run` where activations of a run of `other` are copied into it, place by place.

    An answer holds what could be computed in a moment; `have` is the `done` of the one before.
    """

    lane: ClassVar[Lane] = Lane("view:patch")
    activity: ClassVar[str] = "patching activations"
    answered_by: ClassVar[str] = "attention_models.effects.patching:answer"
    other: str
    kind: Patched = "residual"
    align: Align = "same"
    aim: Metric = LIKELIEST
    have: float = 0.0

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_choice("kind of activation", self.kind, Patched)
        check_choice("way to align tokens", self.align, Align)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchColumnRequest(PatchRequest):
    """The same, of which one position (or head, of `site`) is meant: it is written as PyTorch.

    Of a position that is every block, so that `site` is None.
    """

    activity: ClassVar[str] = "patching one position or head"
    printed_by: ClassVar[str] = "attention_models.scripts.patching:write"
    site: SiteRef | None = None
    column: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatchView(Result):
    """`values` are (rows, columns) float64, NaN where nothing is computed or no token stands for the column.

    Where `why` is said the texts are of different length and nothing says which token stands for which.

    Rows are blocks, columns positions of the run on screen; of heads and patterns rows are attention modules and
    columns heads.
    """

    request: PatchRequest
    aim: MetricView  # its value is that of the run as it is
    other_value: float  # the same in the other run
    rows: tuple[SiteRef, ...]
    values: np.ndarray
    stands_for: tuple[int | None, ...]  # of each position of this run the one of the other run
    other_labels: tuple[str, ...]  # the other run's tokens
    done: float = 1.0
    why: str = ""

    @property
    def shares(self) -> np.ndarray:
        """How far each patch goes from this run to the other: 0 nothing, 1 all the way. NaN where both say the same."""
        from numpy import full_like, nan

        way = self.other_value - self.aim.value
        return (self.values - self.aim.value) / way if abs(way) > 1e-9 else full_like(self.values, nan)
