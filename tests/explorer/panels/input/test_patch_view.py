"""A picture in patches: what is drawn where, and what a click, the pointer and the arrow keys say."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.input.patch_view import PatchView
from attention_explorer.panels.input.picture import PictureInput
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

BLUE = np.full((20, 30, 3), (0, 0, 200), np.uint8)


@pytest.fixture
def view(qtbot) -> PatchView:
    view = PatchView()
    qtbot.addWidget(view)
    view.set_picture(BLUE, rows=2, columns=3)
    view.resize(view.sizeHint())
    view.show()
    return view


def middle(view: PatchView, patch: int) -> QPoint:
    return view.patch_rect(patch).center().toPoint()


def colour(view: PatchView, patch: int) -> tuple[int, int, int]:
    found = rendered(view).pixelColor(middle(view, patch))
    return found.red(), found.green(), found.blue()


def test_the_picture_keeps_its_shape(view):
    assert view.sizeHint().width() == 120
    assert view.sizeHint().height() == 80
    assert {colour(view, patch) for patch in range(6)} == {(0, 0, 200)}


def test_a_click_selects_a_patch(qtbot, view):
    for patch in (0, 2, 5):
        with qtbot.waitSignal(view.patch_selected) as caught:
            QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=middle(view, patch))
        assert caught.args == [patch]


def test_the_pointer_is_followed(qtbot, view):
    heard: list[int] = []
    view.hovered.connect(heard.append)
    move_pointer(view, middle(view, 4))
    assert heard[-1] == 4


@pytest.mark.parametrize(
    ("start", "key", "patch"),
    [
        (0, Qt.Key.Key_Right, 1),
        (0, Qt.Key.Key_Down, 3),
        (0, Qt.Key.Key_Left, 0),
        (5, Qt.Key.Key_Up, 2),
        (5, Qt.Key.Key_Right, 5),
        (-1, Qt.Key.Key_Down, 3),
    ],
)
def test_arrow_keys_walk(qtbot, view, start, key, patch):
    view.set_selection(start, -1)
    with qtbot.waitSignal(view.patch_selected) as caught:
        QTest.keyClick(view, key)
    assert caught.args == [patch]


def test_weights_are_colour_over_the_picture_dimmed(view):
    view.set_weights(np.array([0, 0.1, 0.4, 0, 0, 0.2], np.float32))
    accent = np.array([int(LIGHT.query[i : i + 2], 16) for i in (1, 3, 5)])
    dimmed = np.array([0, 0, 200]) * (1 - 110 / 255)
    for patch, share in ((0, 0), (1, 0.25), (2, 1), (5, 0.5)):
        opacity = 215 / 255 * share
        assert colour(view, patch) == pytest.approx(tuple(dimmed * (1 - opacity) + accent * opacity), abs=3)
    view.set_weights(None)
    assert colour(view, 2) == (0, 0, 200)


@pytest.mark.parametrize("weights", [np.zeros(6), np.full(6, np.nan), np.ones(4)])
def test_what_is_no_weight_is_not_drawn(view, weights):
    view.set_weights(weights.astype(np.float32))
    assert colour(view, 2) == (0, 0, 200)


def test_what_looks_and_what_is_looked_at_are_framed(view):
    bare = rendered(view)
    view.set_selection(1, 4)
    framed = rendered(view)
    assert framed != bare
    edge = view.patch_rect(1).adjusted(1, 1, -1, -1)
    assert framed.pixelColor(round(edge.left()), round(edge.center().y())).name() == LIGHT.query
    view.set_theme(DARK)
    assert rendered(view) != framed


def test_without_a_picture_nothing_is_selected(qtbot, view):
    view.set_picture(None)
    with qtbot.assertNotEmitted(view.patch_selected):
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
        QTest.keyClick(view, Qt.Key.Key_Right)


def test_a_choice_is_made_by_the_keyboard(qtbot):
    box = PictureInput()
    qtbot.addWidget(box)
    box.set_choices([("sample:a", "a"), ("/x/b.png", "b.png")], "sample:a")
    box.show()
    with qtbot.waitSignal(box.chosen) as caught:
        QTest.keyClick(box.samples, Qt.Key.Key_Down)
    assert caught.args == ["/x/b.png"]
    with qtbot.waitSignal(box.open_asked):
        QTest.mouseClick(box.open_button, Qt.MouseButton.LeftButton)


def test_a_tiny_patch_has_a_frame_that_can_be_seen(view):
    view.set_picture(BLUE, rows=20, columns=30)  # patches of 4 pixels
    bare = rendered(view)
    view.set_selection(10 * 30 + 15, -1)
    framed = rendered(view)
    centre = middle(view, 10 * 30 + 15)
    changed = [x for x in range(view.width()) if framed.pixelColor(x, centre.y()) != bare.pixelColor(x, centre.y())]
    assert changed[-1] - changed[0] >= 7


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_keyboard_on_a_picture_can_be_seen(view, theme):
    view.set_theme(theme)
    view.activateWindow()
    QTest.qWaitForWindowActive(view)
    view.clearFocus()
    bare = rendered(view)
    view.setFocus(Qt.FocusReason.TabFocusReason)
    ringed = rendered(view)
    assert ringed.pixelColor(1, view.height() // 2).name() == theme.focus
    view.clearFocus()
    assert rendered(view) == bare
