"""Ribbons between two sentences: what is drawn, what the pointer and the keys choose."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from attention_explorer.look.theme import DARK
from attention_explorer.panels.alignment.ribbons import LEAST_WEIGHT, Ribbons
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

SOURCES, TARGETS = ("The", "black", "cat"), ("El", "gato")
WEIGHTS = np.array([[0.9, 0.09, 0.01], [0.2, 0.05, 0.75]], np.float32)
SOURCE, TARGET = 0, 1


@pytest.fixture
def ribbons(qtbot) -> Ribbons:
    widget = Ribbons()
    qtbot.addWidget(widget)
    widget.set_alignment(WEIGHTS, SOURCES, TARGETS)
    widget.resize(400, widget.sizeHint().height())
    widget.show()
    return widget


def middle(ribbons: Ribbons, side: int, word: int) -> QPoint:
    return ribbons.word_rect(side, word).center().toPoint()


def test_every_weight_worth_seeing_has_a_ribbon_the_widest_last(ribbons):
    drawn = ribbons.ribbons()
    assert len(drawn) == int((WEIGHTS >= LEAST_WEIGHT).sum()) == 5
    assert drawn[-1] == (0, 0)
    assert [WEIGHTS[pair] for pair in drawn] == sorted(WEIGHTS[pair] for pair in drawn)


def test_a_word_pointed_at_keeps_only_its_ribbons(ribbons, qtbot):
    calm = rendered(ribbons)
    with qtbot.waitSignal(ribbons.hovered) as told:
        move_pointer(ribbons, middle(ribbons, TARGET, 1))
    assert told.args == [1, -1]
    assert {target for target, _ in ribbons.ribbons()} == {1}
    assert rendered(ribbons) != calm
    move_pointer(ribbons, middle(ribbons, SOURCE, 0))
    assert ribbons.ribbons() == [(1, 0), (0, 0)]
    with qtbot.waitSignal(ribbons.hovered) as told:
        move_pointer(ribbons, QPoint(200, 3))
    assert told.args == [-1, -1]
    assert rendered(ribbons) == calm


def test_a_cell_pointed_at_elsewhere_is_one_ribbon(ribbons):
    ribbons.set_hover(1, 2)
    assert ribbons.ribbons() == [(1, 2)]
    ribbons.set_hover(9, 9)  # of a longer text that is gone
    assert len(ribbons.ribbons()) == 5


def test_clicks_choose_on_either_side(ribbons, qtbot):
    with qtbot.waitSignal(ribbons.target_selected) as target:
        QTest.mouseClick(ribbons, Qt.MouseButton.LeftButton, pos=middle(ribbons, TARGET, 1))
    with qtbot.waitSignal(ribbons.source_selected) as source:
        QTest.mouseClick(ribbons, Qt.MouseButton.LeftButton, pos=middle(ribbons, SOURCE, 2))
    assert (target.args, source.args) == ([1], [2])
    with qtbot.assertNotEmitted(ribbons.target_selected), qtbot.assertNotEmitted(ribbons.source_selected):
        QTest.mouseClick(ribbons, Qt.MouseButton.LeftButton, pos=QPoint(200, 40))


def test_the_arrow_keys_walk_the_target_and_with_shift_the_source(ribbons):
    chosen: list[tuple[str, int]] = []
    ribbons.target_selected.connect(lambda word: chosen.append(("target", word)))
    ribbons.source_selected.connect(lambda word: chosen.append(("source", word)))
    ribbons.set_selection(0, 0)
    assert chosen == []
    for _ in range(3):  # the last one finds nothing further
        QTest.keyClick(ribbons, Qt.Key.Key_Down)
    QTest.keyClick(ribbons, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(ribbons, Qt.Key.Key_Up)
    assert chosen == [("target", 1), ("source", 1), ("target", 0)]


def test_a_screen_reader_hears_the_reading(ribbons):
    assert ribbons.accessibleDescription() == "El from The 0.90, gato from cat 0.75"
    ribbons.set_alignment(None, (), ())
    assert ribbons.accessibleDescription() == ""
    assert ribbons.ribbons() == []


def test_the_chosen_word_the_theme_and_nothing_at_all_are_drawn(ribbons):
    pictures = [rendered(ribbons)]
    ribbons.set_selection(1, 2)
    pictures.append(rendered(ribbons))
    ribbons.set_theme(DARK)
    pictures.append(rendered(ribbons))
    ribbons.set_alignment(None, (), ())
    ribbons.set_empty_text("Nothing yet.")
    pictures.append(rendered(ribbons))
    assert all(a != b for i, a in enumerate(pictures) for b in pictures[:i])


def test_words_never_leave_the_widget_and_the_sides_keep_apart(ribbons):
    ribbons.set_alignment(WEIGHTS, ("x" * 90, "b", "c"), ("y" * 90, "d"))
    for width in (240, 400, 900):
        ribbons.resize(width, ribbons.height())
        left, right = ribbons.word_rect(SOURCE, 0), ribbons.word_rect(TARGET, 0)
        assert left.left() >= 0
        assert right.right() <= width
        assert right.left() - left.right() > width / 4


def test_weights_of_another_shape_are_refused(ribbons):
    with pytest.raises(ValueError, match="no weights of shape"):
        ribbons.set_alignment(WEIGHTS.T, SOURCES, TARGETS)
