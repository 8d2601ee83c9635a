"""The next-token bars, from made-up predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel

from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import SelectQuery
from attention_explorer.session.state import State
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.sentence import SentencePooling, SentenceRequest, SentenceView
from attention_models.protocol.values import Candidate, Prediction, SeenPicture
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pictures import rendered

TINY = Candidate(id=9, label="zebra", piece="zebra", probability=3e-7, logit=-3.25, rank=4321)


def loaded_as(family: str) -> Loaded:
    loaded = answers.loaded()
    return replace(
        loaded, info=replace(loaded.info, family=family, mask_token="[MASK]" if family == "masked" else None)
    )


def predicted(positions: tuple[int, ...], actual: Candidate | None = None) -> PredictionView:
    predictions = tuple(Prediction(p, (answers.TO, answers.END), actual, entropy=1.234) for p in positions)
    request = PredictionRequest(run=1, positions=positions, top=10)
    return PredictionView(request=request, predictions=predictions)


def said(panel: NextTokenPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel))


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


def test_it_wants_the_selected_position(qtbot, session):
    shown(qtbot, NextTokenPanel, session)
    assert session.asked == [PredictionRequest(run=1, positions=(3,), top=10)]
    session.dispatch(SelectQuery(1))
    assert session.asked[1:] == [PredictionRequest(run=1, positions=(1,), top=10)]


def test_it_shows_probability_logit_and_rank(qtbot, session):
    panel = shown(qtbot, NextTokenPanel, session)
    empty = rendered(panel.bars)
    session.arrive(predicted((3,)))
    assert panel.bars.accessibleDescription() == "␣to 68.4 %, ⟨end⟩ 68.4 %"
    assert rendered(panel.bars) != empty
    assert not panel.is_waiting()


def test_the_token_that_stands_there_is_added_with_its_rank(qtbot, session):
    panel = shown(qtbot, NextTokenPanel, session)
    session.arrive(predicted((3,), actual=TINY))
    assert panel.bars.accessibleDescription().endswith("zebra < 0.01 %")
    session.arrive(predicted((3,), actual=answers.TO))
    assert panel.bars.accessibleDescription() == "␣to 68.4 %, ⟨end⟩ 68.4 %"


def test_a_masked_model_is_asked_at_every_mask(qtbot):
    session = SilentSession(answers.after(State(), loaded_as("masked"), answers.ran(text="a [MASK] b [MASK]")))
    panel = shown(qtbot, NextTokenPanel, session)
    assert session.asked[-1] == PredictionRequest(run=1, positions=(1, 3), top=10)
    session.arrive(predicted((1, 3)))
    assert panel.card.accessibleName() == "Masked tokens"
    assert panel.bars.accessibleDescription().count("␣to") == 2


def sentence_vector(how: SentencePooling) -> SentenceView:
    vector = np.array([0.5, -2.0, 0.25], np.float32)
    choices: tuple[tuple[SentencePooling, str], ...] = (("mean", "Mean over tokens"), ("first", "First token"))
    request = SentenceRequest(run=1, how=None if how == "mean" else how)
    return SentenceView(
        request=request, how=how, choices=choices, vector=vector, norm=2.077, words="mean over 4 tokens"
    )


def test_a_body_gives_a_vector_pooled_as_is_chosen(qtbot):
    session = SilentSession(answers.after(State(), loaded_as("encoder"), answers.ran()))
    panel = shown(qtbot, NextTokenPanel, session)
    assert session.asked == [SentenceRequest(run=1)]
    session.arrive(sentence_vector("mean"))
    assert not panel.is_waiting()
    assert panel.card.accessibleName() == "Sentence vector"
    assert panel.bars.accessibleDescription() == "0 0.500, 1 −2.000, 2 0.250"
    assert "norm 2.077" in said(panel)
    panel.pooling.activated.emit(1)
    assert session.asked[-1] == SentenceRequest(run=1, how="first")
    session.arrive(sentence_vector("first"))
    assert panel.pooling.currentText() == "First token"
    wordless = rendered(panel.bars)
    session.arrive(replace(loaded_as("causal"), request=LoadRequest(reference="story-gpt")))
    assert rendered(panel.bars) != wordless


def test_the_last_bars_stay_until_the_next_run_has_its_own(qtbot, session):
    panel = shown(qtbot, NextTokenPanel, session)
    session.arrive(predicted((3,)))
    before = rendered(panel.bars)
    session.arrive(answers.ran(run=2))
    assert rendered(panel.bars) == before
    assert panel.is_waiting()


def test_another_checkpoint_clears_the_bars_and_what_was_said_of_them(qtbot, session):
    panel = shown(qtbot, NextTokenPanel, session)
    session.arrive(predicted((3,)))
    assert "entropy 1.23 bits" in said(panel)
    session.arrive(answers.loaded())
    assert panel.bars.accessibleDescription() == ""
    assert "entropy" not in said(panel)


def vision(classes: int) -> Loaded:
    loaded = answers.loaded()
    return replace(loaded, info=replace(loaded.info, family="vision", vocabulary=classes, channels=3))


def test_classes_are_of_the_whole_picture(qtbot):
    seen = SeenPicture(np.zeros((8, 8, 3), np.uint8), rows=1, columns=3, first=1)
    ran = answers.changed(replace(answers.ran(), seen=seen), picture="sample:chelsea")
    session = SilentSession(answers.after(State(), vision(10), ran))
    panel = shown(qtbot, NextTokenPanel, session)
    assert [request.positions for request in session.asked if isinstance(request, PredictionRequest)] == [(0,)]
    session.arrive(predicted((0,)))
    assert panel.card.accessibleName() == "What it sees"
    assert not panel.is_waiting()


def test_a_vision_model_without_a_head_names_nothing(qtbot):
    session = SilentSession(answers.after(State(), vision(0), answers.ran()))
    shown(qtbot, NextTokenPanel, session)
    assert session.asked == []
