"""Steps of a calculation."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QScrollArea, QVBoxLayout, QWidget

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.cell.step_list import Step, StepList
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

STEPS = (
    Step("score", "q · k = 27.66", "sum of 32 products"),
    Step("mask", "masked: −∞", "painted over by hand", "warning"),
    Step("weight", "0.879 / 3.278 = 0.268", "share among 14 keys", "result"),
)


@pytest.fixture
def steps(qtbot) -> StepList:
    widget = StepList()
    qtbot.addWidget(widget)
    widget.resize(400, 300)
    widget.set_steps(STEPS)
    widget.show()
    return widget


def test_in_a_layout_it_is_as_high_as_its_steps_whatever_width_came_before(qtbot):
    whole, steps = QWidget(), StepList()
    qtbot.addWidget(whole)
    column = QVBoxLayout(whole)
    column.addWidget(steps)
    column.addStretch(1)
    steps.set_steps(STEPS)
    whole.resize(900, 600)
    whole.show()
    wide = steps.height()
    for width in (400, 900, 300):
        whole.resize(width, 600)
        qtbot.waitUntil(lambda: steps.height() == steps.heightForWidth(steps.width()))
        assert steps.y() == column.contentsMargins().top()
    assert steps.height() > wide


def middle(steps: StepList, index: int) -> QPoint:
    return steps.step_rect(index).center().toPoint()


def colours(steps: StepList) -> set[str]:
    image = rendered(steps)
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def is_coloured(steps: StepList) -> bool:
    """Whether anything is far redder than blue, as the warning's amber is; thin strokes never have it undiluted."""
    found = (QColor(name) for name in colours(steps))
    return any(colour.red() - colour.blue() > 60 for colour in found)


def test_a_click_chooses_a_step(steps, qtbot):
    with qtbot.waitSignal(steps.step_selected) as caught:
        qtbot.mouseClick(steps, Qt.MouseButton.LeftButton, pos=middle(steps, 1))
    assert caught.args == [1]
    assert steps.current == 1
    with qtbot.assertNotEmitted(steps.step_selected):
        qtbot.mouseClick(steps, Qt.MouseButton.LeftButton, pos=middle(steps, 1))
        qtbot.mouseClick(steps, Qt.MouseButton.LeftButton, pos=QPoint(10, 295))


def test_keys_walk_and_stop_at_the_ends(steps, qtbot):
    seen: list[int] = []
    steps.step_selected.connect(seen.append)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up):
        qtbot.keyClick(steps, key)
    assert seen == [0, 1, 2, 1]


def test_keys_scroll_to_the_step(qtbot):
    scroll = QScrollArea()
    qtbot.addWidget(scroll)
    steps = StepList()
    steps.set_steps(STEPS * 6)
    scroll.setWidget(steps)
    scroll.setWidgetResizable(True)
    scroll.resize(400, 120)
    scroll.show()
    for _ in range(12):
        qtbot.keyClick(steps, Qt.Key.Key_Down)
    assert scroll.verticalScrollBar().value() > 200


def test_the_chosen_step_stays_when_numbers_change(steps):
    steps.select(2)
    steps.set_steps((STEPS[0], STEPS[1], Step("weight", "0.1 / 2 = 0.05")))
    assert steps.current == 2
    steps.set_steps(STEPS[:1])
    assert steps.current == 0


def test_tones_have_their_colours(steps):
    assert LIGHT.query in colours(steps)
    steps.set_steps(STEPS[:1])
    assert LIGHT.query not in colours(steps)
    assert not is_coloured(steps)
    steps.set_steps(STEPS[1:2])
    assert is_coloured(steps)


def test_the_width_decides_the_lines_and_numbers_never_do(steps):
    narrow, wide = steps.heightForWidth(380), steps.heightForWidth(900)
    assert narrow > wide
    steps.set_steps([Step(step.name, step.formula * 3, step.note * 3) for step in STEPS])
    assert (steps.heightForWidth(380), steps.heightForWidth(900)) == (narrow, wide)


def test_in_little_room_the_formula_gets_a_line_of_its_own(steps):
    """All of it is drawn: with and without its end it looks different."""
    steps.resize(260, 300)
    long = "27.66 / √32 × 0.5 = 2.4"
    steps.set_steps([Step("scaled", long + "1")])
    one = rendered(steps)
    steps.set_steps([Step("scaled", long + "7")])
    assert rendered(steps) != one


def test_hover_lights_and_tells_all(steps):
    plain = rendered(steps)
    move_pointer(steps, middle(steps, 0))
    assert steps.toolTip() == "q · k = 27.66\nsum of 32 products"
    assert rendered(steps) != plain
    QApplication.sendEvent(steps, QEvent(QEvent.Type.Leave))
    assert rendered(steps) == plain


def test_theme_changes_the_picture(steps):
    light = rendered(steps)
    steps.set_theme(DARK)
    assert rendered(steps) != light


def test_a_screen_reader_hears_the_steps(steps):
    assert steps.accessibleDescription().startswith("score: q · k = 27.66; mask")
