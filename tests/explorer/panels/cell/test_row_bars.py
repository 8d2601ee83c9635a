"""One row of an attention matrix as bars."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QScrollArea

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.cell.row_bars import FEW, RowBars
from tests.explorer.widgets.pictures import rendered, rgb
from tests.explorer.widgets.pointer import move_pointer

RAW = np.array([8.0, -4.0, 2.0, 30.0], np.float32)
SCORES = np.array([4.0, -2.0, 1.0, 900.0], np.float32)
MASKED = np.array([False, False, False, True])
WEIGHTS = np.array([0.5, 0.1, 0.4, 0.0], np.float32)
LABELS = ("Tom", "and", "Anna", "went")


@pytest.fixture
def row(qtbot) -> RowBars:
    widget = RowBars()
    qtbot.addWidget(widget)
    widget.set_row(RAW, SCORES, MASKED, WEIGHTS, LABELS, 2)
    widget.resize(600, widget.sizeHint().height())
    widget.show()
    return widget


def long_row(row: RowBars, keys: int = 300, key: int = 150) -> None:
    weights = np.linspace(0.001, 0.002, keys).astype(np.float32)
    zeros = np.zeros(keys, np.float32)
    row.set_row(zeros, zeros, np.zeros(keys, bool), weights, [f"w{i}" for i in range(keys)], key)
    row.resize(600, row.sizeHint().height())


def middle(row: RowBars, key: int) -> QPoint:
    return row.key_rect(key).center().toPoint()


def bar(image: QImage, row: RowBars, key: int, column: int) -> list[int]:
    """Where a bar is seen: x of the pixels near the upper edge of the line, away from the numbers."""
    place = row.column_rect(column)
    y = round(row.key_rect(key).top()) + 4
    background = rgb(image.pixelColor(2, round(row.key_rect(0).top()) + 4))
    return [x for x in range(round(place.left()), round(place.right())) if rgb(image.pixelColor(x, y)) != background]


def test_weights_are_in_proportion_and_start_at_the_left(row):
    image = rendered(row)
    long, short = bar(image, row, 0, 2), bar(image, row, 1, 2)
    assert long[0] == pytest.approx(short[0], abs=1)
    assert len(long) == pytest.approx(5 * len(short), abs=6)


def test_scores_leave_zero_on_both_sides(row):
    image = rendered(row)
    up, down = bar(image, row, 0, 1), bar(image, row, 1, 1)
    assert len(up) == pytest.approx(2 * len(down), abs=4)
    assert down[-1] <= up[0] + 1


def test_a_masked_score_does_not_set_the_scale(row):
    assert len(bar(rendered(row), row, 0, 1)) == pytest.approx(row.column_rect(1).width() * 4 / 6, abs=4)


def test_masked_keys_are_hatched(row):
    hatched = bar(rendered(row), row, 3, 2)
    assert 0 < len(hatched) < row.column_rect(2).width() / 2
    row.set_row(RAW, SCORES, np.zeros(4, bool), WEIGHTS, LABELS, 2)
    assert len(bar(rendered(row), row, 3, 2)) <= 1


def test_the_chosen_key_is_marked(row):
    def marked(key: int) -> bool:
        return rendered(row).pixelColor(1, middle(row, key).y()).name() == LIGHT.key

    assert [key for key in range(4) if marked(key)] == [2]


def test_a_click_chooses_a_key(row, qtbot):
    with qtbot.waitSignal(row.key_selected) as caught:
        qtbot.mouseClick(row, Qt.MouseButton.LeftButton, pos=middle(row, 1))
    assert caught.args == [1]
    with qtbot.assertNotEmitted(row.key_selected):
        qtbot.mouseClick(row, Qt.MouseButton.LeftButton, pos=QPoint(50, 4))  # the headings


def test_keys_choose_the_neighbours(row, qtbot):
    chosen: list[int] = []
    row.key_selected.connect(chosen.append)
    qtbot.keyClick(row, Qt.Key.Key_Up)
    qtbot.keyClick(row, Qt.Key.Key_Down)
    row.set_row(RAW, SCORES, MASKED, WEIGHTS, LABELS, 3)
    qtbot.keyClick(row, Qt.Key.Key_Down)
    assert chosen == [1, 3]  # there is none below the last one


def test_hover_lights_a_line_and_is_told(row):
    told: list[int] = []
    row.hovered.connect(told.append)
    plain = rendered(row)
    move_pointer(row, middle(row, 0))
    assert rendered(row) != plain
    QApplication.sendEvent(row, QEvent(QEvent.Type.Leave))
    assert told == [0, -1]
    assert rendered(row) == plain
    row.set_hover(0)
    assert rendered(row) != plain
    row.set_hover(17)  # pointed at elsewhere, and not here
    assert rendered(row) == plain
    assert told == [0, -1]


def test_a_long_row_keeps_the_largest_and_the_chosen_with_its_neighbours(row):
    long_row(row)
    assert row.shown == [149, 150, 151, *range(300 - FEW + 3, 300)]
    height = row.sizeHint().height()
    long_row(row, key=299)
    assert row.shown == list(range(300 - FEW, 300))
    long_row(row, key=0)
    assert row.shown[:3] == [0, 1, 270]
    assert row.sizeHint().height() == height
    assert row.key_rect(100).isEmpty()


def test_all_keys_on_demand(row):
    long_row(row)
    row.set_all(True)
    assert row.shown == list(range(300))
    assert row.key_rect(299).bottom() <= row.sizeHint().height()
    row.set_all(False)
    assert len(row.shown) == FEW


def test_keys_scroll_to_the_chosen_line(qtbot):
    scroll = QScrollArea()
    qtbot.addWidget(scroll)
    row = RowBars()
    row.set_all(True)
    long_row(row, key=0)
    row.key_selected.connect(lambda key: long_row(row, key=key))
    scroll.setWidget(row)
    scroll.setWidgetResizable(True)
    scroll.resize(620, 150)
    scroll.show()
    for _ in range(20):
        qtbot.keyClick(row, Qt.Key.Key_Down)
    assert row.selected == 20
    assert scroll.verticalScrollBar().value() > 200


def test_theme_changes_the_picture(row):
    light = rendered(row)
    row.set_theme(DARK)
    assert rendered(row) != light


def test_without_a_row(qtbot):
    empty = RowBars()
    qtbot.addWidget(empty)
    qtbot.keyClick(empty, Qt.Key.Key_Down)
    assert empty.shown == []
    rendered(empty)
