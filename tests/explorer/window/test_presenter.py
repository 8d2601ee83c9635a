"""F5: one panel with the tokens fills the screen, and Esc puts everything back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from attention_explorer.look.theme import LIGHT, contrast
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import SetText
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import back_to_start, key, opened_window, panel_of, picture, press, settle, wait_until

SIZES = [(1024, 768), (1280, 720), (1920, 1080)]


@pytest.fixture(scope="module")
def real_window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window() as opened:
        yield opened


@pytest.fixture
def window(real_window: MainWindow) -> Iterator[MainWindow]:
    real_window.resize(1280, 800)
    back_to_start(real_window)
    real_window.dock_host.go_to("map")
    QTest.qWait(300)
    yield real_window
    real_window.presenter.end()
    wait_until(lambda: not real_window.contents.one_panel.alone)


def seen(window: MainWindow) -> list[str]:
    return [name for name, dock in window.dock_host.docks.items() if dock.isVisible()]


def look(window: MainWindow) -> tuple[object, ...]:
    docks = window.dock_host.docks.values()
    return (
        window.size(),
        window.windowState(),
        [(dock.objectName(), dock.isHidden(), dock.visibleRegion().isEmpty()) for dock in docks],
        [dock.geometry() for dock in docks if not dock.visibleRegion().isEmpty()],
        QApplication.font().pointSizeF(),
        [(part.isHidden(), part.geometry()) for part in (window.menuBar(), window.top_bar, window.input.text)],
        window.input.strip_area.geometry(),
        window.focusWidget(),
    )


@pytest.mark.full
@pytest.mark.parametrize("way_back", [Qt.Key.Key_Escape, Qt.Key.Key_F5])
def test_in_and_out_leaves_everything_as_it_was(window: MainWindow, way_back: Qt.Key) -> None:
    before, saved = look(window), window.dock_host.open_panels()
    key(window, Qt.Key.Key_F5)
    QTest.qWait(300)
    assert window.presenter.is_on
    assert window.isFullScreen()
    assert seen(window) == ["map"]
    assert not window.top_bar.isVisible()
    assert not window.input.text.isVisible()
    assert window.menuBar().height() == 0
    assert window.input.strip.isVisible()
    assert window.dock_host.open_panels() == saved, "a session that is saved now has all its panels"
    key(window, Qt.Key.Key_Tab)
    key(window, way_back)
    wait_until(lambda: not window.contents.one_panel.alone)
    QTest.qWait(300)
    assert look(window) == before


@pytest.mark.full
def test_the_offer_of_a_tour_is_not_presented(window: MainWindow) -> None:
    window.tour.offer()
    key(window, Qt.Key.Key_F5)
    wait_until(lambda: bool(window.contents.one_panel.alone))
    assert window.tour.bar.isHidden()
    key(window, Qt.Key.Key_F5)
    wait_until(lambda: not window.contents.one_panel.alone)
    assert not window.tour.bar.isHidden()
    window.tour.leave("later")


def test_tab_goes_round_and_digits_choose(window: MainWindow) -> None:
    names = window.dock_host.open_panels()
    key(window, Qt.Key.Key_F5)
    at = names.index("map")
    key(window, Qt.Key.Key_Tab)
    assert seen(window) == [names[(at + 1) % len(names)]]
    key(window, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    assert seen(window) == ["map"]
    for digit in range(1, 10):
        key(window, Qt.Key(Qt.Key.Key_0 + digit))
        assert seen(window) == [names[digit - 1]] if digit <= len(names) else seen(window)


@pytest.mark.full
@pytest.mark.parametrize("size", SIZES)
def test_the_last_row_can_read_it(window: MainWindow, size: tuple[int, int]) -> None:
    key(window, Qt.Key.Key_F5)
    QTest.qWait(300)  # a full screen comes a moment later
    window.resize(*size)
    QTest.qWait(600)
    heat_map = panel_of(window, HeadMapPanel).map
    assert (window.width(), window.height()) == size, "nothing asks for more than the screen has"
    assert heat_map.view.rows.extent >= 0.6 * size[1], "the cells themselves"
    assert window.input.strip.lines_for(window.input.strip.width()) == 1, "so that arcs are bows"
    for widget in (heat_map, window.input.strip):
        assert QFontMetricsF(widget.font()).capHeight() >= 0.02 * size[1]


@pytest.mark.full
def test_of_a_long_text_tokens_have_one_line_above_the_map_and_two_above_others(window: MainWindow) -> None:
    window.session.dispatch(SetText(" ".join(["Tom and Anna went to the park."] * 4)))
    settle(window)
    key(window, Qt.Key.Key_F5)
    QTest.qWait(300)
    window.resize(1024, 768)
    QTest.qWait(600)
    heat_map, area = panel_of(window, HeadMapPanel).map, window.input.strip_area
    assert heat_map.view.rows.extent >= 0.6 * 768
    above_map = area.height()
    window.dock_host.go_to("cell")
    QTest.qWait(300)
    assert area.height() > 1.5 * above_map


@pytest.mark.full
def test_arcs_and_lines_stand_out_while_a_panel_is_presented(window: MainWindow) -> None:
    strip = window.input.strip
    key(window, Qt.Key.Key_F5)
    QTest.qWait(300)
    assert contrast(window.theme.query, window.theme.window) >= 4.5
    assert contrast(strip.theme.bar, strip.theme.surface) >= 4.5
    query, first = window.session.state.selection.query, strip.chip_rect(0)
    image, ground = picture(strip), QColor(strip.theme.window)
    column = [QColor(image.pixel(round(first.center().x()), y)) for y in range(round(first.top()))]
    assert query > 0
    best = max(contrast(each.name(), ground.name()) for each in column)
    assert best >= 4.5, "the arc to the first token, where it leaves its chip"
    key(window, Qt.Key.Key_Escape)
    assert strip.theme == LIGHT


@pytest.mark.full
def test_escape_in_a_field_leaves_the_field_first(window: MainWindow) -> None:
    key(window, Qt.Key.Key_F5)
    window.dock_host.go_to("lookup")
    field = next(
        box for box in window.dock_host.docks["lookup"].findChildren(QLineEdit) if box.isVisible() and box.isEnabled()
    )
    field.setFocus()
    field.clear()
    press(field, Qt.Key.Key_1)
    assert field.text() == "1", "a digit is typed"
    assert seen(window) == ["lookup"]
    press(field, Qt.Key.Key_Escape)
    assert window.presenter.is_on
    assert not field.hasFocus()
    key(window, Qt.Key.Key_Escape)
    assert not window.presenter.is_on


def test_f5_styles_all_widgets_once_each_way(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[float] = []
    real = window.apply_theme

    def note() -> None:
        applied.append(window.presented_points)
        real()

    monkeypatch.setattr(window, "apply_theme", note)
    key(window, Qt.Key.Key_F5)
    QTest.qWait(600)  # a full screen comes a moment later
    assert len(applied) == 1
    assert applied[0] > 0
    key(window, Qt.Key.Key_F5)
    QTest.qWait(600)
    assert applied[1:] == [0.0]
