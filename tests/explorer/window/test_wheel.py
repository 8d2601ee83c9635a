"""The wheel scrolls past lists, number fields and sliders, which take it only where they have the keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QLabel,
    QScrollArea,
    QSlider,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.widgets.number_field import RealBox, WholeBox
from attention_explorer.widgets.page import page_of, scrolling
from attention_explorer.widgets.scroll_areas import area_around
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import settle

DOWN, UP = QPoint(0, -120), QPoint(0, 120)
Control = QComboBox | QAbstractSpinBox | QSlider


def controls(within: QWidget) -> list[Control]:
    """Those that a person can see and use now."""
    found = within.findChildren(QWidget)
    return [w for w in found if isinstance(w, Control) and w.isVisible() and w.isEnabled()]


def value_of(control: Control) -> object:
    match control:
        case QComboBox():
            return control.currentIndex()
        case QSpinBox() | QDoubleSpinBox() | QSlider():
            return control.value()
        case _:
            return control.text()


def wheel(control: QWidget, turned: QPoint) -> None:
    """A notch over the middle of a control, as a mouse would send it."""
    window = control.window()
    QTest.wheelEvent(window.windowHandle(), QPointF(control.mapTo(window, control.rect().center())), turned)
    QApplication.processEvents()


def scrolled_to(control: QWidget) -> QScrollArea | None:
    """The area that scrolls `control`, which is in sight now; None where nothing does."""
    area = area_around(control)
    if area is not None:
        area.ensureWidgetVisible(control)
        QApplication.processEvents()
    return area


def is_in_sight(control: QWidget) -> bool:
    return control.visibleRegion().contains(control.rect().center())


@pytest.mark.full
def test_no_control_of_any_panel_takes_the_wheel_unasked(window: MainWindow) -> None:
    tried: dict[str, int] = {}
    changed, scrolled = [], 0
    for name in window.dock_host.docks:
        window.dock_host.raise_panel(name)
        settle(window)
        panel = next(panel for panel in window.panels if panel.name == name)
        window.input.focus_text()
        for control in controls(panel):
            area = scrolled_to(control)
            if not is_in_sight(control):
                continue
            tried[name] = tried.get(name, 0) + 1
            bar, before = None if area is None else area.verticalScrollBar(), value_of(control)
            at = 0 if bar is None else bar.value()
            wheel(control, UP if bar is not None and at == bar.maximum() else DOWN)
            if value_of(control) != before or control.hasFocus():
                changed.append((name, type(control).__name__, control.accessibleName() or control.toolTip()))
            if bar is not None and bar.minimum() < bar.maximum():
                assert bar.value() != at, (name, control.accessibleName() or control.toolTip())
                scrolled += 1
    assert changed == []
    assert {"playground", "masks", "effects", "decoding"} <= set(tried), tried
    assert sum(tried.values()) >= 25, tried
    assert scrolled >= 10, scrolled


def test_neither_does_one_outside_of_the_panels(window: MainWindow) -> None:
    window.input.focus_text()
    before = window.session.state.document
    for control in (window.top_bar.menu, *controls(window.input)):
        value = value_of(control)
        wheel(control, DOWN)
        assert (value_of(control), control.hasFocus()) == (value, False)
    assert window.session.state.document == before


@pytest.mark.parametrize("kind", [QComboBox, WholeListBox, QSpinBox, QDoubleSpinBox, WholeBox, RealBox, QSlider])
def test_in_a_dialog_too_and_one_with_the_keyboard_takes_it(window: MainWindow, kind: type[Control]) -> None:
    dialog = QDialog(window)
    control = kind()
    if isinstance(control, QComboBox):
        control.addItems(["one", "two", "three"])
        control.setCurrentIndex(1)
    elif isinstance(control, QSpinBox | QDoubleSpinBox | QSlider):
        control.setValue(50)
    if isinstance(control, QSlider):
        control.setOrientation(Qt.Orientation.Horizontal)
    tall = QLabel("\n" * 100)
    area = scrolling(page_of(control, tall))
    QVBoxLayout(dialog).addWidget(area)
    dialog.resize(300, 300)
    dialog.show()
    dialog.activateWindow()
    area.setFocus()
    tall.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    tall.setFocus()
    QApplication.processEvents()
    before, bar = value_of(control), area.verticalScrollBar()
    wheel(control, DOWN)
    assert (value_of(control), control.hasFocus()) == (before, False)
    assert bar.value() > 0
    bar.setValue(0)
    control.setFocus()
    assert control.hasFocus()
    wheel(control, DOWN)
    assert value_of(control) != before
    assert bar.value() == 0
    dialog.close()
    dialog.deleteLater()
