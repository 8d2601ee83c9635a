"""The picture of one block: boxes, heads, switches, by mouse and keys, and the numbers they show."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt

from attention_explorer.look.theme import DARK
from attention_explorer.panels.flow.block_layout import block_layout, least_height
from attention_explorer.panels.flow.block_picture import BlockPicture
from attention_explorer.panels.flow.box_text import Around, fitting, said, ways_to_say
from attention_explorer.panels.flow.numbers import NumbersTable, columns_of
from attention_models.protocol.flow import NormBox, OutputBox
from tests.explorer.panels.flow.made import WORDS, block_view, boxes
from tests.explorer.panels.flow.test_block_graph import both_norms, parallel, post_norm
from tests.explorer.panels.flow.test_model_picture import heard
from tests.explorer.widgets.pictures import rendered

AROUND = Around("went", "to", (("attention", 2.0), ("feed_forward", 8.0)))
SWITCHES = {0: "Switch off", 5: "Switch off", 8: "Switch on"}


@pytest.fixture
def picture(qtbot) -> BlockPicture:
    picture = BlockPicture()
    qtbot.addWidget(picture)
    picture.resize(760, 560)
    picture.set_block(block_view(), AROUND, ("x   from below", "to block 6"), {"attention": WORDS}, SWITCHES)
    picture.set_head(1)
    picture.show()
    return picture


def middle(rect: QRectF) -> QPoint:
    return rect.center().toPoint()


def test_boxes_stand_upwards_in_the_order_in_which_they_ran(picture):
    tops = [picture.box_rect(box).top() for box in (0, 1, 4, 5, 7, 8)]
    assert tops == sorted(tops, reverse=True)
    assert len({picture.box_rect(box).top() for box in (1, 2, 3)}) == 1
    assert picture.box_rect(6).center().y() == pytest.approx(picture.box_rect(5).center().y())


@pytest.mark.parametrize("made", [boxes(), post_norm(), parallel(), both_norms()], ids=["pre", "post", "side", "both"])
@pytest.mark.parametrize("size", [(760, 600), (420, 300)])
def test_no_box_covers_another_and_none_is_cut_off(picture, made, size):
    picture.resize(*size)
    picture.set_block(block_view(made=made), AROUND, ("", ""), {"attention": WORDS}, {})
    picture.resize(size[0], max(size[1], picture.minimumHeight()))
    rects = [picture.box_rect(i) for i in range(len(made))]
    for i, rect in enumerate(rects):
        assert QRectF(picture.rect()).contains(rect), i
        assert not any(rect.intersects(other) for other in rects[:i] if other != rect), i


def test_bars_of_what_heads_write_leave_the_title_its_room(picture):
    font = picture.font()
    output = next(i for i, box in enumerate(boxes()) if isinstance(box, OutputBox))
    box = picture.view.boxes[output]
    artist = picture.painter_of(picture.layout_now())
    assert artist.shows_norms(output, box)
    font.setPointSizeF(22)
    picture.setFont(font)
    picture.resize(480, 560)
    artist = picture.painter_of(picture.layout_now())
    assert artist.norms_rect(output).left() < picture.box_rect(output).left() + 260  # it would lie on the title
    assert not artist.shows_norms(output, box)


def test_the_lower_the_room_the_closer_boxes_stand_before_anything_is_scrolled(picture):
    """First beside their titles, then lower; each step needs less, and what is drawn stays within its box."""
    view, kinds = picture.view, []
    needed = 1000.0
    for height in range(900, 200, -5):
        layout = block_layout(view, 760, height, 17)
        if layout.height > height:
            break
        kinds.append((layout.dense, layout.tight))
        needed = layout.height
        for head in range(2):
            assert layout.rects[4].contains(layout.head_rect(4, head, 2))
        assert layout.rects[8].contains(layout.neuron_rect(8, 0, 3))
    assert list(dict.fromkeys(kinds)) == [(False, False), (True, False), (True, True)]
    assert needed - least_height(view, 760, 17) < 5


@pytest.mark.parametrize("number", range(len(boxes())))
def test_what_is_said_of_a_box_has_shorter_ways(number):
    ways = ways_to_say(boxes()[number], AROUND)
    assert said(boxes()[number], AROUND) == ways[0]
    assert [len(way) for way in ways] == sorted((len(way) for way in ways), reverse=True)
    assert fitting(ways, 1e9, len) == ways[0]
    assert fitting(ways, len(ways[-1]), len) == next(way for way in ways if len(way) <= len(ways[-1]))
    assert fitting(ways, -1, len) == ""


def test_an_arrow_leads_from_what_is_read(picture):
    """One that reads a box from that box's upper edge, one that reads the stream from the left."""
    layout = picture.layout_now()
    for number, reads in ((1, 0), (4, 1), (5, 4), (8, 7)):
        starts = [arrow.points[0] for arrow in layout.arrows if arrow.reader == number]
        assert any(start.y() == pytest.approx(picture.box_rect(reads).top()) for start in starts), number
    into = [arrow for arrow in layout.arrows if arrow.reader == 0]
    assert len(into) == 1
    assert into[0].points[0].x() < picture.box_rect(0).left()


def test_a_click_on_a_head_chooses_it_and_once_more_goes_in(picture, qtbot):
    chosen, entered = heard(picture.head_chosen), heard(picture.head_entered)
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(picture.head_rect(4, 2)))
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(picture.head_rect(4, 1)))
    assert (chosen, entered) == ([(4, 2)], [(4, 1)])


def test_switches_and_boxes_are_told_apart(picture, qtbot):
    switched, shown = heard(picture.switched), heard(picture.box_chosen)
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=middle(picture.switch_rect(8)))
    title = picture.box_rect(8).topLeft() + QPointF(30, 10)
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=title.toPoint())
    assert (switched, shown) == ([8], [8])


def test_keys_walk_over_boxes_and_heads_and_switch(picture, qtbot):
    switched, shown, chosen, moved = (
        heard(picture.switched), heard(picture.box_chosen), heard(picture.head_chosen), heard(picture.moved)
    )  # fmt: skip
    qtbot.keyClick(picture, Qt.Key.Key_Up)
    qtbot.keyClick(picture, Qt.Key.Key_X)
    qtbot.keyClick(picture, Qt.Key.Key_Return)
    qtbot.keyClick(picture, Qt.Key.Key_Left)
    for _ in range(4):
        qtbot.keyClick(picture, Qt.Key.Key_Up)
    qtbot.keyClick(picture, Qt.Key.Key_Right)
    assert (switched, shown, moved, chosen) == ([0], [0], [-1], [(4, 2)])


def test_pointing_says_the_numbers(picture):
    layout, made = picture.layout_now(), boxes()
    stripes = picture.painter_of(layout).stripes_rect(0)
    norm = made[0]
    assert isinstance(norm, NormBox)
    at = QPointF(stripes.left() + 5.5 / 8 * stripes.width(), stripes.top() + 2)
    told = picture.tooltip_at(0, at)
    assert told == "dimension 5: (−3.000 − 0.0625) ÷ √(1.407² + 1e-05) × 0.500 + 0.125 = −0.963"
    value = (-3 - norm.mean) / norm.deviation * 0.5 + 0.125
    assert value == pytest.approx(float(norm.after[5]), abs=1e-6)
    assert f"{value:.3f}".replace("-", "−") in told
    head = picture.tooltip_at(4, QPointF(middle(picture.head_rect(4, 1))))
    assert head.splitlines() == [
        "head 1: most on “Anna”, 0.600",
        "output of norm 2.000",
        "through W_O it writes 0.200",
    ]
    neuron = picture.tooltip_at(8, layout.neuron_rect(8, 0, 3).center())
    assert neuron.splitlines() == [
        "neuron 17: 3.500",
        "writes a vector of norm 2.250",
        "which adds +0.750 to the logit of “to”, directly",
    ]
    assert "72 numbers" in picture.tooltip_at(5, picture.box_rect(5).topLeft() + QPointF(20, 8))


def test_light_and_dark_play_and_the_head_are_drawn(picture):
    light = rendered(picture)
    picture.set_head(3)
    other = rendered(picture)
    picture.set_playing(7, 0.5)
    playing = rendered(picture)
    picture.set_theme(DARK)
    assert light != other != playing != rendered(picture)


def test_the_table_holds_what_the_box_holds(qtbot):
    table = NumbersTable()
    qtbot.addWidget(table)
    norm = boxes()[0]
    assert isinstance(norm, NormBox)
    names = [column.heading for column in columns_of(norm, WORDS)]
    assert names == ["dimension", "in", "gain", "bias", "out"]
    table.show_box(block_view(), 0, {})
    model = table.table.model()
    assert model.rowCount() == 8
    assert [model.data(model.index(5, column)) for column in range(5)] == ["5", "−3.000", "0.500", "0.125", "−0.963"]
    heads = columns_of(boxes()[4], WORDS)
    assert [list(column.values)[1] for column in heads[:2]] == [1, "Anna"]
    qtbot.mouseClick(table.close_button, Qt.MouseButton.LeftButton)
    assert table.isHidden()
