"""The picture of the whole model: what is drawn, and what mouse, wheel and keys do."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.flow.model_layout import CHIP
from attention_explorer.panels.flow.model_picture import ModelPicture
from attention_explorer.panels.flow.model_scene import (
    Arcs,
    LaneLabel,
    Marks,
    ModelScene,
    OutputGroup,
    OutputRow,
    Place,
    StackScene,
)
from tests.explorer.panels.flow.made import WORDS, flow_view, stack_flow
from tests.explorer.widgets.pictures import rendered


def scene(layers: int = 8, positions: int = 4) -> ModelScene:
    words = [WORDS[i % len(WORDS)] for i in range(positions)]
    stack = flow_view(layers=layers, positions=positions).stacks[0]
    return ModelScene((StackScene(stack, tuple(LaneLabel(word, f"tip of {word}") for word in words)),))


@pytest.fixture
def picture(qtbot) -> ModelPicture:
    picture = ModelPicture()
    qtbot.addWidget(picture)
    picture.resize(700, 520)
    picture.set_scene(scene())
    picture.set_marks(Marks(Place(0, 5, 3), (0, 0)))
    picture.set_arcs(Arcs(np.array([0.5, 0.1, 0.3, 0.1], np.float32), 0))
    picture.show()
    return picture


def middle(rect: QRectF) -> QPoint:
    return rect.center().toPoint()


def heard(signal) -> list:  # type: ignore[type-arg]
    told: list = []  # type: ignore[type-arg]
    signal.connect(lambda *values: told.append(values[0] if len(values) == 1 else values))
    return told


def wheel(picture: ModelPicture, turn: int, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    at = QPointF(300, 300)
    event = QWheelEvent(
        at, picture.mapToGlobal(at), QPoint(), QPoint(0, turn), Qt.MouseButton.NoButton, modifiers,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(picture, event)


def test_a_click_chooses_the_block_the_token_or_both(picture, qtbot):
    chosen = heard(picture.chosen)
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(picture.crossing_rect(Place(0, 2, 1))))
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(picture.chip_rect(0, 2)))
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(picture.name_rect(0, 7)))
    assert chosen == [Place(0, 2, 1), Place(0, -1, 2), Place(0, 7, -1)]


def test_what_is_chosen_already_is_gone_into(picture, qtbot):
    entered = heard(picture.entered)
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(picture.crossing_rect(Place(0, 5, 3))))
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(picture.name_rect(0, 5)))
    qtbot.keyClick(picture, Qt.Key.Key_Return)
    assert entered == [Place(0, 5, 3)] * 3


def test_shift_and_the_right_button_choose_the_key(picture, qtbot):
    keys = heard(picture.key_chosen)
    at = middle(picture.chip_rect(0, 1))
    qtbot.mouseClick(picture, Qt.MouseButton.RightButton, pos=at)
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, pos=at)
    assert keys == [(0, 1), (0, 1)]


@pytest.mark.parametrize(
    ("key", "place"),
    [
        (Qt.Key.Key_Left, Place(0, 5, 2)),
        (Qt.Key.Key_Up, Place(0, 6, 3)),
        (Qt.Key.Key_Down, Place(0, 4, 3)),
        (Qt.Key.Key_Home, Place(0, 5, 0)),
    ],
)
def test_keys_go_over_tokens_and_blocks(picture, qtbot, key, place):
    chosen = heard(picture.chosen)
    qtbot.keyClick(picture, key)
    qtbot.keyClick(picture, Qt.Key.Key_Right)  # there is no token after the last
    assert chosen == [place]


def test_from_the_last_token_read_the_keys_go_to_the_first_one_written(picture, qtbot):
    labels = tuple(LaneLabel(word) for word in ("The", "cat", "sat"))
    two = (StackScene(stack_flow("encoder", 2, 3), labels, "encoder"), StackScene(stack_flow("decoder", 4, 3), labels))
    picture.set_scene(ModelScene(two))
    picture.set_marks(Marks(Place(0, 1, 2)))
    chosen = heard(picture.chosen)
    qtbot.keyClick(picture, Qt.Key.Key_Right)
    assert chosen == [Place(1, 1, 0)]


def test_the_wheel_goes_in_and_out_where_nothing_scrolls(picture):
    zoomed = heard(picture.zoomed)
    wheel(picture, 120)
    wheel(picture, -120)
    assert zoomed == [1, -1]


def test_the_wheel_scrolls_where_blocks_do_not_fit_and_goes_in_with_ctrl(picture):
    picture.set_scene(scene(layers=40))
    before, zoomed = picture.layout_now().scroll_y, heard(picture.zoomed)
    wheel(picture, 120)
    assert picture.layout_now().scroll_y > before
    wheel(picture, -120)
    assert picture.layout_now().scroll_y == before
    assert zoomed == []
    wheel(picture, 120, Qt.KeyboardModifier.ControlModifier)
    assert zoomed == [1]


def bar_length(picture: ModelPicture, role: str, block: int, row: int, position: int) -> int:
    """Pixels of a bar, counted in what is painted."""
    image = picture.grab().toImage()
    layout = picture.layout_now()
    y = round(layout.row_y(block, row, 2))
    column = layout.column(0, position)
    colour = QColor(getattr(LIGHT, role)).rgb()
    return sum(image.pixel(x, y) == colour for x in range(round(column.left()), round(column.right())))


def test_bars_are_as_long_as_the_norms_written(picture):
    """2, 4, 6 and 8 by the feed-forward network; a quarter of that by attention."""
    picture.set_arcs(None)
    network = [bar_length(picture, "feed_forward", 2, 1, position) for position in range(4)]
    attention = [bar_length(picture, "attention", 2, 0, position) for position in range(4)]
    room = picture.layout_now().bar_room
    for position in range(4):
        assert network[position] == pytest.approx(room * (position + 1) / 4, abs=2.5)
        assert attention[position] == pytest.approx(room * (position + 1) / 16, abs=2.5)


def test_a_lane_is_as_wide_as_its_norm(picture):
    """At the top of block 6 the last token's is 4 times as wide as the first one's."""
    layout, artist = picture.layout_now(), picture.painter_of(picture.layout_now())
    y = layout.block_bottom(7)

    def width(position: int) -> float:
        path, x = artist.lane(0, position), layout.lane_x(0, position)
        inside = [dx for dx in np.arange(-9, 9, 0.05) if path.contains(QPointF(x + dx, y))]
        return float(max(inside) - min(inside))

    assert width(3) / width(1) == pytest.approx(2, abs=0.1)
    assert width(3) == pytest.approx(layout.lane_room * (3 + 6) / (3 + 7), abs=0.2)


def test_pointing_says_the_numbers(picture, qtbot):
    hovered = heard(picture.hovered)
    qtbot.mouseMove(picture, middle(picture.crossing_rect(Place(0, 2, 1))))
    assert picture.toolTip().splitlines() == [
        "“and”, block 2: the stream's norm goes from 8.000 to 10.00",
        "attention wrote 1.000",
        "the feed-forward network wrote 4.000",
    ]
    qtbot.mouseMove(picture, middle(picture.crossing_rect(Place(0, -1, 3))))
    assert "enters block 0 with norm 1.200" in picture.toolTip()
    qtbot.mouseMove(picture, middle(picture.chip_rect(0, 2)))
    assert picture.toolTip() == "tip of Anna"
    assert hovered == [(0, 1), (0, 3), (0, 2)]


def test_pointing_at_what_the_model_says(picture, qtbot):
    row = OutputRow("Tom", 0.5, "50.0 %", tooltip="“Tom”: probability 0.5")
    picture.set_outputs([OutputGroup("next", (row,), 0, 3)])
    outputs = picture.header().outputs()
    qtbot.mouseMove(picture, middle(outputs.row_rect(0, 0)))
    assert picture.toolTip() == "“Tom”: probability 0.5"
    image, bar = picture.grab().toImage(), outputs.bar_rect(0, 0)
    y, colour = round(bar.center().y()), QColor(LIGHT.bar).rgb()
    drawn = sum(image.pixel(x, y) == colour for x in range(round(bar.left()) - 1, round(bar.right()) + 2))
    assert drawn == pytest.approx(bar.width() / 2, abs=2)


def test_where_lanes_fit_but_for_their_chips_these_stand_in_two_rows(picture, qtbot):
    """All lanes are in sight, no chip covers another, and a click on any part of one chooses it."""
    picture.set_scene(scene(positions=22))
    layout = picture.layout_now()
    assert layout.staggered
    assert layout.most_scroll_x == 0
    rects = [layout.chip_slot(0, position) for position in range(22)]
    assert not any(a.intersects(b) for i, a in enumerate(rects) for b in rects[:i])
    assert {rect.top() for rect in rects[::2]} != {rect.top() for rect in rects[1::2]}
    assert all(rect.bottom() <= picture.height() for rect in rects)
    for position, rect in enumerate(rects):
        for x in (rect.left() + 1, rect.center().x(), rect.right() - 1):
            assert layout.place_at(QPointF(x, rect.center().y())) == Place(0, CHIP, position)
    chosen = heard(picture.chosen)
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(rects[7]))
    assert chosen == [Place(0, -1, 7)]
    for positions, staggered in ((4, False), (80, False)):  # there is room; they are scrolled
        picture.set_scene(scene(positions=positions))
        assert picture.layout_now().staggered == staggered


def test_arcs_in_low_blocks_are_bowed(picture):
    """They rise by more than half a block between the lanes, where a level line would be."""
    picture.set_scene(scene(layers=16, positions=12))
    picture.set_marks(Marks(Place(0, 8, 11), (0, 0)))
    picture.set_arcs(None, 0)
    plain = rendered(picture)
    picture.set_arcs(Arcs(np.eye(12, dtype=np.float32)[1], 0), 0)
    layout, drawn = picture.layout_now(), rendered(picture)
    block = layout.block_rect(0, 8)
    x = round((layout.lane_x(0, 1) + layout.lane_x(0, 11)) / 2 + 0.3 * layout.pitch)
    changed = [y for y in range(drawn.height()) if drawn.pixel(x, y) != plain.pixel(x, y)]
    assert changed
    assert max(changed) < block.bottom() - 0.3 * block.height()
    assert min(changed) > block.top() - 0.3 * block.height()


def test_of_a_long_text_and_a_deep_model_only_what_is_seen_is_drawn(picture):
    picture.set_scene(scene(layers=30, positions=512))
    picture.set_marks(Marks(Place(0, 20, 400), (0, 0)))
    layout = picture.layout_now()
    assert layout.area.contains(layout.crossing(Place(0, 20, 400)).center())
    assert layout.gutter < layout.lane_x(0, 400) < layout.width
    assert 400 in layout.visible(0)
    assert len(layout.visible(0)) < 25
    assert len(layout.visible_blocks(0)) < 30
    picture.grab()


def test_light_and_dark_and_the_selection_are_drawn(picture):
    light = rendered(picture)
    picture.set_theme(DARK)
    dark = rendered(picture)
    assert dark != light
    picture.set_marks(Marks(Place(0, 4, 2), (0, 0)))
    assert rendered(picture) != dark


def test_without_a_model_a_sentence_stands_there(qtbot):
    empty = ModelPicture()
    qtbot.addWidget(empty)
    empty.set_empty_text("Nothing yet.")
    empty.resize(300, 200)
    bare = rendered(empty)
    empty.set_empty_text("")
    assert rendered(empty) != bare
