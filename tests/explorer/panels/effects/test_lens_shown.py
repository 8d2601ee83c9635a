"""The rank of a token over the layers, as a curve."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.effects.pages import rank_figure, readings
from attention_explorer.panels.effects.panel import EffectsPanel
from attention_explorer.panels.effects.questions import LENS
from attention_explorer.session.effects_choices import Answer
from attention_explorer.session.state import State
from attention_models.protocol.effects import LensRequest, LensView
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

RANKS = np.array([[5, 6, 7, 350], [4, 4, 4, 20], [1, 1, 1, 1]])


def lens(request: LensRequest) -> LensView:
    best = np.array([[1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3, 6]])
    ones = np.ones((3, 4), np.float32)
    return LensView(
        request=request,
        norms=ones,
        written=ones[1:],
        best=best,
        best_share=0.5 * ones,
        entropy=ones,
        targets=best[-1],
        target_share=np.array([[0.1, 0.1, 0.1, 0.002]] * 3, np.float32),
        target_rank=RANKS,
        labels={1: "a", 2: "b", 3: "c", 4: "␣the", 5: "␣her", 6: "␣Tom"},
    )


def test_the_curve_has_the_ranks_on_a_logarithmic_axis_and_says_the_rest() -> None:
    figure = rank_figure(lens(LensRequest(run=1)), 3)
    assert figure is not None
    assert figure.y.log
    np.testing.assert_array_equal(figure.series[0].y, [350, 20, 1])
    assert figure.series[0].name == "rank of “Tom” (1: the likeliest)"
    assert figure.value_text(350.0) == "350"
    assert figure.place_text(0) == "after the embedding, probability 0.2 %"
    assert figure.place_text(2) == "after layer 1, probability 0.2 %"


def test_a_lens_that_reads_nothing_has_no_curve() -> None:
    zeros = np.zeros((2, 4), np.float32)
    assert rank_figure(LensView(request=LensRequest(run=1), norms=zeros, written=zeros[1:], why="No."), 0) is None


def test_what_can_be_followed_is_what_the_layers_read_from_the_last_down() -> None:
    assert readings(lens(LensRequest(run=1)), 3) == (Answer("␣Tom", 6), Answer("␣her", 5), Answer("␣the", 4))


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


def test_a_token_is_followed_by_choosing_and_by_typing(qtbot, session):
    panel = shown(qtbot, EffectsPanel, session)
    panel.resize(600, 800)
    panel.pages.button(LENS).click()
    request = session.asked[-1]
    assert request == LensRequest(run=1)
    session.arrive(lens(request))
    assert panel.ranks.isVisible()
    QTest.mouseMove(panel.ranks, panel.ranks.point(1, 20).toPoint())
    assert "after layer 0" in panel.ranks.readout()
    box = panel.controls.followed
    box.setCurrentIndex(2)
    box.textActivated.emit(box.currentText())
    assert session.asked[-1] == LensRequest(run=1, target=5)
    field = box.lineEdit()
    assert field is not None
    field.selectAll()
    QTest.keyClicks(field, " Ben")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert session.asked[-1] == LensRequest(run=1, target=" Ben")
    session.undo()
    assert session.state.document.effects.followed == Answer("␣her", 5)
    assert box.currentText() == "␣her"
