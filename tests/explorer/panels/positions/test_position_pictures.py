"""The pictures of the Positions panel: waves, tables, curves, clocks, sums and orders, with real events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from attention_explorer.look.theme import DARK
from attention_explorer.panels.positions import order_map
from attention_explorer.panels.positions.order_map import Measured, OrderMap, distance_text
from attention_explorer.panels.positions.scheme_view import Addend, SumBars
from attention_explorer.panels.positions.sections import SideBySide, flow
from attention_explorer.panels.positions.table_image import TableImage
from attention_explorer.panels.positions.waveforms import ClockHands, Clocks, Wave, Waveforms, wave_text
from attention_explorer.widgets.segments import Segments
from tests.explorer.widgets.pictures import rendered, rgb
from tests.explorer.widgets.pointer import move_pointer

LEFT = Qt.MouseButton.LeftButton
WAVES = [Wave(pair, 2 * math.pi * 4**pair, 0.5, -0.25) for pair in range(3)]


def press_at(widget, point: QPoint) -> None:
    QTest.mousePress(widget, LEFT, Qt.KeyboardModifier.NoModifier, point)


# --------------------------------------------------------------------------- waveforms


@pytest.fixture
def waveforms(qtbot) -> Waveforms:
    widget = Waveforms()
    qtbot.addWidget(widget)
    widget.set_waves(WAVES, 64, 13, 1)
    widget.resize(420, widget.sizeHint().height())
    return widget


def test_dragging_moves_the_cursor_to_the_nearest_position(qtbot, waveforms):
    moved: list[int] = []
    waveforms.cursor_moved.connect(moved.append)
    middle = round(waveforms.row_rect(1).center().y())
    press_at(waveforms, QPoint(round(waveforms.x_of(20)), middle))
    move_pointer(waveforms, QPoint(round(waveforms.x_of(31)), middle), held=LEFT)
    move_pointer(waveforms, QPoint(5000, middle), held=LEFT)
    assert moved == [20, 31, 63]


@pytest.mark.parametrize(
    ("key", "position"),
    [
        (Qt.Key.Key_Left, 12),
        (Qt.Key.Key_Right, 14),
        (Qt.Key.Key_PageUp, 3),
        (Qt.Key.Key_PageDown, 23),
        (Qt.Key.Key_Home, 0),
        (Qt.Key.Key_End, 63),
    ],
)
def test_keys_move_the_cursor(qtbot, waveforms, key, position):
    with qtbot.waitSignal(waveforms.cursor_moved) as signal:
        QTest.keyClick(waveforms, key)
    assert signal.args == [position]


def test_a_click_chooses_a_row_and_up_asks_for_the_next_pair(qtbot, waveforms):
    with qtbot.waitSignal(waveforms.row_chosen) as chosen:
        QTest.mouseClick(waveforms, LEFT, pos=QPoint(4, round(waveforms.row_rect(2).center().y())))
    assert chosen.args == [2]
    with qtbot.waitSignal(waveforms.pair_stepped) as stepped:
        QTest.keyClick(waveforms, Qt.Key.Key_Up)
    assert stepped.args == [1, 1]


def test_the_curve_passes_where_the_wave_does(waveforms):
    """The sine's own colour is met at the height of sin(2 pi p / wavelength)."""
    waveforms.set_waves([Wave(0, 40.0, 0.0, 1.0)], 64, 60, 0)
    image = rendered(waveforms)
    rect = waveforms.row_rect(0)
    half = rect.height() / 2 - 9
    for position in (5, 17, 33):
        y = rect.center().y() - math.sin(2 * math.pi * position / 40) * half
        colours = [rgb(image.pixel(round(waveforms.x_of(position)), round(y) + d)) for d in (-1, 0, 1)]
        assert any(blue > red + 60 for red, _, blue in colours)


def test_waves_are_described(waveforms):
    assert waveforms.accessibleDescription().startswith("position 13; pair 0: sine 0.500, cosine −0.250")
    assert [wave_text(w) for w in (6.2832, 62.83, 628.3, 62831.9)] == ["6.28", "62.8", "628", "62,832"]


# --------------------------------------------------------------------------- table image


@pytest.fixture
def table(qtbot) -> TableImage:
    widget = TableImage("A table")
    qtbot.addWidget(widget)
    widget.resize(400, 240)
    values = np.zeros((4, 6), np.float32)
    values[1, 2], values[3, 5] = 1.0, -1.0
    widget.set_values(values, -1.0, 1.0)
    return widget


def test_colours_follow_the_values(table):
    image = rendered(table)
    red, blue, pale = (rgb(image.pixel(table.cell_centre(*cell).toPoint())) for cell in ((1, 2), (3, 5), (0, 0)))
    assert red[0] > red[2] + 60
    assert blue[2] > blue[0] + 60
    assert min(pale) > 200


def test_click_drag_and_keys_choose_cells(qtbot, table):
    chosen: list[tuple[int, int]] = []
    table.chosen.connect(lambda row, column: chosen.append((row, column)))
    press_at(table, table.cell_centre(1, 2).toPoint())
    move_pointer(table, table.cell_centre(2, 4).toPoint(), held=LEFT)
    move_pointer(table, QPoint(9000, 9000), held=LEFT)
    QTest.mouseRelease(table, LEFT)
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Left, Qt.Key.Key_Down, Qt.Key.Key_Down):
        QTest.keyClick(table, key)
    assert chosen == [(1, 2), (2, 4), (3, 5), (2, 5), (2, 4), (3, 4)]
    assert table.cross == (3, 4)


def test_the_readout_is_of_the_pointer_then_of_the_cross(table):
    table.set_sentence(lambda row, column, value: f"{row}|{column}|{value}")
    assert table.readout() == ""
    table.set_cross(0, 0)
    move_pointer(table, table.cell_centre(3, 5).toPoint())
    assert table.readout() == "3|5|−1.000"
    move_pointer(table, QPoint(1, 1))
    assert table.readout() == "0|0|0"


def test_a_square_picture_stays_square_and_counts_in_steps(qtbot):
    widget = TableImage("Compared", square=True)
    qtbot.addWidget(widget)
    widget.set_values(np.eye(5, dtype=np.float32), 0.0, 1.0, step=3)
    widget.set_sentence(lambda row, column, value: f"{row}|{column}|{value}")
    widget.resize(400, widget.heightForWidth(400))
    widget.set_cross(2, 2)
    assert widget.readout() == "6|6|1.000"
    side = widget.cell_centre(0, 4).x() - widget.cell_centre(0, 0).x()
    assert widget.cell_centre(4, 0).y() - widget.cell_centre(0, 0).y() == pytest.approx(side)


def test_nothing_to_show_says_so(table):
    filled = rendered(table)
    table.set_values(None, 0, 1)
    table.set_empty_text("Nothing here yet.")
    assert rendered(table) != filled
    QTest.mouseClick(table, LEFT, pos=QPoint(100, 100))
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert table.cross == (-1, -1)


# --------------------------------------------------------------------------- clocks, sums, orders


@pytest.fixture
def clocks(qtbot) -> ClockHands:
    widget = ClockHands()
    qtbot.addWidget(widget)
    hands = np.array([1.0 + 0j, 1j, -0.5 + 0j])
    turns = np.array([math.pi, 0.5, 0.1])
    widget.set_clocks(Clocks(hands, hands * 1j, turns, turns / 2, turns / 4, np.array([1.5, -2.0, 0.0]), "to", "Tom"))
    widget.resize(420, widget.heightForWidth(420))
    return widget


def test_a_clock_says_its_numbers(clocks):
    assert clocks.readout() == ("pair 0: once round in 8 tokens; turned q 0.500 rounds, k 0.250 rounds; adds +1.50")
    move_pointer(clocks, clocks.clock_rect(1).center().toPoint())
    assert clocks.readout().startswith("pair 1:")
    assert clocks.readout().endswith("adds −2.00")
    move_pointer(clocks, QPoint(400, 2))
    QTest.keyClick(clocks, Qt.Key.Key_Right)
    QTest.keyClick(clocks, Qt.Key.Key_Right)
    QTest.keyClick(clocks, Qt.Key.Key_Right)
    assert clocks.readout().startswith("pair 2:")
    QTest.mouseClick(clocks, LEFT, pos=clocks.clock_rect(0).center().toPoint())
    assert clocks.readout().startswith("pair 0:")


def test_hands_point_where_the_numbers_do(clocks):
    image = rendered(clocks)
    face = clocks.clock_rect(0)
    centre = QPoint(round(face.center().x()), round(face.top() + face.width() / 2))
    query = rgb(image.pixel(centre + QPoint(12, 0)))  # 1 + 0i: to the right
    key = rgb(image.pixel(centre + QPoint(0, -12)))  # i: up
    assert query[0] > query[2] + 60
    assert key[2] > key[0] + 60


def test_no_clocks(clocks):
    drawn = rendered(clocks)
    clocks.set_clocks(None)
    QTest.keyClick(clocks, Qt.Key.Key_Right)
    assert clocks.readout() == ""
    assert rendered(clocks) != drawn


def test_lengths_and_numbers_of_a_sum(qtbot):
    bars = SumBars()
    qtbot.addWidget(bars)
    first = np.random.default_rng(0).normal(size=10).astype(np.float32)
    second = np.linspace(-1, 1, 10, dtype=np.float32)
    bars.set_rows((Addend("a", first, "bar"), Addend("b", second, "ok"), Addend("s", first + second, "text")))
    bars.resize(400, bars.sizeHint().height())
    expected = [math.sqrt(sum(float(v) ** 2 for v in values)) for values in (first, second, first + second)]
    assert bars.lengths == pytest.approx(expected, rel=1e-6)
    move_pointer(bars, QPoint(395, 60))
    assert bars.readout().startswith("dimension 9:")
    assert bars.readout().endswith(f"= {first[9] + second[9]:.3f}".replace("-", "−"))
    move_pointer(bars, QPoint(2, 2))
    assert bars.readout() == "10 dimensions: point at one"


def test_more_dimensions_than_pixels_are_drawn(qtbot):
    bars = SumBars()
    qtbot.addWidget(bars)
    wide = np.zeros(4096, np.float32)
    flat = (Addend("a", wide, "bar"), Addend("b", wide, "ok"), Addend("s", wide, "text"))
    bars.set_rows(flat)
    bars.resize(400, bars.sizeHint().height())
    empty = rendered(bars)
    spike = wide.copy()
    spike[2000] = 1.0
    bars.set_rows((Addend("a", spike, "bar"), *flat[1:]))
    assert rendered(bars) != empty  # one dimension of 4,096 stays visible


def test_bars_of_an_order_share_one_scale(qtbot):
    widget = OrderMap()
    qtbot.addWidget(widget)
    on, off = Measured("on", np.array([4.0, 0.0])), Measured("off", np.array([1e-6, 2.0]))
    widget.set_order(["dog", "man"], [0, 1], [False, False], [on, off])
    widget.resize(420, widget.sizeHint().height())
    assert widget.accessibleDescription() == "dog man. on: at most 4.000, off: at most 2.000"
    image = rendered(widget)
    lengths = []
    for row in (0, 1):
        y = round(widget.height() - (1.5 - row) * (widget.height() / 4))  # rows lie in the lower half
        colours = [rgb(image.pixel(x, y)) for x in range(150, 420)]
        lengths.append(sum(blue > red + 60 for red, _, blue in colours) - 1)  # the other column's bar is 1 pixel
    assert lengths[0] == pytest.approx(2 * lengths[1], abs=4)


def test_of_a_long_order_only_the_rows_in_sight_are_drawn_and_look_the_same(qtbot, monkeypatch):
    count = 1200
    order = np.random.default_rng(0).permutation(count).tolist()
    order[600:640] = sorted(order[600:640])
    near = [*range(300), *reversed(range(300, 360)), *range(360, count)]  # lines that cross the whole of what shows
    for places in (order, near):
        widget = OrderMap()
        qtbot.addWidget(widget)
        widget.set_order(
            [f"w{i}" for i in range(count)], places, [False] * count, [Measured("on", np.arange(count, dtype=float))]
        )
        widget.resize(420, widget.sizeHint().height())
        top, height = round(widget.sizeHint().height() * 320 / count), 200
        whole = widget.grab().toImage().copy(0, top, 420, height)
        drawn: list[float] = []
        part = widget.grab(QRect(0, top, 420, height)).toImage()
        off = np.subtract(*(np.frombuffer(image.constBits(), np.uint8).astype(int) for image in (part, whole)))
        assert np.abs(off).max() <= 4  # clipped lines are smoothed a little otherwise
        with monkeypatch.context() as patch:
            patch.setattr(order_map, "distance_text", lambda value, drawn=drawn: str(drawn.append(value)))
            widget.grab(QRect(0, top, 420, height))
        assert 0 < len(drawn) < 30


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (12.345, "12.3"), (0.0421, "0.0421"), (9.5e-7, "1e-6")])
def test_small_differences_are_powers_of_ten(value, text):
    assert distance_text(value) == text


# --------------------------------------------------------------------------- layout


def test_controls_wrap(qtbot):
    row = flow(*(QPushButton("A long label") for _ in range(3)))
    qtbot.addWidget(row)
    row.resize(600, 200)
    row.show()
    buttons = row.findChildren(QPushButton)
    assert len({button.y() for button in buttons}) == 1
    row.resize(150, 200)
    qtbot.waitUntil(lambda: len({button.y() for button in buttons}) == 3)
    layout = row.layout()
    assert layout is not None
    assert layout.heightForWidth(150) > 2 * layout.heightForWidth(600)


def test_two_things_stand_beside_each_other_where_there_is_room(qtbot):
    first, second = QPushButton("a"), QPushButton("b")
    both = SideBySide(first, second)
    qtbot.addWidget(both)
    both.resize(900, 300)
    both.show()
    qtbot.waitUntil(lambda: second.x() > first.x())
    both.resize(300, 300)
    qtbot.waitUntil(lambda: second.y() > first.y())


def test_segments_are_chosen_by_a_person_and_by_the_program(qtbot):
    segments = Segments([("One", "first"), ("Two", "second")], "which")
    qtbot.addWidget(segments)
    segments.show()
    with qtbot.waitSignal(segments.chosen) as signal:
        QTest.mouseClick(segments.button(1), LEFT)
    assert signal.args == [1]
    with qtbot.assertNotEmitted(segments.chosen):
        segments.choose(0)
    assert segments.current == 0


def test_the_theme_reaches_every_picture(waveforms, table, clocks):
    for widget in (waveforms, table, clocks):
        light = rendered(widget)
        widget.set_theme(DARK)
        assert rendered(widget) != light
