"""Texts of different length: what is offered, what was done, and which token stands for which."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.effects.pages import patch_grid, patch_sentence
from attention_explorer.panels.effects.panel import EffectsPanel
from attention_explorer.panels.effects.questions import PATCH
from attention_explorer.session.state import State
from attention_models.protocol.effects import PatchRequest, PatchView
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.effects.test_panel import AIM
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

ROWS = (SiteRef("decoder", 0), SiteRef("decoder", 1))
WHY = "The texts are 4 and 5 tokens long to story-gpt, so that no place of one is one of the other."


def patched(request: PatchRequest) -> PatchView:
    values = np.array([[9.0, 8.0, 7.0, np.nan], [9.0, 9.0, 9.0, np.nan]])
    return PatchView(
        request=request,
        aim=AIM,
        other_value=7.0,
        rows=ROWS,
        values=values,
        stands_for=(0, 1, 3, None),
        other_labels=("Tom", "␣or", "␣his", "␣Ben", "␣ran"),
    )


def nothing(request: PatchRequest) -> PatchView:
    view = patched(request)
    return replace(view, why=WHY, other_value=math.nan, rows=(), values=np.zeros((0, 0)), stands_for=(None,) * 4)


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> EffectsPanel:
    panel = shown(qtbot, EffectsPanel, session)
    panel.resize(600, 800)
    panel.pages.button(PATCH).click()
    panel.controls.other.setFocus()
    QTest.keyClicks(panel.controls.other, "Tom or his Ben ran")
    QTest.keyClick(panel.controls.other, Qt.Key.Key_Return)
    return panel


@pytest.mark.parametrize("align", ["tokens", "start", "end"])
def test_what_to_do_is_offered_beside_the_sentence_and_done_by_a_press(panel, session, align):
    session.arrive(nothing(session.asked[-1]))
    assert panel.sentence.text() == WHY
    assert panel.controls.align_row.isVisible()
    assert panel.grid.grid is None
    QTest.mouseClick(panel.controls.offers[align], Qt.MouseButton.LeftButton)
    assert session.asked[-1].align == align
    assert panel.controls.align.currentData() == align
    session.arrive(patched(session.asked[-1]))
    assert not panel.controls.align_row.isVisible()
    assert "3 of 4 have one of the other text" in panel.sentence.text()
    session.undo()
    assert session.asked[-1].align == "same"


def test_texts_of_one_length_are_left_as_they_are(panel, session):
    session.arrive(patched(session.asked[-1]))
    assert not panel.controls.align_row.isVisible()
    assert "stand for" not in panel.sentence.text()
    assert panel.grid.grid is not None
    assert panel.grid.grid.second_labels == ()


def test_which_token_stands_for_which_is_shown() -> None:
    grid = patch_grid(patched(PatchRequest(run=1, other="x", align="tokens")), answers.ran(), "bits")
    assert grid is not None
    assert grid.second_labels == ("Tom", "or", "Ben", "")
    assert grid.second_name == "other"
    assert grid.tips[0][2].startswith("layer 0, “Anna” from “Ben”: patched, the logit of “Tom” is 7.000")


def test_a_layer_of_several_stacks_is_named_in_full() -> None:
    view = replace(
        patched(PatchRequest(run=1, other="x", kind="head")),
        rows=(SiteRef("decoder", 0), SiteRef("cross", 0)),
    )
    grid = patch_grid(view, answers.ran(), "bits")
    assert grid is not None
    assert grid.row_labels == ("dec 0", "cross 0")
    assert grid.tips[0][1].startswith("decoder layer 0, head 1: patched")
    assert grid.tips[1][1].startswith("cross-attention layer 0, head 1: patched")


@pytest.mark.parametrize(
    ("align", "words"),
    [
        ("start", "Tokens are counted from the start, as if the shorter text were padded at its end: 3 of 4"),
        ("end", "Tokens are counted from the end: 3 of 4"),
        ("tokens", "Equal tokens stand for each other, in order"),
    ],
)
def test_what_was_done_is_said(align, words) -> None:
    assert words in patch_sentence(patched(PatchRequest(run=1, other="x", align=align)), answers.ran(), "bits")
