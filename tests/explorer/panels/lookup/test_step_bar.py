"""Numbered steps."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.lookup.panel import StepBar
from tests.explorer.widgets.pictures import rendered


@pytest.fixture
def bar(qtbot) -> StepBar:
    bar = StepBar(("One", "Another", "Last"))
    qtbot.addWidget(bar)
    bar.resize(420, bar.sizeHint().height())
    bar.show()
    return bar


def click(qtbot, bar: StepBar, step: int) -> None:
    qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.step_rect(step).center().toPoint())


def test_clicks_and_arrows_go_to_steps(qtbot, bar):
    seen: list[int] = []
    bar.step_selected.connect(seen.append)
    click(qtbot, bar, 2)
    click(qtbot, bar, 2)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Left):
        qtbot.keyClick(bar, key)
    assert seen == [2, 1, 0]
    assert bar.current == 0


def test_a_narrow_bar_keeps_the_current_label_and_every_step(qtbot, bar):
    bar.resize(190, bar.height())
    widths = [bar.step_rect(step).width() for step in range(3)]
    assert widths[0] > 2 * widths[1] == 2 * widths[2]
    assert sum(widths) == pytest.approx(190)
    click(qtbot, bar, 1)
    assert bar.current == 1
    click(qtbot, bar, 2)
    assert bar.current == 2


def test_it_says_where_it_is(bar):
    before = rendered(bar)
    bar.set_current(1)
    assert bar.accessibleDescription() == "Step 2 of 3: Another"
    assert rendered(bar) != before
