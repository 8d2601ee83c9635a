"""The (i) in every panel's frame: opened by mouse and key, beside what it speaks of, closed by Esc, and live."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QTabBar

from attention_explorer.panels.base import Panel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.panels.registry import TITLES
from attention_explorer.panels.variance.panel import VariancePanel
from attention_explorer.session.intents import SelectKey, SetText, SetView
from attention_explorer.session.state import State
from attention_explorer.settings import Settings
from attention_explorer.widgets.callout import Callout
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import click, destroy, look_put_back, panel_of, press, settle, wait_until
from tests.explorer.silent import SilentSession, shown


def panel_named(window: MainWindow, name: str) -> Panel:
    window.dock_host.docks[name].show()
    window.dock_host.raise_panel(name)
    panel = next(panel for panel in window.panels if panel.name == name)
    wait_until(panel.isVisible)
    return panel


def on_window(window: MainWindow, panel: Panel) -> QRect:
    return QRect(panel.mapTo(window, QPoint(0, 0)), panel.size())


@pytest.mark.short("map", "masks")
@pytest.mark.parametrize("name", TITLES)
def test_it_opens_by_a_click_beside_its_panel_and_closes_by_esc(window, name):
    panel = panel_named(window, name)
    assert panel.info.isVisible()
    click(panel.info, panel.info.rect().center())
    callout = panel.callout
    assert callout.isVisible()
    assert callout.sentences == panel.about(window.session.state).sentences
    place = QRect(callout.mapTo(window, QPoint(0, 0)), callout.size())
    assert not place.intersects(on_window(window, panel))
    assert window.rect().contains(place)
    press(window.input.text, Qt.Key.Key_Escape)
    assert not callout.isVisible()
    assert not panel.info.isChecked()


@pytest.mark.short("heads", "cell")
@pytest.mark.parametrize("name", TITLES)
def test_it_opens_by_the_key_for_the_panel_that_has_the_keyboard(window, name):
    panel = panel_named(window, name)
    window.dock_host.go_to(name)
    press(window.focusWidget(), Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
    assert panel.info.isChecked()
    assert panel.callout.isVisible()
    press(window.focusWidget(), Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
    assert not panel.callout.isVisible()


def test_a_tab_stop_and_space_open_it_too(window):
    panel = panel_named(window, "map")
    panel.info.setFocus(Qt.FocusReason.TabFocusReason)
    press(panel.info, Qt.Key.Key_Space)
    assert panel.callout.isVisible()
    press(panel.info, Qt.Key.Key_Escape)
    assert not panel.callout.isVisible()


def test_from_the_text_field_the_key_speaks_of_a_panel_in_front(window):
    window.dock_host.go_to("next")
    window.input.text.setFocus()
    press(window.input.text, Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
    opened = [panel.name for panel in window.panels if panel.info.isChecked()]
    assert opened == ["next"]
    press(window.input.text, Qt.Key.Key_Escape)


def _has_keyboard(panel: Panel) -> bool:
    return panel.window().focusWidget() is panel


def test_the_key_speaks_of_the_panel_whose_tab_was_clicked_last(window):
    window.dock_host.arrange(1.0, "flow")
    QTest.qWait(300)
    window.dock_host.go_to("flow")
    before = window.focusWidget()
    assert panel_named(window, "flow").isAncestorOf(before)
    bar = next(bar for bar in window.dock_host.findChildren(QTabBar) if bar.isVisible() and bar.count() > 3)
    for title in ("Lookup", "Positions"):
        place = next(i for i in range(bar.count()) if bar.tabText(i) == title)
        before.setFocus()
        click(bar, (bar.tabRect(place) & bar.rect()).center())
        name = {"Lookup": "lookup", "Positions": "positions"}[title]
        panel = next(panel for panel in window.panels if panel.name == name)
        wait_until(partial(_has_keyboard, panel))
        press(window.focusWidget(), Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
        assert [panel.name for panel in window.panels if panel.info.isChecked()] == [name]
        press(window.focusWidget(), Qt.Key.Key_Escape)
    window.dock_host.go_to("flow")  # brought out by the program, another panel leaves the keyboard where it is
    before = window.focusWidget()
    window.dock_host.raise_panel("map")
    QTest.qWait(50)
    assert window.focusWidget() is before
    window.dock_host.arrange(1.0, "heads")


def test_another_one_takes_its_place(window):
    first, second = panel_named(window, "heads"), panel_named(window, "map")
    click(first.info, first.info.rect().center())
    click(second.info, second.info.rect().center())
    assert not first.callout.isVisible()
    assert not first.info.isChecked()
    assert second.callout.isVisible()
    assert sum(callout.isVisible() for callout in window.findChildren(Callout)) == 1
    press(window, Qt.Key.Key_Escape)


def test_its_numbers_follow(window):
    panel = panel_named(window, "map")
    click(panel.info, panel.info.rect().center())
    before = panel.callout.sentences
    window.session.dispatch(SelectKey(3))
    wait_until(lambda: panel.callout.sentences != before)
    assert "“Anna”, which is framed" in " ".join(panel.callout.sentences)
    window.session.dispatch(SetText("Once upon a time"))
    settle(window)
    wait_until(lambda: "The row of “time”" in " ".join(panel.callout.sentences))
    window.session.dispatch(SetView("unit", "nats"))
    wait_until(lambda: " nats of " in " ".join(panel.callout.sentences))
    press(window, Qt.Key.Key_Escape)


def test_what_a_panel_keeps_for_itself_is_followed_too(window):
    """A slider of a panel is no part of the state."""
    panel = panel_named(window, "variance")
    click(panel.info, panel.info.rect().center())
    wait_until(lambda: "At d = 64" in " ".join(panel.callout.sentences))
    panel_of(window, VariancePanel).slider.setValue(0)
    wait_until(lambda: "At d = 1 " in " ".join(panel.callout.sentences))
    press(window, Qt.Key.Key_Escape)


def test_it_goes_with_its_panel(window):
    panel = panel_named(window, "masks")
    click(panel.info, panel.info.rect().center())
    window.dock_host.raise_panel("next")
    wait_until(lambda: not panel.callout.isVisible())
    assert not panel.info.isChecked()


def test_esc_closes_it_before_it_ends_a_mode(window):
    """Painting ends with the next one."""
    masks = panel_of(window, MaskScalePanel)
    panel_named(window, "masks")
    window.session.dispatch(SetView("painting", "block"))
    click(masks.info, masks.info.rect().center())
    press(panel_of(window, HeadMapPanel).map, Qt.Key.Key_Escape)
    assert not masks.callout.isVisible()
    assert window.session.state.document.view.painting == "block"
    press(panel_of(window, HeadMapPanel).map, Qt.Key.Key_Escape)
    assert window.session.state.document.view.painting == "off"


def test_the_keyboard_goes_to_what_a_panel_is_about_and_not_to_its_button(window):
    for name in TITLES:
        panel = panel_named(window, name)
        assert panel.first_focus() is not panel.info


@pytest.mark.short("next", "playground")
@pytest.mark.parametrize("name", TITLES)
def test_it_speaks_before_anything_has_run(qtbot, name):
    """Nothing is open, and nothing answers."""
    from attention_explorer.panels.registry import BUILT_IN, load

    kind = load(next(point for point in BUILT_IN if point.name == name))
    panel = shown(qtbot, kind, SilentSession(State()))
    about = panel.about(panel.session.state)
    assert len(about.sentences) >= 2
    assert about.to_try.startswith("Try: ")
    panel.show_about()
    assert panel.callout.isVisible()
    press(panel, Qt.Key.Key_Escape)
    assert not panel.callout.isVisible()


def test_a_panel_alone_in_its_window_gives_way_to_it(qtbot):
    """There is nothing beside it: the sentences stand below, and what the panel shows stays in sight above."""
    panel = shown(qtbot, NextTokenPanel, SilentSession(State()))
    panel.resize(500, 600)
    panel.show_about()
    QApplication.processEvents()
    place = QRect(panel.callout.mapTo(panel, QPoint(0, 0)), panel.callout.size())
    card = QRect(panel.card.mapTo(panel, QPoint(0, 0)), panel.card.size())
    assert not place.intersects(card)
    assert card.height() >= 0.5 * panel.height()
    assert panel.rect().contains(place)


@pytest.mark.full
@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("arrangement", ["flow", "heads"])
def test_at_every_size_of_text_all_of_it_can_be_read(qapp, scale, arrangement):
    """In the smallest window that lessons use: no line is cut, and what does not fit is scrolled to."""
    with look_put_back():
        settings = Settings(theme="light")
        settings.text_scale = scale
        window = MainWindow(State(), settings, remembers=False)
        try:
            window.dock_host.arrange(scale, arrangement)
            window.resize(1280, 800)
            window.show()
            for name in TITLES:
                panel = panel_named(window, name)
                panel.show_about()
                QTest.qWait(20)
                callout = panel.callout
                place = QRect(callout.mapTo(window, QPoint(0, 0)), callout.size())
                assert window.rect().contains(place), name
                for label in callout.findChildren(QLabel):
                    if label.isVisible() and label.wordWrap():
                        assert label.height() >= label.heightForWidth(label.width()), (name, label.text())
                callout.dismiss()
        finally:
            window.close()
            destroy(window)


def test_bits_or_nats_is_one_choice_in_the_view_menu_and_lasts(window):
    window.menus["unit_nats"].trigger()
    view = window.session.state.document.view
    assert (view.unit, view.lasting.unit) == ("nats", "nats")
    assert window.menus["unit_nats"].isChecked()
    window.menus["unit_bits"].trigger()
    assert window.session.state.document.view.unit == "bits"
    assert window.menus["unit_bits"].isChecked()
