"""What every panel does: when it draws, what it asks for, and that it asks once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout

from explorer.panels.base import Panel
from explorer.panels.cell.panel import CellPanel
from explorer.panels.selected_head import (
    wanted_head,
)
from explorer.session.intents import OpenCheckpoint, SelectHead, Show
from explorer.session.state import Notice, State
from explorer.widgets.card import Card
from models.protocol.head import HeadRequest, HeadView
from models.protocol.loading import Loaded, LoadRequest
from models.protocol.request import Request
from models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

FIVE = SiteRef("decoder", 5)


class Watcher(Panel):
    """Wants the selected head and keeps what it was told to draw."""

    name = "watcher"
    title = "Watcher"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.drawn: list[State] = []

    def wants(self, state: State) -> Request | None:
        return wanted_head(state)

    def render_state(self, state: State, old: State | None) -> None:
        self.drawn.append(state)


def asked_heads(session: SilentSession) -> list[int]:
    return [request.head for request in session.asked if isinstance(request, HeadRequest)]


@pytest.fixture
def session(running) -> SilentSession:
    return SilentSession(running)


@pytest.fixture
def running() -> State:
    return answers.after(State(), answers.loaded(), answers.ran())


def test_it_draws_and_asks_when_it_is_shown(qtbot, session):
    panel = shown(qtbot, Watcher, session)
    assert panel.drawn == [session.state]
    assert asked_heads(session) == [5]
    assert panel.is_waiting()
    session.arrive(answers.head_view())
    assert not panel.is_waiting()
    assert len(panel.drawn) == 2


def test_it_asks_once_however_often_the_state_changes(qtbot, session):
    shown(qtbot, Watcher, session)
    for text in ("a", "b", "c"):
        session.dispatch(Show(Notice("info", text)))
    assert asked_heads(session) == [5]


def test_a_hidden_one_neither_draws_nor_asks_and_catches_up(qtbot, session):
    panel = shown(qtbot, Watcher, session)
    panel.hide()
    panel.drawn.clear()
    session.dispatch(SelectHead(FIVE, 2))
    session.dispatch(SelectHead(FIVE, 3))
    assert panel.drawn == []
    assert not panel.is_waiting()
    assert asked_heads(session) == [5]
    panel.show()
    assert panel.drawn == [session.state]
    assert asked_heads(session) == [5, 3]


def test_showing_it_again_without_a_change_draws_nothing(qtbot, session):
    panel = shown(qtbot, Watcher, session)
    panel.hide()
    panel.drawn.clear()
    panel.show()
    assert panel.drawn == []


def test_it_asks_again_for_what_it_left_before_the_answer_came(qtbot, session):
    """Head 2 is chosen, then head 5 again, which is on screen; head 2's answer is dropped. Then head 2 once more."""
    session.arrive(answers.head_view(head=5))
    shown(qtbot, Watcher, session)
    for head in (2, 5):
        session.dispatch(SelectHead(FIVE, head))
    session.arrive(answers.head_view(head=2))
    assert session.state.results.of(HeadView).request.head == 5
    session.dispatch(SelectHead(FIVE, 2))
    assert asked_heads(session) == [2, 2]


@pytest.mark.parametrize("hidden_meanwhile", [False, True])
def test_it_asks_again_for_what_a_failed_load_called_off(qtbot, session, hidden_meanwhile):
    panel = shown(qtbot, Watcher, session)
    session.dispatch(OpenCheckpoint("/nowhere"))
    panel.setVisible(not hidden_meanwhile)
    session.arrive(answers.failure(LoadRequest(reference="/nowhere"), "There is no such folder."))
    panel.show()
    assert asked_heads(session) == [5, 5]


def test_a_request_that_fails_is_not_repeated_for_ever(qtbot, session):
    shown(qtbot, Watcher, session)
    session.arrive(answers.failure(session.asked[-1], "There is not enough memory for this."))
    session.dispatch(Show(None))
    assert asked_heads(session) == [5]


class Scorer(Watcher):
    """All that it shows is made of scores."""

    name = "scorer"
    needs_scores = True

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.card = Card("Scores")
        self.button, self.content = QPushButton("Sort"), QLabel("numbers")
        self.card.add_control(self.button)
        self.card.set_content(self.content)
        QVBoxLayout(self).addWidget(self.card)


def weights_alone(reason: str = "It gives its weights alone.") -> Loaded:
    given = answers.loaded()
    return replace(given, info=replace(given.info, weights_only=reason))


def test_what_has_no_scores_is_said_in_their_place(qtbot):
    session = SilentSession(answers.after(State(), weights_alone(), answers.ran()))
    scorer, watcher = shown(qtbot, Scorer, session), shown(qtbot, Watcher, session)
    assert scorer.card.refusal == "It gives its weights alone."
    assert not scorer.content.isVisible()
    assert not scorer.button.isVisible()
    assert not scorer.is_waiting()
    assert asked_heads(session) == [5]  # the watcher's
    assert watcher.is_waiting()


def test_scores_are_shown_again_with_the_next_model(qtbot):
    session = SilentSession(answers.after(State(), weights_alone(), answers.ran()))
    scorer = shown(qtbot, Scorer, session)
    assert asked_heads(session) == []
    session.dispatch(OpenCheckpoint("other"))
    session.arrive(answers.loaded("other"), answers.ran(run=2))
    assert scorer.card.refusal == ""
    assert scorer.content.isVisible()
    assert scorer.button.isVisible()
    assert asked_heads(session) == [0]


def test_a_panel_that_is_made_of_scores(qtbot):
    session = SilentSession(answers.after(State(), weights_alone(), answers.ran()))
    panel = shown(qtbot, CellPanel, session)
    assert panel.card.refusal == "It gives its weights alone."
    assert session.asked == []
