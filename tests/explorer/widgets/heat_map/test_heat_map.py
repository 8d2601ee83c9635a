"""The heat map as a person uses it."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QRegion, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.look.colour_maps import diverging, sequential
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.widgets.heat_map.frame import frame_for
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.heat_map.readout import Wording, cell_pieces, draw_readout, piece_limits
from tests.explorer.widgets.pictures import rendered, rgb
from tests.explorer.widgets.pointer import move_pointer

pytestmark = pytest.mark.x

TOKENS = ["⟨start⟩", "Tom", "and", "Anna", "went", "to"]


def causal(count: int) -> tuple[np.ndarray, np.ndarray]:
    scores = np.random.default_rng(1).normal(size=(count, count))
    masked = np.triu(np.ones((count, count), dtype=bool), 1)
    scores[masked] = -np.inf
    weights = np.exp(scores)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32), masked


@pytest.fixture
def heat_map(qtbot) -> HeatMap:
    widget = HeatMap()
    qtbot.addWidget(widget)
    widget.resize(500, 440)
    weights, masked = causal(6)
    widget.set_values(weights, masked, TOKENS, TOKENS, 0.0, 1.0)
    widget.show()
    return widget


def centre(heat_map: HeatMap, query: int, key: int) -> QPoint:
    return heat_map.cell_rect(query, key).center().toPoint()


def wheel(widget: HeatMap, where: QPoint, turned: int) -> None:
    position = QPointF(where)
    event = QWheelEvent(
        position,
        widget.mapToGlobal(position),
        QPoint(),
        QPoint(0, turned),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


def test_a_click_selects_the_cell_under_it(heat_map, qtbot):
    with qtbot.waitSignal(heat_map.cell_selected) as caught:
        qtbot.mouseClick(heat_map, Qt.MouseButton.LeftButton, pos=centre(heat_map, 4, 2))
    assert caught.args == [4, 2]
    assert heat_map.selection == (4, 2)


def test_selecting_from_outside_emits_nothing(heat_map, qtbot):
    with qtbot.assertNotEmitted(heat_map.cell_selected):
        heat_map.set_selection(3, 1)
    assert heat_map.selection == (3, 1)
    heat_map.set_selection(99, 0)
    assert heat_map.selection == (-1, -1)


def test_cells_have_the_colour_of_their_value(heat_map):
    values = np.array([[0.0, 1.0], [0.25, 0.5]], dtype=np.float32)
    heat_map.set_values(values, None, ["a", "b"], ["c", "d"], 0.0, 1.0)
    image, table = rendered(heat_map), sequential()
    for query in range(2):
        for key in range(2):
            drawn = np.array(rgb(image.pixelColor(centre(heat_map, query, key))))
            expected = table[round(float(values[query, key]) * 255)].astype(int)
            assert np.abs(drawn - expected).max() <= 4


def test_cells_meet_on_whole_pixels(heat_map):
    values = np.array([[0.0, 1.0]], dtype=np.float32)
    heat_map.set_values(values, None, ["a"], ["c", "d"], 0.0, 1.0)
    image, edge = rendered(heat_map), heat_map.cell_rect(0, 1)
    y, x = round(edge.center().y()), round(edge.left())
    table = sequential()
    assert rgb(image.pixelColor(x - 1, y)) == tuple(table[0])
    assert rgb(image.pixelColor(x, y)) == tuple(table[255])


def test_masked_cells_show_surface_and_hatching_only(heat_map):
    image, rect = rendered(heat_map), heat_map.cell_rect(0, 5).adjusted(3, 3, -3, -3).toRect()
    seen = {
        image.pixelColor(x, y).name()
        for x in range(rect.left(), rect.right())
        for y in range(rect.top(), rect.bottom())
    }
    assert LIGHT.surface in seen
    assert len(seen) > 1
    assert all(QColor(colour).lightness() >= QColor(LIGHT.hatch).lightness() - 2 for colour in seen)


def test_the_readout_comes_from_the_floats(heat_map):
    values = np.full((6, 6), 0.26812345, dtype=np.float32)
    values[5, 1], values[5, 2], values[5, 3] = 3.1e-6, np.nan, 0.5
    masked = np.zeros((6, 6), dtype=bool)
    masked[5, 3] = True
    heat_map.set_values(values, masked, TOKENS, TOKENS, 0.0, 1.0)
    assert heat_map.readout(5, 0) == "“to” looks at “⟨start⟩”: 0.268"
    assert heat_map.readout(5, 1) == "“to” looks at “Tom”: 3.10e-6"
    assert heat_map.readout(5, 2) == "“to” looks at “and”: not computed"
    assert heat_map.readout(5, 3) == "“to” cannot look at “Anna”: masked"
    assert heat_map.readout(6, 0) == ""


def test_hover_is_told_and_ends_when_the_pointer_leaves(heat_map, qtbot):
    seen = []
    heat_map.hovered.connect(lambda query, key: seen.append((query, key)))
    before = (heat_map.view, heat_map.selection, heat_map.size())
    move_pointer(heat_map, centre(heat_map, 3, 1))
    move_pointer(heat_map, centre(heat_map, 3, 1) + QPoint(2, 2))
    move_pointer(heat_map, centre(heat_map, 4, 2))
    QApplication.sendEvent(heat_map, QEvent(QEvent.Type.Leave))
    assert seen == [(3, 1), (4, 2), (-1, -1)]
    assert before == (heat_map.view, heat_map.selection, heat_map.size())


def test_hover_from_outside_is_drawn_and_not_echoed(heat_map, qtbot):
    plain = rendered(heat_map)
    with qtbot.assertNotEmitted(heat_map.hovered):
        heat_map.set_hover(2, -1)
    assert rendered(heat_map) != plain
    heat_map.set_hover(-1, -1)
    assert rendered(heat_map) == plain


def test_arrows_move_the_selection_and_stop_at_the_ends(heat_map, qtbot):
    heat_map.set_selection(0, 0)
    seen = []
    heat_map.cell_selected.connect(lambda query, key: seen.append((query, key)))
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Left):
        qtbot.keyClick(heat_map, key)
    assert seen == [(1, 0), (1, 1), (1, 0)]


def test_control_arrows_are_left_to_the_window(heat_map, qtbot):
    heat_map.set_selection(1, 1)
    qtbot.keyClick(heat_map, Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier)
    assert heat_map.selection == (1, 1)


def test_the_zoomed_view_follows_the_arrows(qtbot):
    widget = HeatMap()
    qtbot.addWidget(widget)
    widget.resize(500, 440)
    weights, masked = causal(100)
    names = [f"t{index}" for index in range(100)]
    widget.set_values(weights, masked, names, names, 0.0, 1.0)
    widget.set_selection(0, 0)
    widget.zoom_by(6)
    for _ in range(60):
        qtbot.keyClick(widget, Qt.Key.Key_Down)
    assert widget.selection == (60, 0)
    assert 60 in widget.view.rows.visible()
    assert 0 not in widget.view.rows.visible()
    widget.scroll_to_cell(5, 99)
    assert 5 in widget.view.rows.visible()
    assert 99 in widget.view.columns.visible()


@pytest.mark.parametrize("key", [Qt.Key.Key_0, Qt.Key.Key_Home])
def test_keys_zoom_and_reset(heat_map, qtbot, key):
    whole = heat_map.view
    qtbot.keyClick(heat_map, Qt.Key.Key_Plus)
    assert heat_map.view.zoom > 1
    qtbot.keyClick(heat_map, key)
    assert heat_map.view == whole


def test_the_wheel_zooms_about_the_pointer_and_a_double_click_resets(heat_map, qtbot):
    whole, where = heat_map.view, centre(heat_map, 4, 4)
    wheel(heat_map, where, 240)
    assert heat_map.view.zoom > 1
    assert heat_map.view.cell_at(where.x(), where.y()) == (4, 4)
    qtbot.mouseDClick(heat_map, Qt.MouseButton.LeftButton, pos=where)
    assert heat_map.view == whole


@pytest.mark.parametrize("button", [Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton])
def test_dragging_pans_and_selects_nothing(heat_map, qtbot, button):
    for _ in range(5):
        wheel(heat_map, centre(heat_map, 3, 3), 120)
    before, start = heat_map.view, QPoint(250, 200)
    with qtbot.assertNotEmitted(heat_map.cell_selected):
        qtbot.mousePress(heat_map, button, pos=start)
        for step in (10, 30, 50):
            move_pointer(heat_map, start - QPoint(step, step), button)
        qtbot.mouseRelease(heat_map, button, pos=start - QPoint(50, 50))
    assert heat_map.view.columns.offset > before.columns.offset
    assert heat_map.view.zoom == before.zoom


def test_another_head_of_the_same_shape_keeps_the_zoom(heat_map):
    heat_map.set_selection(2, 1)
    heat_map.zoom_by(3)
    zoomed = heat_map.view
    weights, masked = causal(6)
    heat_map.set_values(weights * 0.5, masked, TOKENS, TOKENS, 0.0, 0.5)
    assert heat_map.view == zoomed
    assert heat_map.selection == (2, 1)
    heat_map.set_values(weights[:4, :4], None, TOKENS[:4], TOKENS[:4], 0.0, 1.0)
    assert heat_map.view.zoom == 1
    assert heat_map.selection == (2, 1)
    heat_map.set_values(weights[:1, :1], None, TOKENS[:1], TOKENS[:1], 0.0, 1.0)
    assert heat_map.selection == (-1, -1)


def test_the_map_does_not_move_when_the_selection_turns_a_label_bold(heat_map):
    before = heat_map.view
    for cell in range(6):
        heat_map.set_selection(cell, cell)
        assert heat_map.view == before


def test_the_span_of_the_map_is_told_to_a_colour_bar(heat_map, qtbot):
    with qtbot.waitSignal(heat_map.map_span_changed) as caught:
        heat_map.resize(500, 600)
    assert caught.args == [round(heat_map.view.rows.origin), round(heat_map.view.rows.extent)]


def test_nothing_to_show_is_a_sentence(heat_map, qtbot):
    heat_map.set_values(None, None, [], [], 0.0, 1.0)
    blank = rendered(heat_map)
    heat_map.set_empty_text("Weights appear here after Run.")
    assert rendered(heat_map) != blank
    with qtbot.assertNotEmitted(heat_map.cell_selected):
        qtbot.mouseClick(heat_map, Qt.MouseButton.LeftButton, pos=QPoint(200, 200))
        qtbot.keyClick(heat_map, Qt.Key.Key_Down)
        qtbot.keyClick(heat_map, Qt.Key.Key_Plus)


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (2000, 2000), (0, 0)])
def test_any_shape_is_drawn(heat_map, shape):
    rows, columns = shape
    values = np.linspace(0, 1, rows * columns, dtype=np.float32).reshape(shape)
    heat_map.set_values(values, None, ["r"] * rows, ["c"] * columns, 0.0, 1.0)
    heat_map.set_selection(rows - 1, columns - 1)
    image = rendered(heat_map)
    if rows:
        x, y = (round(part) for part in heat_map.cell_rect(0, 0).topLeft().toTuple())
        assert image.pixelColor(x + 1, y + 1) != QColor(LIGHT.surface)


def test_labels_of_every_script_are_drawn_and_told_whole(heat_map, qtbot):
    names = ["👩\u200d🚀", "שלום", "مرحبا", "e\u0301\u0302", "x" * 400, "␣⏎"]
    weights, masked = causal(6)
    heat_map.set_values(weights, masked, names, names, 0.0, 1.0)
    heat_map.set_selection(4, 4)
    rendered(heat_map)
    rect = heat_map.cell_rect(4, 0)
    move_pointer(heat_map, QPoint(round(rect.left()) - 10, round(rect.center().y())))
    assert heat_map.toolTip() == "query 4: " + "x" * 400
    assert rect.left() < heat_map.width() / 2


def test_a_shape_that_does_not_fit_is_refused(heat_map):
    with pytest.raises(ValueError, match=r"\(2, 3\).*2 queries and 2 keys"):
        heat_map.set_values(np.zeros((2, 3), np.float32), None, ["a", "b"], ["a", "b"], 0, 1)
    with pytest.raises(ValueError, match="mask has shape"):
        heat_map.set_values(np.zeros((2, 2), np.float32), np.zeros((1, 2), bool), ["a", "b"], ["a", "b"], 0, 1)


def test_theme_and_colour_map_change_the_picture(heat_map):
    light = rendered(heat_map)
    heat_map.set_theme(DARK)
    dark = rendered(heat_map)
    assert dark != light
    heat_map.set_colour_map(diverging())
    assert rendered(heat_map) != dark


@pytest.mark.parametrize("ratio", [1.0, 1.25, 1.5, 2.0])
def test_high_resolution_screens(heat_map, ratio):
    image = QImage(heat_map.size() * ratio, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor(LIGHT.surface))
    painter = QPainter(image)
    heat_map.render(painter, QPoint(), QRegion(), QWidget.RenderFlag.DrawChildren)
    painter.end()
    spot = heat_map.cell_rect(0, 0).center() * ratio
    drawn = np.array(rgb(image.pixelColor(spot.toPoint())))
    assert np.abs(drawn - sequential()[255].astype(int)).max() <= 6  # the first row looks at itself only


def test_a_screen_reader_hears_what_it_is(heat_map):
    assert heat_map.accessibleName() == "Attention heat map"
    assert "Arrow keys" in heat_map.accessibleDescription()
    assert heat_map.focusPolicy() & Qt.FocusPolicy.TabFocus


def test_a_readout_that_is_too_long_keeps_its_value_whole_and_then_its_words():
    assert piece_limits([], [], 260) == []
    assert piece_limits([30], [False], 20) == [31]
    pieces, minor = [140.0, 70.0, 60.0, 10.0, 30.0], [False, True, False, True, False]  # a word, looks at, a word, :
    assert piece_limits(pieces, minor, 310) == [141, 71, 61, 11, 31]
    assert piece_limits(pieces, minor, 280) == [141, pytest.approx(41), 61, 11, 31]  # what stands between words first
    tight = piece_limits(pieces, minor, 176)
    assert tight[1] == pytest.approx(17)
    assert (tight[3], tight[4]) == (11, 31)
    np.testing.assert_allclose([tight[0], tight[2]], 61, atol=0.01)  # what is left, shared out among the words


class Told(QPainter):
    """Remembers what it is made to write."""

    def __init__(self, image: QImage) -> None:
        super().__init__(image)
        self.texts: list[str] = []

    def drawText(self, *given: object) -> None:  # type: ignore[override]
        self.texts.append(str(given[-1]))


@pytest.mark.parametrize(
    ("width", "said"), [(400, "“to” looks at “Anna”: A − B 0.554"), (190, "“to” → “Anna”: A − B 0.554")]
)
def test_a_narrow_readout_says_it_with_an_arrow_and_cuts_no_difference(qtbot, width: int, said: str) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    frame = frame_for(widget.font(), widget.font(), QSize(width, 300), ["to"], ["Anna"])
    image = QImage(width, 300, QImage.Format.Format_ARGB32)
    painter = Told(image)
    draw_readout(painter, LIGHT, frame, cell_pieces(Wording("to", "Anna", "A − B"), 0.554), "")
    painter.end()
    assert "".join(painter.texts).rstrip() == said
