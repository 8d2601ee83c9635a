"""Query, key and products as bars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import LIGHT
from attention_explorer.panels.cell.vector_bars import VectorBars, value_rows, value_sentence
from tests.explorer.panels.cells import cell
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

Q = np.array([1.0, -2.0, 0.5, 0.0], np.float32)
K = np.array([0.5, 1.5, -3.0, 1.0], np.float32)


@pytest.fixture
def bars(qtbot) -> VectorBars:
    widget = VectorBars()
    qtbot.addWidget(widget)
    widget.resize(500, widget.sizeHint().height())
    widget.set_vectors(Q, K, Q * K, "to", "Tom")
    widget.show()
    return widget


def extent(image: QImage, bars: VectorBars, row: int, place: int, colour: str) -> tuple[int, int]:
    """Pixels of the bar above and below the middle of its row."""
    rect = bars.bar_rect(row, place)
    x, middle = round(rect.center().x()) - 1, rect.center().y()
    hits = [y for y in range(int(rect.top()), int(rect.bottom()) + 1) if image.pixelColor(x, y).name() == colour]
    return sum(y < middle - 0.5 for y in hits), sum(y >= middle + 0.5 for y in hits)


def middle(bars: VectorBars, place: int) -> QPoint:
    return bars.bar_rect(1, place).center().toPoint()


def test_bars_show_sign_and_size(bars):
    image = rendered(bars)
    up, down = extent(image, bars, 0, 0, LIGHT.query), extent(image, bars, 0, 1, LIGHT.query)
    assert up[1] == 0
    assert down[0] == 0
    assert down[1] == pytest.approx(2 * up[0], abs=2)
    assert extent(image, bars, 0, 3, LIGHT.query) == (0, 0)
    assert extent(image, bars, 1, 2, LIGHT.key)[1] > extent(image, bars, 1, 1, LIGHT.key)[0] > 0
    assert extent(image, bars, 2, 1, LIGHT.text)[1] > extent(image, bars, 2, 0, LIGHT.text)[0] > 0


def test_the_three_rows_are_aligned(bars):
    for place in range(4):
        assert bars.bar_rect(0, place).left() == bars.bar_rect(2, place).left()


def test_sorted_by_the_size_of_the_product(bars):
    bars.set_sorted(True)
    assert bars.order == [1, 2, 0, 3]
    move_pointer(bars, middle(bars, 0))
    assert bars.readout == "dim 1:  −2.000 × 1.500 = −3.000"
    bars.set_sorted(False)
    assert bars.order == [0, 1, 2, 3]


def test_the_pointer_reads_a_dimension(bars):
    idle = bars.readout
    assert idle.startswith("4 dimensions")
    move_pointer(bars, middle(bars, 2))
    assert bars.readout == "dim 2:  0.500 × (−3.000) = −1.500"
    QApplication.sendEvent(bars, QEvent(QEvent.Type.Leave))
    assert bars.readout == idle
    move_pointer(bars, QPointF(2, 2).toPoint())
    assert bars.readout == idle


def test_arrow_keys_walk_through_the_dimensions(bars, qtbot):
    seen = []
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_End, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Home):
        qtbot.keyClick(bars, key)
        seen.append(bars.readout.split(":")[0])
    assert seen == ["dim 0", "dim 1", "dim 3", "dim 3", "dim 2", "dim 0"]


def test_other_vectors_keep_the_place(bars, qtbot):
    qtbot.keyClick(bars, Qt.Key.Key_End)
    bars.set_vectors(2 * Q, K, 2 * Q * K, "to", "Tom")
    assert bars.readout.startswith("dim 3:")
    wide = np.ones(128, np.float32)
    bars.set_vectors(wide, wide, wide, "to", "Tom")
    assert bars.readout.startswith("128 dimensions")
    assert extent(rendered(bars), bars, 0, 127, LIGHT.query)[0] > 5


def test_zeros_and_nothing_are_drawn(bars):
    blank = np.zeros(4, np.float32)
    bars.set_vectors(blank, blank, blank, "to", "Tom")
    assert extent(rendered(bars), bars, 0, 0, LIGHT.query) == (0, 0)
    bars.set_vectors(blank[:0], blank[:0], blank[:0], "", "")
    bars.set_empty_text("Nothing here.")
    assert bars.readout == ""
    rendered(bars)


def test_keys_without_vectors_are_left_to_others(qtbot):
    empty = VectorBars()
    qtbot.addWidget(empty)
    qtbot.keyClick(empty, Qt.Key.Key_Right)
    assert empty.readout == ""


def test_the_value_of_a_key_stands_beside_the_sum_on_one_scale(qtbot):
    value, total = np.array([2.0, -4.0, 1.0], np.float32), np.array([0.0, -2.0, 1.0], np.float32)
    view = replace(cell(), weight=0.25, value=value, mixed=0.25 * value, head_output=total)
    bars = VectorBars("Values")
    qtbot.addWidget(bars)
    bars.set_rows(value_rows(view, "Tom", "v"), lambda dimension, numbers: value_sentence(0.25, dimension, numbers))
    bars.resize(500, bars.sizeHint().height())
    bars.show()
    image = rendered(bars)
    one, all_ = extent(image, bars, 1, 1, LIGHT.key)[1], extent(image, bars, 2, 1, LIGHT.query)[1]
    assert all_ == pytest.approx(2 * one, abs=2)  # -1 of -2
    assert extent(image, bars, 0, 1, LIGHT.key)[1] == pytest.approx(all_, abs=1)  # v has a scale of its own
    bars.set_sorted(True)
    assert bars.order == [1, 2, 0]
    move_pointer(bars, middle(bars, 0))
    assert bars.readout == "dim 1:  0.250 × (−4.000) = −1.000, in the sum −2.000"
