"""What every panel does: when it draws, what it asks for, and that it asks once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.base import BEHIND, Panel
from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.selected_head import (
    wanted_head,
)
from attention_explorer.session.intents import Busy, OpenCheckpoint, SelectCell, SelectHead, SetText, Show
from attention_explorer.session.state import Notice, State
from attention_explorer.widgets.card import Card
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.request import Failure, Request
from attention_models.protocol.values import SiteRef
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


class Drawer(Watcher):
    """As `Watcher`, in a card."""

    name = "drawer"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        card = Card("Drawer")
        self.figure = QLabel("0.5")
        card.set_content(self.figure)
        self.fill(card)


@pytest.fixture
def drawer(qtbot, session) -> Drawer:
    drawer = shown(qtbot, Drawer, session)
    session.arrive(answers.head_view())
    return drawer


def darkest(widget: QWidget) -> int:
    """The darkest grey that is painted, 0 to 255."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)
    return min(image.pixelColor(x, y).value() for x in range(image.width()) for y in range(image.height()))


def test_figures_of_the_text_before_are_pale_until_the_new_one_ran(drawer, session, qtbot):
    dark = darkest(drawer.figure)
    assert not drawer.is_veiled
    session.dispatch(SetText("Anna went to Tom"))
    qtbot.waitUntil(lambda: drawer.is_veiled)
    assert darkest(drawer.figure) > dark + 60
    session.arrive(answers.ran(run=2, text="Anna went to Tom"), answers.head_view(run=2))
    assert not drawer.is_veiled
    assert darkest(drawer.figure) == dark


def test_so_are_those_of_the_model_before(drawer, session, qtbot):
    session.dispatch(OpenCheckpoint("story-bert"))
    qtbot.waitUntil(lambda: drawer.is_veiled)
    load = next(request for request in session.asked if isinstance(request, LoadRequest))
    session.arrive(Failure(request=load, sentence="It cannot be opened."))
    assert session.state.notice.text == "It cannot be opened."
    assert not drawer.is_veiled  # what is open stays open


def test_so_are_those_of_the_head_before_while_the_next_is_computed(drawer, session, qtbot):
    session.dispatch(SelectHead(FIVE, 2))
    session.dispatch(Busy(frozenset({HeadRequest.lane})))
    qtbot.waitUntil(lambda: drawer.is_veiled)
    drawer.show_about()
    assert [sentence for sentence in drawer.callout.sentences if sentence] == [BEHIND]
    session.arrive(answers.head_view(head=2))
    assert not drawer.is_veiled


def test_an_answer_that_comes_at_once_pales_nothing(drawer, session, qtbot):
    session.dispatch(SelectHead(FIVE, 2))
    session.dispatch(Busy(frozenset({HeadRequest.lane})))
    session.arrive(answers.head_view(head=2))
    session.dispatch(Busy(frozenset()))
    qtbot.wait(200)
    assert not drawer.is_veiled


def test_of_an_answer_in_parts_those_that_are_here_are_not_pale(drawer, session, qtbot, monkeypatch):
    wanted = AtlasRequest(run=1, size=4, have=0.5)
    monkeypatch.setattr(Drawer, "wants", lambda _self, _state: wanted)
    session.arrive(replace(answers.atlas_view(), done=0.5))
    session.dispatch(Busy(frozenset({AtlasRequest.lane})))
    qtbot.wait(200)
    assert not drawer.is_veiled
    wanted = AtlasRequest(run=2, size=4)
    session.arrive(answers.ran(run=2))
    qtbot.waitUntil(lambda: drawer.is_veiled)


def test_after_undo_the_run_on_screen_keeps_what_was_selected_in_it(drawer, session):
    """The restored cell is of the restored text: “follow 'm'” named a place of the one and a token of the other."""
    session.dispatch(SelectCell(3, 2))
    session.dispatch(SetText("m n o p q r s t"))
    session.arrive(answers.ran(run=2, text="m n o p q r s t"), answers.head_view(run=2))
    session.dispatch(SelectCell(7, 6))
    while session.state.document.text != "Tom and Anna went":
        before = session.state.selection
        session.undo()
    state = session.state
    assert state.ran.run == 2
    assert (state.selection, state.site.ref) == (before, before.site)
    session.arrive(answers.ran(run=3))
    assert (session.state.selection.query, session.state.selection.key) == (3, 2)


def test_a_cell_that_is_chosen_before_the_restored_text_ran_is_the_one_shown(drawer, session):
    session.dispatch(SetText("m n o p q r s t"))
    session.arrive(answers.ran(run=2, text="m n o p q r s t"), answers.head_view(run=2))
    session.undo()
    session.dispatch(SelectCell(5, 4))
    assert (session.state.selection.query, session.state.selection.key) == (5, 4)
