"""The plot over lengths: points where their values are, read by hovering, chosen by clicks and keys."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.panels.quality.length_plot import LengthBin, LengthLine, LengthPlot
from explorer.theme import DARK, LIGHT
from tests.explorer.widgets.pictures import rendered, rgb
from tests.explorer.widgets.pointer import move_pointer

BINS = (LengthBin(1, 2, 12), LengthBin(3, 4, 1_200), LengthBin(5, 6, 30), LengthBin(7, 8, 3))
HIGH = LengthLine("attention", (40.0, 20.0, 30.0, 25.0), ("40.0", "20.0", "30.0", "25.0"), "bar")
LOW = LengthLine("bottleneck", (35.0, 10.0, 8.0, 5.0), ("35.0", "10.0", "8.0", "5.0"), "warning", "square", dashed=True)
TITLES, NOUNS = ("words in the English sentence", "BLEU"), ("words", "sentences")


def cut(line: LengthLine, count: int) -> LengthLine:
    return LengthLine(line.name, line.values[:count], line.texts[:count], line.role, line.mark, line.dashed)


def show(plot: LengthPlot, measured: int = 4) -> None:
    plot.set_lines(BINS, [cut(HIGH, measured), cut(LOW, measured)], (0.0, 40.0), TITLES, NOUNS)


@pytest.fixture
def plot(qtbot) -> LengthPlot:
    widget = LengthPlot("Quality over length")
    qtbot.addWidget(widget)
    widget.resize(500, 320)
    widget.show()
    show(widget)
    return widget


def at(plot: LengthPlot, index: int, line: int = 0) -> QPoint:
    return plot.point(index, line).toPoint()


def test_points_stand_where_their_lengths_and_values_are(plot):
    xs = [plot.point(i).x() for i in range(4)]
    gaps = [right - left for left, right in pairwise(xs)]
    assert gaps == pytest.approx([gaps[0]] * 3, abs=0.01)
    y40, y20, y30 = (plot.point(i).y() for i in range(3))
    assert y30 == pytest.approx((y40 + y20) / 2)
    assert plot.point(1, 1).y() - y20 == pytest.approx((y20 - y40) / 2)


def test_a_point_is_filled_in_its_lines_colour_and_hollow_where_few_sentences_are(plot):
    image = rendered(plot)
    assert rgb(image.pixelColor(at(plot, 2))) == rgb(QColor(LIGHT.bar))
    assert rgb(image.pixelColor(at(plot, 2, 1))) == rgb(QColor(LIGHT.warning))
    assert rgb(image.pixelColor(at(plot, 3))) == rgb(QColor(LIGHT.surface))  # three sentences
    plot.set_theme(DARK)
    assert rgb(rendered(plot).pixelColor(at(plot, 2))) == rgb(QColor(DARK.bar))


def test_the_columns_are_as_tall_as_the_counts(plot):
    image, inside = rendered(plot), rgb(QColor(LIGHT.border))
    foot = round(plot.point(0).y() + 40 * (plot.point(1).y() - plot.point(0).y()) / 20)  # where the value is 0
    heights = []
    for i in range(4):
        x, y = at(plot, i).x() + 12, foot - 2
        while rgb(image.pixelColor(x, y)) == inside:
            y -= 1
        heights.append(foot - 2 - y)
    assert max(heights) == heights[1] > 20
    assert heights[2] == pytest.approx(heights[1] * 30 / 1_200, abs=2)


def test_hovering_reads_and_leaving_forgets(plot):
    assert plot.readout() == ""
    calm = rendered(plot)
    move_pointer(plot, at(plot, 1) + QPoint(5, 30))
    assert plot.readout() == "3 to 4 words, 1,200 sentences"
    assert rendered(plot) != calm
    move_pointer(plot, QPoint(5, 2))
    assert plot.readout() == ""
    move_pointer(plot, at(plot, 3))
    QApplication.sendEvent(plot, QEvent(QEvent.Type.Leave))
    assert plot.readout() == ""
    assert rendered(plot) == calm


def test_a_click_chooses_the_nearest_point(plot, qtbot):
    with qtbot.waitSignal(plot.bin_chosen) as told:
        QTest.mouseClick(plot, Qt.MouseButton.LeftButton, pos=at(plot, 2) + QPoint(7, 40))
    assert told.args == [2]
    assert plot.chosen == 2
    assert "5 to 6 words, 30 sentences: attention 30.0, bottleneck 8.0." in plot.accessibleDescription()
    with qtbot.assertNotEmitted(plot.bin_chosen):
        QTest.mouseClick(plot, Qt.MouseButton.LeftButton, pos=at(plot, 2))
        QTest.mouseClick(plot, Qt.MouseButton.RightButton, pos=at(plot, 1))
        QTest.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(4, 4))


def test_the_keys_walk_along_the_points(plot):
    walked: list[int] = []
    plot.bin_chosen.connect(walked.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_End, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Home):
        QTest.keyClick(plot, key)
    assert walked == [0, 1, 3, 2, 0]


def test_it_grows_in_its_place(plot):
    plot.set_chosen(1)
    whole = [plot.point(i) for i in range(2)]
    show(plot, measured=2)
    assert [plot.point(i) for i in range(2)] == whole
    assert plot.chosen == 1
    QTest.keyClick(plot, Qt.Key.Key_End)
    assert plot.chosen == 1  # the others are not measured yet
    QTest.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPointF(plot.point(1).x() + 200, 200).toPoint())
    assert plot.chosen == 1


def test_reading_moves_nothing(plot):
    before = [plot.point(i) for i in range(4)]
    plot.set_chosen(0)
    move_pointer(plot, at(plot, 1))
    assert [plot.point(i) for i in range(4)] == before


def test_the_end_of_the_training_is_marked_between_two_lengths(plot):
    calm = rendered(plot)
    plot.set_limit(4, "trained up to 4 words")
    image = rendered(plot)
    x = round((plot.point(1).x() + plot.point(2).x()) / 2)
    lower = round(plot.point(0).y()) + 2, round(plot.point(1, 1).y())
    column = {rgb(image.pixelColor(x + dx, y)) for dx in (-1, 0, 1, 2) for y in range(*lower)}
    assert rgb(QColor(LIGHT.text_dim)) in column
    plot.set_limit(None)
    assert rendered(plot) == calm


def test_other_lengths_forget_the_choice(plot):
    plot.set_chosen(2)
    plot.set_lines(BINS[:3], [cut(HIGH, 3)], (0.0, 40.0), TITLES, NOUNS)
    assert plot.chosen is None


@pytest.mark.parametrize("measured", [0, 1])
def test_with_few_points_or_none_it_is_drawn(plot, measured):
    show(plot, measured)
    assert rendered(plot) != rendered(LengthPlot(""))
    QTest.keyClick(plot, Qt.Key.Key_Right)
    assert plot.chosen == (0 if measured else None)


def test_nothing_to_show_is_a_sentence(plot):
    plot.set_empty_text("Press Run.")
    plot.set_lines((), (), (0.0, 1.0), TITLES, NOUNS)
    with_text = rendered(plot)
    plot.set_empty_text("")
    assert rendered(plot) != with_text
    QTest.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(200, 200))
    assert plot.chosen is None
