"""What the filters cut, in the Decode panel."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.decoding.stages import FILTERS
from tests.explorer.panels.decoding.answered import LEFT, steps


def test_settings_cut_and_say_what(qtbot, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    panel.view.knobs.set_number("top_k", "3")
    panel.view.knobs.set_number("temperature", "2")
    steps(qtbot, session, panel, 1)
    rows = panel.view.candidates.bars.rows
    assert [row.cut_by for row in rows[:4]] == ["", "", "", "top-k"]
    logits = np.array([candidate.logit for candidate in panel.player.shown_view().candidates[:3]]) / 2
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    np.testing.assert_allclose([row.kept for row in rows[:3]], expected, atol=1e-6)
    assert (
        "Top-k cut 8,189 tokens" in panel.view.candidates.note.text()
        or "top-k cut 8,189 tokens" in panel.view.candidates.note.text()
    )
    assert "The draw was" in panel.view.candidates.note.text()


@pytest.mark.x
def test_each_filter_can_be_looked_at_alone(qtbot, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    for name, value in (("temperature", "2"), ("top_k", "8"), ("top_p", "0.9"), ("min_p", "0.2")):
        panel.view.knobs.set_number(name, value)
    panel.view.knobs.set_number("repetition_penalty", "1.5")
    steps(qtbot, session, panel, 1)
    stages, bars, view = panel.view.candidates.stages, panel.view.candidates.bars, panel.player.shown_view()
    names = [button.text() for button in map(stages.buttons.button, range(len(FILTERS) + 1)) if button.isVisible()]
    assert names == ["All filters", "Repetition penalty", "Temperature", "Top-k", "Top-p", "Min-p"]
    before = [candidate.probability for candidate in view.candidates]
    for place, name in enumerate(names[1:]):
        index = next(i for i in range(len(FILTERS) + 1) if stages.buttons.button(i).text() == name)
        qtbot.mouseClick(stages.buttons.button(index), LEFT)
        stage = view.stages[place]
        assert [row.probability for row in bars.rows] == before
        before = [row.kept for row in bars.rows]
        assert tuple(before) == stage.shares
        gone = {other.filter for other in view.stages[: place + 1]}
        assert [bool(row.cut_by) for row in bars.rows] == [o.cut_by in gone for o in view.candidates]
        note = panel.view.candidates.note.text()
        assert note.startswith(f"{place + 1} of 5. ")
        assert f"{stage.left:,} token" in note
        if stage.tokens:
            assert f"It cut {stage.tokens:,} token" in note
    assert bars.rows[0].kept == pytest.approx(view.candidates[0].kept)
    steps(qtbot, session, panel, 1)  # the same filter of the next step
    assert stages.current == 4
    panel.view.knobs.set_number("min_p", "")
    steps(qtbot, session, panel, 1)
    assert stages.current is None
    qtbot.mouseClick(stages.buttons.button(0), LEFT)
    panel.window().activateWindow()
    qtbot.waitUntil(panel.window().isActiveWindow)  # on X it takes a moment
    stages.buttons.button(0).setFocus()
    qtbot.keyClick(stages.buttons.button(0), Qt.Key.Key_Right)
    assert stages.current == 0
