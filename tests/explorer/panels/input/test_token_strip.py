"""The token strip as a person uses it."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtWidgets import QAbstractSlider, QApplication

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.input.chip_pictures import Chip
from attention_explorer.panels.input.token_strip import TokenStrip, TokenStripArea
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

TOKENS = [Chip("⟨start⟩", "begins the text", special=True), Chip("Tom"), Chip("␣and"), Chip("␣Anna"), Chip("␣to")]


@pytest.fixture
def strip(qtbot) -> TokenStrip:
    widget = TokenStrip()
    qtbot.addWidget(widget)
    widget.set_tokens(TOKENS)
    widget.resize(600, widget.heightForWidth(600))
    widget.show()
    return widget


def middle(strip: TokenStrip, token: int) -> QPoint:
    return strip.chip_rect(token).center().toPoint()


def test_a_click_chooses_the_query_and_shift_or_the_right_button_the_key(strip, qtbot):
    with qtbot.waitSignal(strip.token_selected) as query:
        qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=middle(strip, 4))
    with qtbot.waitSignal(strip.key_selected) as key:
        qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, middle(strip, 1))
    with qtbot.waitSignal(strip.key_selected) as other_key:
        qtbot.mouseClick(strip, Qt.MouseButton.RightButton, pos=middle(strip, 2))
    assert (query.args, key.args, other_key.args) == ([4], [1], [2])


def test_arrows_move_the_query_and_with_shift_the_key(strip, qtbot):
    strip.set_selection(3, 1)
    seen = []
    strip.token_selected.connect(lambda token: seen.append(("query", token)))
    strip.key_selected.connect(lambda token: seen.append(("key", token)))
    qtbot.keyClick(strip, Qt.Key.Key_Right)
    qtbot.keyClick(strip, Qt.Key.Key_Right)
    qtbot.keyClick(strip, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(strip, Qt.Key.Key_Home)
    qtbot.keyClick(strip, Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier)
    assert seen == [("query", 4), ("key", 0), ("query", 0)]


def test_up_and_down_move_between_lines(strip, qtbot):
    strip.resize(170, strip.heightForWidth(170))
    strip.set_selection(0, 0)
    below = strip.chip_rect(0).center()
    with qtbot.waitSignal(strip.token_selected) as caught:
        qtbot.keyClick(strip, Qt.Key.Key_Down)
    chosen = strip.chip_rect(caught.args[0])
    assert chosen.top() > below.y()
    qtbot.keyClick(strip, Qt.Key.Key_Up)
    assert strip.chip_rect(0).top() < chosen.top()


def test_selecting_from_outside_emits_nothing(strip, qtbot):
    with qtbot.assertNotEmitted(strip.token_selected), qtbot.assertNotEmitted(strip.key_selected):
        strip.set_selection(2, 1)


def test_frames_take_the_two_accents(strip):
    strip.set_selection(4, 1)
    image = rendered(strip)
    for token, colour in ((4, LIGHT.query), (1, LIGHT.key)):
        rect = strip.chip_rect(token)
        assert image.pixelColor(round(rect.center().x()), round(rect.bottom()) - 1).name() == colour


def test_hover_is_told_with_its_tooltip_and_moves_nothing(strip, qtbot):
    seen: list[int] = []
    strip.hovered.connect(seen.append)
    before = (strip.size(), strip.chip_rect(4))
    move_pointer(strip, middle(strip, 0))
    assert strip.toolTip() == "begins the text"
    move_pointer(strip, middle(strip, 0) + QPoint(2, 0))
    move_pointer(strip, middle(strip, 3))
    QApplication.sendEvent(strip, QEvent(QEvent.Type.Leave))
    assert seen == [0, 3, -1]
    assert before == (strip.size(), strip.chip_rect(4))


def test_arcs_are_drawn_above_the_chips_and_only_for_weights_that_matter(strip):
    plain = rendered(strip)
    strip.set_arcs(np.array([0.009, 0.009, 0.0, 0.0, 0.0], np.float32), 4)
    assert rendered(strip) == plain
    strip.set_arcs(np.array([0.0, 0.7, 0.0, 0.0, 0.3], np.float32), 4)
    with_arcs = rendered(strip)
    assert with_arcs != plain
    chips = strip.chip_rect(0).united(strip.chip_rect(4)).adjusted(0, 1, 0, 0).toRect()
    assert with_arcs.copy(chips) == plain.copy(chips)
    strip.set_arcs(None, -1)
    assert rendered(strip) == plain


def test_arcs_to_special_tokens_are_fainter_when_dimmed(strip):
    strip.set_arcs(np.array([0.9, 0.0, 0.0, 0.0, 0.0], np.float32), 4)
    dimmed = rendered(strip)
    strip.set_dim_special(False)
    full = rendered(strip)
    darkness = [
        sum(255 - image.pixelColor(x, y).green() for x in range(0, 600, 3) for y in range(46))
        for image in (dimmed, full)
    ]
    assert darkness[0] < 0.7 * darkness[1]


def test_weights_for_other_tokens_are_refused(strip):
    with pytest.raises(ValueError, match="5 tokens"):
        strip.set_arcs(np.zeros(4, np.float32), 0)


def test_new_tokens_drop_arcs_and_what_no_longer_exists(strip, qtbot):
    strip.set_selection(4, 1)
    strip.set_arcs(np.full(5, 0.2, np.float32), 4)
    strip.set_tokens(TOKENS[:2])
    fresh = TokenStrip()
    qtbot.addWidget(fresh)
    fresh.set_tokens(TOKENS[:2])
    fresh.set_selection(-1, 1)
    fresh.resize(strip.size())
    assert rendered(strip) == rendered(fresh)


def test_a_role_draws_a_line_in_its_colour(strip):
    strip.set_tokens([Chip("new", role="ok")])
    rect = strip.chip_rect(0)
    assert rendered(strip).pixelColor(round(rect.center().x()), round(rect.bottom()) - 4).name() == LIGHT.ok


def test_theme_changes_the_picture(strip):
    light = rendered(strip)
    strip.set_theme(DARK)
    assert rendered(strip) != light


def test_height_follows_width(strip):
    assert strip.hasHeightForWidth()
    assert strip.heightForWidth(200) > strip.heightForWidth(600)


def test_an_empty_strip_says_so_and_takes_no_keys(qtbot):
    widget = TokenStrip()
    qtbot.addWidget(widget)
    widget.resize(400, 80)
    blank = rendered(widget)
    widget.set_empty_text("Type a sentence.")
    assert rendered(widget) != blank
    with qtbot.assertNotEmitted(widget.token_selected):
        qtbot.keyClick(widget, Qt.Key.Key_Right)


@pytest.fixture
def area(qtbot) -> TokenStripArea:
    widget = TokenStripArea(most_lines=3)
    qtbot.addWidget(widget)
    widget.resize(600, 100)
    widget.show()
    return widget


def test_the_area_takes_the_height_of_few_tokens_and_no_more_than_three_lines(area, qtbot):
    area.set_tokens(TOKENS)
    assert area.height() == area.strip.heightForWidth(area.width())
    one_line = area.height()
    area.set_tokens([Chip(f"␣token{index}") for index in range(600)])
    QApplication.processEvents()
    assert one_line < area.height() < 4 * one_line
    assert area.strip.height() == area.strip.heightForWidth(area.viewport().width())
    assert area.strip.height() > area.height()
    assert area.verticalScrollBar().maximum() > 0


def test_the_area_follows_the_keyboard_and_not_the_pointer(area, qtbot):
    area.set_tokens([Chip(f"␣token{index}") for index in range(600)])
    QApplication.processEvents()
    area.strip.set_hover(599)
    assert area.verticalScrollBar().value() == 0
    qtbot.keyClick(area.strip, Qt.Key.Key_End)
    assert area.verticalScrollBar().value() > 0
    shown = area.strip.visibleRegion().boundingRect()
    assert shown.contains(area.strip.chip_rect(599).center().toPoint())


def test_a_token_asked_for_before_the_strip_is_laid_out_is_in_view_until_somebody_scrolls(area):
    def in_view(token: int) -> bool:
        rect = area.strip.chip_rect(token).toRect()
        return bool(area.strip.visibleRegion().boundingRect().contains(rect))

    area.set_tokens([Chip(f"␣token{index}") for index in range(600)])
    area.show_token(599)
    QApplication.processEvents()
    assert in_view(599)
    area.resize(330, area.height())  # more lines
    QApplication.processEvents()
    assert in_view(599)
    area.verticalScrollBar().triggerAction(QAbstractSlider.SliderAction.SliderToMinimum)
    area.resize(480, area.height())
    QApplication.processEvents()
    assert in_view(0)
    assert not in_view(599)


def test_lines_are_counted_anew_when_tokens_room_or_letters_change(strip, qtbot):
    def fresh() -> int:
        other = TokenStrip()
        qtbot.addWidget(other)
        other.setFont(strip.font())
        other.set_tokens(strip._tokens)
        return other.lines_for(300)

    few = strip.lines_for(300)
    strip.set_tokens([Chip(f"␣token{index}") for index in range(60)])
    many = strip.lines_for(300)
    assert many == fresh() > few
    assert strip.lines_for(900) < many
    font = strip.font()
    font.setPointSizeF(2 * font.pointSizeF())
    strip.setFont(font)
    assert strip.lines_for(300) == fresh() > many
