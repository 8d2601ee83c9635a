"""What is drawn belongs to the run that is named, or is not drawn: a run that overflows, a view that fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.base import Panel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import ClearInterventions, PutIntervention, SetText
from attention_explorer.window.window import MainWindow
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.interventions import Scale
from attention_models.views import long_comparison
from tests.explorer.real_window import EXAMPLE, opened_window, panel_of, settle


@pytest.fixture(scope="module")
def shared(qapp) -> Iterator[MainWindow]:
    with opened_window() as window:
        yield window


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    shared.session.dispatch(ClearInterventions())
    shared.session.dispatch(SetText(EXAMPLE))
    settle(shared)
    return shared


def show(window: MainWindow, kind: type[Panel]) -> Panel:
    panel = panel_of(window, kind)
    window.dock_host.docks[panel.name].raise_()
    settle(window)
    return panel


def words(widget: QWidget) -> str:
    """All that a person can read in it."""
    shown = [child for child in widget.findChildren(QWidget) if child.isVisible()]
    texts = (getattr(child, "text", None) for child in shown)
    described = " ".join(child.accessibleDescription() for child in shown)
    return " ".join(str(text()) for text in texts if callable(text)) + described


def test_a_run_that_overflows_empties_the_panels_and_says_where(window: MainWindow) -> None:
    following = show(window, NextTokenPanel)
    assert isinstance(following, NextTokenPanel)
    assert "%" in words(following)
    window.session.dispatch(SetText("The cat sat on the"))
    window.session.dispatch(PutIntervention(Scale(1e39)))
    settle(window)
    assert "attention scores of decoder layer 0, head 0, are too large for float32" in window.notice_bar.text
    assert window.session.state.ran is None
    assert "%" not in words(following)
    masks = show(window, MaskScalePanel)
    assert isinstance(masks, MaskScalePanel)
    assert not masks.effect.isVisible()
    for panel in window.panels:
        assert "Anna" not in words(panel), panel.name
    window.session.dispatch(ClearInterventions())
    settle(window)
    assert "sat" in words(window.input)
    assert masks.effect.isVisible()


def test_a_view_that_fails_leaves_none_of_the_last_text(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    masks = show(window, MaskScalePanel)
    assert isinstance(masks, MaskScalePanel)
    assert "Anna" in words(masks.effect) or "to" in words(masks.effect)
    before = window.session.state.results.of(CompareView)
    assert before is not None

    def fails(*_: object, **__: object) -> object:
        raise ArithmeticError("planted")

    monkeypatch.setattr(long_comparison, "compare", fails)
    window.session.dispatch(SetText("The cat sat on the"))
    settle(window)
    assert "ArithmeticError" in window.notice_bar.text
    assert window.session.state.results.of(CompareView) is None
    assert not masks.effect.isVisible()
