"""A window on a training: its slider goes through the snapshots, and follows those that come."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import PutIntervention, SelectHead
from attention_models import Scale, open_checkpoint, run
from attention_models.protocol.head import HeadView
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until
from tests.models.training_folders import trained

TEXT = "dcba"
SITE = SiteRef("encoder", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trainings") / "model"
    trained(path, steps=8)
    return path


def is_at(window, step: int) -> bool:
    return shown(window) == f"model@{step}"


def shown(window) -> str:
    loaded = window.session.state.results.loaded
    return "" if loaded is None else Path(loaded.info.reference).name


def test_keys_scrub_and_the_head_map_follows(qapp, folder):
    with opened_window(str(folder), TEXT) as window:
        session, steps = window.session, window.contents.step_bar.steps
        assert window.contents.step_bar.isVisible()
        assert steps.label.text() == "the end"
        session.dispatch(SelectHead(SITE, 1))
        session.dispatch(PutIntervention(Scale(0.5)))
        settle(window)
        before, undone = session.state.document, session.can_undo
        panel = panel_of(window, HeadMapPanel)
        assert panel.isVisible()
        for number in (8, 6, 4):
            QTest.keyClick(window, Qt.Key.Key_Comma, Qt.KeyboardModifier.AltModifier)
            wait_until(partial(is_at, window, number))
            settle(window)
            view = session.state.results.of(HeadView)
            assert view is not None
            assert session.state.ran is not None
            trace = run(open_checkpoint(f"{folder}@{number}"), TEXT, interventions=[Scale(0.5)])
            np.testing.assert_array_equal(view.weights, trace.weights(trace.sites[0], head=1))
            assert steps.label.text() == f"step {number} of 8"
            assert f"model@{number}" in window.top_bar.menu.currentText()
            assert f"step {number}" in window.windowTitle()
        now = session.state.document
        assert (now.text, now.selection, now.interventions) == (before.text, before.selection, before.interventions)
        assert session.can_undo == undone
        report = session.state.results.of(TrustReport)
        assert report is not None
        assert max(report.logit_difference, report.weight_difference) == 0
        QTest.keyClick(steps.slider, Qt.Key.Key_End)
        wait_until(lambda: shown(window) == "model")
        settle(window)
        assert steps.label.text() == "the end"


@pytest.mark.full
def test_a_training_that_goes_on_is_followed(qapp, tmp_path):
    folder = tmp_path / "model"
    training = trained(folder, steps=2)
    with opened_window(str(folder), TEXT) as window:
        steps = window.contents.step_bar.steps
        QTest.mouseClick(steps.follow, Qt.MouseButton.LeftButton)
        wait_until(lambda: shown(window) == "model@2")
        for number in (3, 4):
            training.step()
            training.snapshot()
            wait_until(partial(is_at, window, number))
        settle(window)
        assert steps.label.text() == "step 4 of 4"
        QTest.keyClick(steps.slider, Qt.Key.Key_Home)
        wait_until(lambda: shown(window) == "model@2")
        assert not steps.follow.isChecked()
        training.step()
        training.snapshot()
        wait_until(lambda: steps.slider.maximum() == 4)
        assert shown(window) == "model@2"


def test_other_checkpoints_have_no_slider(qapp):
    with opened_window() as window:
        assert not window.contents.step_bar.isVisible()
        assert not window.menus["step_back"].isEnabled()
