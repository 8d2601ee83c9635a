"""The plot: points where their values are, read by hovering, chosen by clicks, drags and keys."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.plot.figure import Axis, Counts, Figure, Note, Rule, Series
from attention_explorer.widgets.plot.geometry import LEGEND_KEY, Geometry
from attention_explorer.widgets.plot.paint import labels_of
from attention_explorer.widgets.plot.plot import Plot
from tests.explorer.widgets.pictures import rendered, rgb
from tests.explorer.widgets.pointer import move_pointer

LEFT = Qt.MouseButton.LeftButton
X = np.array([1.5, 3.5, 5.5, 7.5])
SENTENCES = np.array([12, 1_200, 30, 3])
HIGH = Series("attention", X, np.array([40.0, 20, 30, 25]), mark="circle", mark_size=9, hollow=SENTENCES < 10)
LOW = Series("bottleneck", X, np.array([35.0, 10, 8, 5]), "warning", "dashed", mark="square", mark_size=9)


def cut(series: Series, count: int) -> Series:
    hollow = None if series.hollow is None else series.hollow[:count]
    return replace(series, x=series.x[:count], y=series.y[:count], hollow=hollow)


def words(middle: float) -> str:
    return f"{middle - 0.5:.0f} to {middle + 0.5:.0f} words"


def figure(measured: int = 4, rules: tuple[Rule, ...] = ()) -> Figure:
    return Figure(
        Axis("length", 0.5, 8.5, whole=True, text=words),
        Axis("BLEU", 0.0, 40.0, text=lambda value: f"{value:.1f}"),
        (cut(HIGH, measured), cut(LOW, measured)),
        Counts("n", X - 0.9, X + 0.9, SENTENCES),
        rules,
        names="legend",
    )


@pytest.fixture
def plot(qtbot) -> Plot:
    widget = Plot("Quality over length", 260)
    qtbot.addWidget(widget)
    widget.resize(500, 320)
    widget.show()
    widget.set_figure(figure())
    return widget


def at(plot: Plot, index: int, series: int = 0) -> QPoint:
    each = plot.figure.series[series]
    return plot.point(each.x[index], each.y[index]).toPoint()


def test_points_stand_where_their_values_are(plot):
    xs = [plot.point(x, 0).x() for x in X]
    gaps = [right - left for left, right in pairwise(xs)]
    assert gaps == pytest.approx([gaps[0]] * 3, abs=0.01)
    y40, y20, y30 = (plot.point(1.5, y).y() for y in (40, 20, 30))
    assert y30 == pytest.approx((y40 + y20) / 2)


def test_on_a_logarithmic_axis_factors_are_equally_far_apart(plot):
    x, y = np.array([1, 10, 1000]), np.array([1e-6, 1.0, 1e3])
    plot.set_figure(Figure(Axis("d", log=True), Axis("variance", log=True), (Series("law", x, y, mark="circle"),)))
    first, second, third = (plot.point(a, b) for a, b in zip(x, y, strict=True))
    assert third.x() - second.x() == pytest.approx(2 * (second.x() - first.x()))
    assert first.y() - second.y() == pytest.approx(2 * (second.y() - third.y()))
    image = rendered(plot)
    for point in (first, second, third):
        assert rgb(image.pixelColor(point.toPoint())) == rgb(QColor(LIGHT.bar))


def test_a_mark_has_its_series_colour_and_is_hollow_where_that_is_said(plot):
    image = rendered(plot)
    assert rgb(image.pixelColor(at(plot, 2))) == rgb(QColor(LIGHT.bar))
    assert rgb(image.pixelColor(at(plot, 2, 1))) == rgb(QColor(LIGHT.warning))
    assert rgb(image.pixelColor(at(plot, 3))) == rgb(QColor(LIGHT.surface))
    plot.set_theme(DARK)
    assert rgb(rendered(plot).pixelColor(at(plot, 2))) == rgb(QColor(DARK.bar))


def test_a_line_runs_straight_between_its_points(plot):
    image = rendered(plot)
    for share in (0.25, 0.5, 0.75):
        middle = plot.point(1.5 + 2 * share, 40 - 20 * share)
        column = [rgb(image.pixelColor(round(middle.x()), round(middle.y()) + dy)) for dy in (-1, 0, 1)]
        assert rgb(QColor(LIGHT.bar)) in column


def test_the_columns_are_as_tall_as_the_counts(plot):
    image, inside = rendered(plot), rgb(QColor(LIGHT.border))
    heights = []
    for x in X:
        foot = plot.point(x + 0.5, 0).toPoint() - QPoint(0, 2)
        y = foot.y()
        while rgb(image.pixelColor(foot.x(), y)) == inside:
            y -= 1
        heights.append(foot.y() - y)
    assert max(heights) == heights[1] > 20
    assert heights[2] == pytest.approx(heights[1] * 30 / 1_200, abs=2)


def test_hovering_reads_and_leaving_forgets(plot):
    assert plot.readout() == ""
    calm = rendered(plot)
    move_pointer(plot, at(plot, 1) + QPoint(5, 30))
    assert plot.readout() == "3 to 4 words"
    assert rendered(plot) != calm
    move_pointer(plot, QPoint(5, 2))
    assert plot.readout() == ""
    move_pointer(plot, at(plot, 3))
    QApplication.sendEvent(plot, QEvent(QEvent.Type.Leave))
    assert plot.readout() == ""
    assert rendered(plot) == calm


def test_a_curve_of_one_point_is_seen(plot):
    alone = Series("alone", np.array([4.0]), np.array([20.0]))
    plot.set_figure(Figure(Axis(low=0.0, high=8.0), Axis(low=0.0, high=40.0), (alone,)))
    at = plot.point(4.0, 20.0).toPoint()
    assert rgb(rendered(plot).pixel(at)) == rgb(QColor(getattr(LIGHT, alone.role)))
    plot.set_figure(Figure(Axis(low=0.0, high=8.0), Axis(low=0.0, high=40.0)))
    assert rgb(rendered(plot).pixel(at)) != rgb(QColor(getattr(LIGHT, alone.role)))


def test_the_legend_has_room_for_each_value(qtbot):
    rng = np.random.default_rng(0)
    ends = [0.0, -0.0, 9.9996, 99.996, 9999.96, 0.99996, 1.0, 1000.0, 10_000.0, 1e-4, np.inf, -np.inf, np.nan]
    y = np.array([*ends, *(rng.choice([-1, 1], 3000) * 10 ** rng.uniform(-9, 9, 3000))])
    for some in (y, np.array([9.5, 9.9996, 2.0]), y[13:40], abs(y[13:]), y[(abs(y) > 0.5) & (abs(y) < 20)], y[:0]):
        series = Series("a", np.arange(len(some)), some)
        shown = Figure(series=(series,), names="legend")
        lengths = {len(value_text(value)) for value in some.tolist()}
        assert max(map(len, shown.longest_texts(series)), default=0) == max(lengths, default=0)
        (place,) = Geometry(shown, QApplication.font(), QSize(600, 300)).legend
        metrics = QFontMetricsF(QApplication.font())
        for value in some.tolist():
            assert metrics.horizontalAdvance(f"a  {value_text(value)}") <= place.width() - LEGEND_KEY + 1e-6


def test_without_a_legend_the_readout_names_the_values_there(plot):
    more = Series("other", np.array([3.5, 9.5]), np.array([7.0, 8.0]))
    back = Series("background", X, X, context=True)
    plot.set_figure(Figure(Axis("x"), Axis("y"), (HIGH, more, back)))
    plot.set_cursor(3.5)
    assert plot.readout() == "3.5:  attention 20.00   other 7.000"
    plot.set_cursor(1.6)
    assert plot.readout() == "1.5:  attention 40.00"
    plot.set_cursor(None)
    assert plot.readout() == ""


def test_a_click_chooses_the_nearest_place(plot, qtbot):
    with qtbot.waitSignal(plot.cursor_moved) as told:
        QTest.mouseClick(plot, LEFT, pos=at(plot, 2) + QPoint(7, 40))
    assert told.args == [5.5]
    assert plot.cursor_place == 5.5
    assert "BLEU over length. 5 to 6 words: attention 30.0, bottleneck 8.0." in plot.accessibleDescription()
    with qtbot.assertNotEmitted(plot.cursor_moved):
        QTest.mouseClick(plot, LEFT, pos=at(plot, 2))
        QTest.mouseClick(plot, Qt.MouseButton.RightButton, pos=at(plot, 1))
        QTest.mouseClick(plot, LEFT, pos=QPoint(4, 4))
        plot.set_cursor(1.5)


def test_a_drag_takes_the_cursor_along_and_no_further_than_the_ends(plot):
    moved: list[float] = []
    plot.cursor_moved.connect(moved.append)
    QTest.mousePress(plot, LEFT, pos=at(plot, 1))
    for x in (at(plot, 2).x(), 700, -50):
        move_pointer(plot, QPoint(x, 100), held=LEFT)
    QTest.mouseRelease(plot, LEFT)
    assert moved == [3.5, 5.5, 7.5, 1.5]


def test_the_keys_walk_along_the_places(plot):
    walked: list[float] = []
    plot.cursor_moved.connect(walked.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_End, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Home):
        QTest.keyClick(plot, key)
    assert walked == [1.5, 3.5, 7.5, 5.5, 1.5]
    plot.set_figure(Figure(series=(Series("long", np.arange(100), np.arange(100)),)))
    QTest.keyClick(plot, Qt.Key.Key_PageDown)
    QTest.keyClick(plot, Qt.Key.Key_PageDown)
    assert walked[-1] == 10


def test_it_grows_in_its_place(plot):
    plot.set_cursor(3.5)
    whole = [at(plot, i) for i in range(2)]
    plot.set_figure(figure(2))
    assert [at(plot, i) for i in range(2)] == whole
    assert plot.cursor_place == 3.5
    QTest.keyClick(plot, Qt.Key.Key_End)
    assert plot.cursor_place == 3.5  # the others have no points yet
    QTest.mouseClick(plot, LEFT, pos=QPointF(plot.point(7.5, 20)).toPoint())
    assert plot.cursor_place == 3.5
    plot.set_figure(figure(1))
    assert plot.cursor_place is None


def test_reading_moves_nothing(plot):
    before = [at(plot, i) for i in range(4)]
    plot.set_cursor(1.5)
    move_pointer(plot, at(plot, 1))
    assert [at(plot, i) for i in range(4)] == before


def test_a_rule_stands_at_its_x(plot):
    plot.set_figure(figure(rules=(Rule(4.5, "trained up to 4 words"),)))
    image = rendered(plot)
    x = round(plot.point(4.5, 0).x())
    lower = round(plot.point(4.5, 39).y()), round(plot.point(4.5, 36).y())
    column = {rgb(image.pixelColor(x + dx, y)) for dx in (-1, 0, 1, 2) for y in range(*lower)}
    assert rgb(QColor(LIGHT.text_dim)) in column
    plot.set_figure(figure(rules=(Rule(99, "outside"),)))
    assert rgb(QColor(LIGHT.text_dim)) not in {
        rgb(rendered(plot).pixelColor(round(plot.point(8.3, 0).x()) + dx, y)) for dx in range(9) for y in range(*lower)
    }


def test_a_note_rings_its_point(plot):
    plot.set_figure(Figure(series=(HIGH,), notes=(Note(5.5, 30, "here"),)))
    image = rendered(plot)
    point = plot.point(5.5, 30).toPoint()
    assert rgb(image.pixelColor(point)) == rgb(QColor(LIGHT.surface))
    assert rgb(QColor(LIGHT.text)) in [rgb(image.pixelColor(point + QPoint(dx, 0))) for dx in (4, 5, 6)]


@pytest.mark.parametrize("names", ["end", "curve"])
def test_names_lie_apart_inside_the_widget(qapp, names):
    """At the same end, and over each other from end to end: the worst there is."""
    x = np.linspace(0, 1, 30)
    alike = tuple(Series(f"series number {i}", x, x + 0.001 * i) for i in range(4))
    for_size = Plot("", 200)
    for_size.resize(420, 200)
    geometry = Geometry(Figure(series=alike, names=names), for_size.font(), for_size.size())
    labels = labels_of(geometry)
    assert [series.name for series, _ in labels] == [series.name for series in alike] or names == "end"
    assert len(labels) == 4
    for (_, one), (_, other) in combinations(labels, 2):
        assert not one.adjusted(0, 1, 0, -1).intersects(other)
    for _, rect in labels:
        assert 0 <= rect.top() < rect.bottom() <= 200


def test_a_name_beside_a_curve_covers_no_curve(qapp):
    x = np.linspace(0, 10, 40)
    figure = Figure(series=(Series("rising", x, x), Series("falling", x, 10 - x)), names="curve")
    widget = Plot("")
    widget.resize(420, 200)
    geometry = Geometry(figure, widget.font(), widget.size())
    for _, rect in labels_of(geometry):
        for each in figure.series:
            covered = [rect.contains(QPointF(*point)) for point in geometry.points(each).tolist()]
            assert not any(covered)


def test_the_export_is_columns_of_one_length(plot):
    other = Series("other", np.array([3.5, 9.5]), np.array([7.0, 8.0]), context=True)
    plot.set_figure(Figure(Axis("length"), Axis("BLEU"), (HIGH, other)))
    columns = plot.columns()
    assert list(columns) == ["length", "attention", "other"]
    np.testing.assert_array_equal(columns["length"], [1.5, 3.5, 5.5, 7.5, 9.5])
    np.testing.assert_array_equal(columns["attention"], [40, 20, 30, 25, np.nan])
    np.testing.assert_array_equal(columns["other"], [np.nan, 7, np.nan, np.nan, 8])


@pytest.mark.parametrize("shown", [True, False])
def test_the_picture_is_what_is_seen_in_as_many_pixels_as_asked_for(plot, shown):
    plot.setVisible(shown)
    plot.set_theme(DARK)
    picture = plot.picture(3.0)
    assert picture.size() == plot.size() * 3
    inside = QRectF(plot.rect())
    for index, series, role in ((2, 0, "bar"), (1, 1, "warning"), (3, 0, "surface")):
        point = at(plot, index, series)
        assert inside.contains(point)
        assert rgb(picture.pixelColor(point * 3)) == rgb(QColor(getattr(DARK, role)))


@pytest.mark.parametrize("measured", [0, 1])
def test_with_few_points_or_none_it_is_drawn(plot, measured):
    plot.set_figure(figure(measured))
    assert rendered(plot) != rendered(Plot(""))
    QTest.keyClick(plot, Qt.Key.Key_Right)
    assert plot.cursor_place == (1.5 if measured else None)


@pytest.mark.parametrize("log", [False, True])
def test_a_flat_series_lies_in_the_middle(plot, log):
    plot.set_figure(Figure(Axis(log=log), Axis(log=log), (Series("flat", np.arange(1, 4), np.full(3, 2.0)),)))
    middle, top, bottom = (plot.point(2, y).y() for y in (2, plot_end(plot, 1), plot_end(plot, 0)))
    assert middle == pytest.approx((top + bottom) / 2)
    assert top < middle < bottom


def plot_end(plot: Plot, end: int) -> float:
    return Geometry(plot.figure, plot.font(), plot.size()).y_range[end]


def test_nothing_to_show_is_a_sentence(plot):
    plot.set_empty_text("Press Run.")
    plot.set_figure(Figure())
    with_text = rendered(plot)
    plot.set_empty_text("")
    assert rendered(plot) != with_text
    QTest.mouseClick(plot, LEFT, pos=QPoint(200, 200))
    QTest.keyClick(plot, Qt.Key.Key_Right)
    assert plot.cursor_place is None
    assert plot.columns() == {"": pytest.approx([])}
    plot.set_figure(figure())
    assert rgb(rendered(plot).pixelColor(at(plot, 2))) == rgb(QColor(LIGHT.bar))


def test_larger_text_makes_a_taller_plot(plot):
    before, font = plot.sizeHint().height(), plot.font()
    font.setPointSizeF(2 * font.pointSizeF())
    plot.setFont(font)
    assert plot.sizeHint().height() == pytest.approx(2 * before, rel=0.15)


def test_of_more_points_than_pixels_the_extremes_are_drawn(plot):
    """A single point that stands out of 50,000 is seen."""
    y = np.zeros(50_000)
    y[31_234] = 1.0
    plot.set_figure(Figure(series=(Series("spike", np.arange(50_000), y),)))
    image, top = rendered(plot), plot.point(31_234, 0.9).toPoint()
    around = [rgb(image.pixelColor(top.x() + dx, top.y())) for dx in (-2, -1, 0, 1, 2)]
    assert any(blue > red + 30 for red, _, blue in around)


def test_of_what_was_drawn_before_nothing_stays(qtbot, plot):
    # the same items are drawn again: marks and lines, of other styles, numbers and counts of points
    many = np.arange(1.0, 8.0, 0.01)
    others = (
        Figure(x=figure().x, series=(Series("one", many, np.sin(many), "query", "dotted"),)),
        figure(2),
        Figure(x=Axis(log=True), series=(LOW, HIGH, Series("plain", X, X * X)), names="legend"),
        figure(),
    )
    for theme in (DARK, LIGHT):
        for other in others:
            fresh = Plot("Quality over length", 260)
            qtbot.addWidget(fresh)
            fresh.resize(plot.size())
            fresh.show()
            for each in (plot, fresh):
                each.set_theme(theme)
                each.set_figure(other)
            QApplication.processEvents()
            assert plot.grab().toImage() == fresh.grab().toImage()
