"""The list of interventions, by mouse and keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.masks.panel import InterventionList, ListedText

pytestmark = pytest.mark.x

LEFT = Qt.MouseButton.LeftButton
ROWS = (ListedText("scores × 0.5, everywhere", True), ListedText("mask: R&D, decoder layer 5", False))


@pytest.fixture
def listed(qtbot) -> InterventionList:
    widget = InterventionList()
    qtbot.addWidget(widget)
    widget.resize(420, 200)
    widget.set_empty_text("Nothing is changed.")
    widget.show()
    qtbot.waitExposed(widget)
    widget.set_rows(ROWS)
    return widget


def test_lines_say_what_they_are(listed):
    assert [line.box.text() for line in listed.lines] == ["scores × 0.5, everywhere", "mask: R&&D, decoder layer 5"]
    assert [line.box.isChecked() for line in listed.lines] == [True, False]
    assert not listed.empty.isVisible()
    listed.set_rows(())
    assert listed.empty.isVisible()
    assert not listed.clear_button.isVisible()


def test_switching_removing_and_clearing(listed, qtbot):
    with qtbot.waitSignal(listed.switched) as caught:
        qtbot.keyClick(listed.lines[1].box, Qt.Key.Key_Space)
    assert caught.args == [1, True]
    with qtbot.waitSignal(listed.removed) as caught:
        qtbot.mouseClick(listed.lines[0].remove, LEFT)
    assert caught.args == [0]
    with qtbot.waitSignal(listed.removed) as caught:
        qtbot.keyClick(listed.lines[1].box, Qt.Key.Key_Delete)
    assert caught.args == [1]
    with qtbot.waitSignal(listed.cleared):
        qtbot.mouseClick(listed.clear_button, LEFT)


def test_what_the_list_shows_comes_from_outside_only(listed, qtbot):
    with qtbot.assertNotEmitted(listed.switched):
        listed.set_rows((ListedText("scores × 0.5, everywhere", False),))
    assert not listed.lines[0].box.isChecked()
    assert not listed.clear_button.isVisible()  # its line has a way out of its own


def test_the_keyboard_stays_in_the_list_when_a_line_goes(listed, qtbot):
    listed.activateWindow()
    qtbot.waitUntil(listed.isActiveWindow)  # on X it takes a moment
    listed.lines[1].box.setFocus()
    listed.set_rows(ROWS[:1])
    assert listed.lines[0].box.hasFocus()


def test_a_long_line_is_cut_and_whole_in_its_tooltip(listed):
    text = "scores × 0.5, " + "decoder layer 5, " * 12
    listed.set_rows((ListedText(text, True),))
    line = listed.lines[0]
    assert "…" in line.box.text()
    assert text in line.box.toolTip()
    assert line.box.sizeHint().width() <= line.box.width() + 2
    assert line.remove.geometry().right() <= line.width()
