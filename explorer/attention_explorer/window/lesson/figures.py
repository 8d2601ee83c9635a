"""The figures of a step, of what is on screen: the engine is asked for those that are not known, once."""

from __future__ import annotations

from collections.abc import Mapping

from attention_explorer.session.figures import Figure
from attention_explorer.session.session import Session
from attention_explorer.session.state import Selection, State
from attention_explorer.session.statements import Value
from attention_models.protocol.facts import FactsRequest, FactsView


def has_run(state: State) -> bool:
    """Whether what is on screen was computed, and nothing is on its way that would change it."""
    return state.ran is not None and state.up_to_date and state.loading is None and state.example is None


class StepFigures:
    """Of one step at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked: FactsRequest | None = None

    def forget(self) -> None:
        """Ask again, also for what was asked for last: it may have been for others since."""
        self._asked = None

    def of(self, figures: Mapping[str, Figure], selection: Selection, state: State) -> dict[str, Value] | None:
        """Of the run of `state`, with this cell selected; None until they are computed."""
        assert state.ran is not None
        facts = tuple(figure.fact(selection) for figure in figures.values())
        request = FactsRequest(run=state.ran.run, facts=facts)
        view = state.results.of(FactsView)
        if view is not None and view.request == request:
            return dict(zip(figures, view.values, strict=True))
        if request != self._asked:
            self._asked = request
            self._session.request(request)
        return None
