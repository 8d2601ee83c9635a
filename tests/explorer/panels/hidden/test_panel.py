"""The panel of hidden states, driven by mouse and keys, with states made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from attention_explorer.panels.hidden.panel import RecurrentPanel, step_sentence
from attention_explorer.session.hover import Pointed
from attention_explorer.session.intents import OpenCheckpoint, SelectCell
from attention_explorer.session.state import Document, State
from attention_models.protocol.loading import Loaded
from attention_models.protocol.recurrent_states import RecurrentRequest, RecurrentView
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Site, Token
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

SOURCE, TARGET = ["M", "a", "r", "⟨end⟩"], ["⟨start⟩", "0", "3"]
WEIGHTS = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.6, 0.1], [0.0, 0.5, 0.5, 0.0]], np.float32)
SCORES = np.array([[2, 0, 0, 0], [-1, 0, 3, -1], [0, 4, 4, 0]], np.float32)
START = State(Document("dates-bahdanau"))


def loaded(reference: str = "dates-bahdanau", textbook: bool = True) -> Loaded:
    result = answers.loaded(reference)
    family = "seq2seq" if textbook else "causal"
    return replace(result, info=replace(result.info, textbook=textbook, family=family))


def tokens(words: list[str]) -> tuple[Token, ...]:
    return tuple(Token(id=i, piece=word, text=word, start=i, end=i + 1, label=word) for i, word in enumerate(words))


def ran(attends: bool = True, run: int = 1) -> Ran:
    site = Site("cross", 0, 1, 1, 2, queries=len(TARGET), keys=len(SOURCE))
    made = answers.ran(run, layers=0)
    return replace(made, tokens=tokens(TARGET), source=tokens(SOURCE), sites=(site,) if attends else ())


def view(run: int = 1, **changes: object) -> RecurrentView:
    whole = RecurrentView(
        request=RecurrentRequest(run=run),
        score="bahdanau",
        scope="global",
        cell="gru",
        encoder=(np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2), np.zeros((4, 2), np.float32)),
        states=np.full((3, 2), 0.5, np.float32),
        contexts=np.full((3, 4), 0.25, np.float32),
        scores=SCORES,
        masked=np.zeros((3, 4), bool),
        weights=WEIGHTS,
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def bottleneck() -> RecurrentView:
    one = np.array([[0.5, -0.25]], np.float32)
    return view(score="none", contexts=one, scores=None, masked=None, weights=None)


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(START, loaded(), ran(), SelectCell(1, 2)))


@pytest.fixture
def panel(qtbot, session) -> RecurrentPanel:
    panel = shown(qtbot, RecurrentPanel, session)
    panel.resize(430, 540)
    session.arrive(view())
    return panel


def test_it_asks_once_a_run(panel, session):
    assert session.asked == [RecurrentRequest(run=1)]
    session.dispatch(SelectCell(2, 1))
    assert session.asked == [RecurrentRequest(run=1)]  # another step is in the view already
    session.arrive(ran(run=2))
    assert session.asked[1:] == [RecurrentRequest(run=2)]


def test_a_step_shows_its_scores_weights_and_states(panel, session):
    e, weight = panel.encoder.lanes
    np.testing.assert_array_equal(e.values, SCORES[1])
    np.testing.assert_array_equal(weight.values, WEIGHTS[1])
    np.testing.assert_array_equal(panel.encoder.bands[0].values, view().encoder[0])
    context, state = panel.decoder.bands
    np.testing.assert_array_equal(context.values, view().contexts)
    np.testing.assert_array_equal(state.values, view().states)
    assert (panel.decoder.selected, panel.encoder.selected) == (1, 2)
    assert panel.sentence.text() == "Step 2 of 3: “0” goes in, “3” comes out. It looks most at “r” (0.600)."
    assert panel.encoder.readout == "“0” to “r”: e 3.000, weight 0.600"
    assert panel.card._subtitle.text() == "bidirectional GRU, additive attention"
    assert "blue −1.000" in panel.colours.text()
    session.dispatch(SelectCell(2, 1))
    np.testing.assert_array_equal(panel.encoder.lanes[1].values, WEIGHTS[2])
    assert "what comes next ends the target" in panel.sentence.text()


def test_clicks_and_keys_go_to_other_steps_and_tokens(panel, session, qtbot):
    def click(columns, column: int) -> None:
        at = columns.column_rect(column).center()
        qtbot.mouseClick(columns, Qt.MouseButton.LeftButton, pos=QPoint(round(at.x()), round(at.y())))

    click(panel.decoder, 0)
    click(panel.encoder, 3)
    assert (session.state.selection.query, session.state.selection.key) == (0, 3)
    qtbot.keyClick(panel.decoder, Qt.Key.Key_Right)
    qtbot.keyClick(panel.encoder, Qt.Key.Key_Left)
    assert (session.state.selection.query, session.state.selection.key) == (1, 2)
    assert panel.decoder.selected == 1


def test_pointing_lights_the_same_tokens_everywhere(panel):
    panel.hover.point(Pointed(query=2, key=1))
    assert panel.encoder.readout.startswith("“0” to “a”")
    assert panel.decoder.readout == "step 3 of 3: “3”"


def test_local_attention_hatches_what_is_outside(panel, session):
    masked = np.zeros((3, 4), bool)
    masked[1, 0] = True
    session.arrive(view(score="general", scope="monotonic", masked=masked))
    assert panel.encoder.lanes[0].masked.tolist() == [True, False, False, False]
    assert "local (monotonic)" in panel.card._subtitle.text()
    session.dispatch(SelectCell(1, 0))
    assert panel.encoder.readout == "“M”: outside of the window"
    assert panel.explained.text().startswith("Luong")


def test_the_bottleneck_has_one_vector_for_every_step(qtbot):
    session = SilentSession(answers.after(START, loaded(), ran(attends=False)))
    panel = shown(qtbot, RecurrentPanel, session)
    session.arrive(bottleneck())
    assert panel.encoder.lanes == ()
    np.testing.assert_array_equal(panel.decoder.bands[0].values, [[0.5, -0.25]] * 3)
    assert "one vector of 2 numbers" in panel.sentence.text()
    assert panel.explained.text().startswith("The bottleneck")


def test_a_transformer_gets_an_invitation(qtbot):
    session = SilentSession(answers.after(State(), loaded("story-gpt", textbook=False), answers.ran()))
    panel = shown(qtbot, RecurrentPanel, session)
    assert session.asked == []
    assert panel.pages.reason.isVisible()
    assert "is a transformer" in panel.pages.reason.text()
    qtbot.mouseClick(panel.pages.button, Qt.MouseButton.LeftButton)
    assert session.state.document.checkpoint == "dates-bahdanau"


def test_before_the_states_are_here_it_waits(qtbot):
    session = SilentSession(answers.after(START, loaded(), ran()))
    panel = shown(qtbot, RecurrentPanel, session)
    assert "appear here" in panel.pages.reason.text()
    assert not panel.pages.button.isVisible()
    assert panel.is_waiting()
    session.arrive(view())
    assert not panel.is_waiting()
    session.dispatch(OpenCheckpoint("story-gpt"))
    session.arrive(loaded("story-gpt", textbook=False))
    assert "is a transformer" in panel.pages.reason.text()


def test_a_step_in_words():
    assert step_sentence(view(), SOURCE, TARGET, 0) == (
        "Step 1 of 3: “⟨start⟩” goes in, “0” comes out. It looks most at “M” (0.700)."
    )
