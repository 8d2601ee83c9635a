"""A panel is drawn when something that it reads has changed, and only then; and what it reads it has named."""

from __future__ import annotations

from typing import ClassVar

import pytest

from attention_explorer.panels import registry
from attention_explorer.panels.base import Panel
from attention_explorer.panels.input.panel import InputPanel
from attention_explorer.panels.trust.panel import TrustStrip
from attention_explorer.session.intents import Busy, SelectHead, SetText, SetView
from attention_explorer.session.live import Live
from attention_explorer.session.state import State
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.reading import recorded
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

FIVE = SiteRef("decoder", 5)


class OfAHead(Panel):
    """Draws the selected head, and says so."""

    name = "of a head"
    title = "Of a head"
    reads: ClassVar[tuple[str | type[Result], ...] | None] = ("selection", HeadView)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.drawn: list[State] = []
        self.before: list[State | None] = []
        self.live: list[frozenset[Lane]] = []

    def wants(self, state: State) -> Request | None:
        return HeadRequest(run=1, site=FIVE, head=state.selection.head)

    def render_state(self, state: State, old: State | None) -> None:
        self.drawn.append(state)
        self.before.append(old)

    def render_live(self, live: Live, old: Live | None) -> None:
        self.live.append(live.busy)


class Forgetful(OfAHead):
    """Reads more than it says."""

    def render_state(self, state: State, old: State | None) -> None:
        assert state.document.text is not None
        assert state.ran is not None  # which all are drawn for

    def prints(self, state: State) -> Request | None:
        assert not state.up_to_date or state.ran is not None
        return None


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


def test_what_it_does_not_read_does_not_draw_it(qtbot, session):
    panel = shown(qtbot, OfAHead, session)
    assert len(panel.drawn) == 1
    session.dispatch(SetText("Tom ran"))
    session.dispatch(SetView("top", 3))
    session.arrive(answers.prediction_view())
    assert len(panel.drawn) == 1


def test_what_it_reads_draws_it_and_old_is_what_was_drawn_last(qtbot, session):
    panel = shown(qtbot, OfAHead, session)
    session.dispatch(SetText("Tom ran"))
    session.dispatch(SelectHead(FIVE, 2))
    assert [state.selection.head for state in panel.drawn][1:] == [2]
    assert panel.before == [None, panel.drawn[0]]
    session.arrive(answers.head_view(head=2))
    assert len(panel.drawn) == 3
    session.arrive(answers.head_view(head=2))  # another answer, however alike
    assert len(panel.drawn) == 4


def test_a_run_and_a_model_draw_all(qtbot, session):
    panel = shown(qtbot, OfAHead, session)
    session.arrive(answers.ran(run=2))
    session.arrive(answers.loaded("another"))
    assert len(panel.drawn) >= 2


def test_hidden_it_is_drawn_once_when_it_is_seen(qtbot, session):
    panel = shown(qtbot, OfAHead, session)
    panel.hide()
    session.dispatch(SelectHead(FIVE, 2))
    session.dispatch(SelectHead(FIVE, 3))
    assert len(panel.drawn) == 1
    panel.show()
    assert [state.selection.head for state in panel.drawn][1:] == [3]
    panel.hide()
    session.dispatch(SetText("Tom ran"))
    panel.show()
    assert len(panel.drawn) == 2


def test_what_is_under_way_is_told_apart(qtbot, session):
    panel = shown(qtbot, OfAHead, session)
    session.dispatch(Busy(frozenset({HeadRequest.lane})))
    assert len(panel.drawn) == 1
    assert panel.live == [frozenset(), frozenset({HeadRequest.lane})]


def test_it_asks_again_only_for_what_it_reads(qtbot, session):
    panel = shown(qtbot, OfAHead, session)
    asked = len(session.asked)
    session.dispatch(SetText("Tom ran"))
    assert [request for request in session.asked[asked:] if isinstance(request, HeadRequest)] == []
    session.dispatch(SelectHead(FIVE, 2))
    assert [r.head for r in session.asked[asked:] if isinstance(r, HeadRequest)] == [2]
    assert panel.isVisible()


def test_one_that_says_nothing_is_drawn_at_every_change(qtbot, session):
    class Open(OfAHead):
        reads = None

    panel = shown(qtbot, Open, session)
    session.dispatch(SetText("Tom ran"))
    assert len(panel.drawn) == 2
    session.dispatch(Busy(frozenset({HeadRequest.lane})))
    assert len(panel.drawn) == 2


def test_what_is_read_and_not_named_is_found(qtbot, session, reading):
    with recorded() as found:
        shown(qtbot, Forgetful, session)
    assert found.undeclared() == {"Forgetful": {"document.text", "up_to_date"}}
    reading.of.clear()  # it was meant to


def test_every_panel_of_ours_says_what_it_reads():
    kinds = [InputPanel, TrustStrip, *(point.load() for point in registry.BUILT_IN)]
    assert [kind.__name__ for kind in kinds if kind.reads is None] == []
