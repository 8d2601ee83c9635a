"""What the engine answered last: the newest answer of each kind, whatever kinds there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from attention_models.protocol.decoding import DecodeSamplesView, DecodeStepView
from attention_models.protocol.loading import Loaded
from attention_models.protocol.request import Request, Result, RunRequest
from attention_models.protocol.running import Ran

ResultT = TypeVar("ResultT", bound=Result)


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Compared by identity: `new.results.ran is not old.results.ran`."""

    newest: Mapping[type[Result], Result] = field(default_factory=dict)

    def of(self, kind: type[ResultT]) -> ResultT | None:
        """The newest answer of this very class; None where there is none, or it is no longer of what is on screen."""
        return self.newest.get(kind)  # type: ignore[return-value]

    def has_answer_to(self, request: Request) -> bool:
        """Whether the newest answer of its kind was to the same request."""
        return any(result.request == request for result in self.newest.values())

    def keeping(self, *results: Result) -> Results:
        """With `results` in the place of those of their kinds."""
        return Results({**self.newest, **{type(result): result for result in results}})

    def without(self, *kinds: type[Result]) -> Results:
        return Results({kind: result for kind, result in self.newest.items() if kind not in kinds})

    def of_no_model(self) -> Results:
        """Those that hold whatever model is open."""
        return Results({kind: result for kind, result in self.newest.items() if result.request.outlives_model})

    def of_other_weights(self) -> Results:
        """Those to show until others come where the open model's weights are others: of its run, and of no model."""
        kept = {
            kind: result
            for kind, result in self.newest.items()
            if result.request.outlives_model or kind is Ran or isinstance(result.request, RunRequest)
        }
        return Results(kept)

    @property
    def loaded(self) -> Loaded | None:
        return self.of(Loaded)

    @property
    def ran(self) -> Ran | None:
        return self.of(Ran)

    @property
    def decoded(self) -> DecodeStepView | DecodeSamplesView | None:
        """The last step of the player, of one text or of several."""
        return self.of(DecodeStepView) or self.of(DecodeSamplesView)
