"""The docks: their first places, moving, floating, and a layout that comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QTabBar, QToolButton

from attention_explorer.look.theme import DARK
from attention_explorer.session.hover import Hover
from attention_explorer.session.session import Session
from attention_explorer.window.docks import Arrangement, DockHost, Grip, shares
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import destroy, look_put_back
from tests.explorer.widgets.pictures import rendered

pytestmark = pytest.mark.x


@pytest.fixture
def window(qapp) -> Iterator[MainWindow]:
    """A window whose engine is never started."""
    with look_put_back():
        inside = MainWindow(Session().state, remembers=False)
        inside.resize(1280, 800)
        inside.show()
        QApplication.processEvents()
        yield inside
        inside.close()
        destroy(inside)


@pytest.fixture
def host(window: MainWindow) -> DockHost:
    return window.dock_host


@pytest.mark.full
def test_the_picture_of_the_model_is_in_front_and_has_most_of_the_room(host):
    flow, said = host.docks["flow"], host.docks["next"]
    assert flow.x() < said.x()
    assert not flow.visibleRegion().isEmpty()
    assert not said.visibleRegion().isEmpty()
    assert flow.width() > 1.4 * said.width() > 0.4 * host.width()
    assert host.docks["heads"] in host.tabifiedDockWidgets(flow)
    assert host.docks["map"] in host.tabifiedDockWidgets(said)


@pytest.mark.short("flow")
@pytest.mark.parametrize("arrangement", ["flow", "heads"])
def test_no_bar_of_tabs_is_left_where_docks_were(window, host, arrangement):
    """Qt leaves one over where tabs are split up."""
    host.arrange(1.0, arrangement)
    QApplication.processEvents()
    bars = [bar for bar in host.findChildren(QTabBar) if bar.isVisible()]
    tabs = [bar.tabText(i) for bar in bars for i in range(bar.count())]
    assert len(tabs) == len(set(tabs))
    in_columns = {"flow": len(host.docks), "heads": len(host.docks) - 2}
    assert len(tabs) == in_columns[arrangement]


def test_all_heads_stand_left_of_the_head_and_both_have_room(window, host):
    window.menus["side_by_side"].trigger()
    QApplication.processEvents()
    heads, head = host.docks["heads"], host.docks["map"]
    assert heads.x() < head.x()
    assert heads.y() == head.y()
    assert head.width() > heads.width() > 0.15 * host.width()
    assert min(heads.height(), head.height()) > 0.4 * host.height()


def width_of(host: DockHost, *names: str) -> int:
    for _ in range(3):  # text gets its size, then widgets, then docks
        QApplication.processEvents()
    return sum(host.docks[name].width() for name in names)


@pytest.mark.full
def test_larger_text_gets_a_wider_column_and_smaller_text_its_own_again(window, host):
    before = width_of(host, "next")
    window.scale_text(1.5)
    assert width_of(host, "next") > 1.15 * before
    host.raise_panel("decoding")
    QApplication.processEvents()
    window.scale_text(0)
    assert width_of(host, "decoding") == pytest.approx(before, abs=8)


@pytest.mark.full
def test_columns_that_a_person_has_moved_stay_with_larger_text(window, host):
    window.heads_side_by_side()
    host.resizeDocks([host.docks["heads"], host.docks["map"]], [260, 620], Qt.Orientation.Horizontal)
    before = width_of(host, "map")
    window.scale_text(1.3)
    assert width_of(host, "map") == pytest.approx(before, abs=8)
    window.heads_side_by_side()
    assert width_of(host, "map") < before
    columns: dict[Arrangement, int] = {"flow": -1, "heads": 1}  # that with the selected head
    for arrangement, column in columns.items():
        wide = [shares(scale, arrangement)[column] for scale in (1.0, 1.3, 2.0, 5.0)]
        assert wide[0] < wide[1] < wide[2] == wide[3]


def test_every_panel_can_be_reached_at_first(host):
    """Side by side, or behind a tab."""
    for name, dock in host.docks.items():
        assert not dock.isFloating(), name
        assert not dock.isHidden() or host.tabifiedDockWidgets(dock), name


def test_every_panel_has_a_dock_with_a_name_and_a_hint(window):
    assert set(window.dock_host.docks) == {panel.name for panel in window.panels}
    for panel in window.panels:
        dock = window.dock_host.docks[panel.name]
        assert dock.windowTitle() == panel.title
        assert dock.toggleViewAction().toolTip() == panel.hint != ""
        assert dock.isAncestorOf(panel)


def behind(host: DockHost) -> str:
    """The name of a panel whose tab is not in front."""
    return next(name for name, dock in host.docks.items() if dock.isVisible() and dock.visibleRegion().isEmpty())


def test_a_panel_behind_a_tab_knows_that_it_cannot_be_seen(window, host):
    """Qt calls its dock visible; but the panel would draw, and ask the engine, for nobody."""
    panels = {panel.name: panel for panel in window.panels}
    name = "masks"
    assert not panels[name].isVisible()
    assert panels["flow"].isVisible()
    host.raise_panel(name)
    QApplication.processEvents()
    assert panels[name].isVisible()
    host.raise_panel("next")
    QApplication.processEvents()
    assert panels["next"].isVisible()
    assert not panels[name].isVisible()


@pytest.mark.full
def test_a_panel_that_floats_out_of_a_tab_can_be_seen(window, host):
    name = behind(host)
    host.docks[name].setFloating(True)
    QApplication.processEvents()
    assert next(panel for panel in window.panels if panel.name == name).isVisible()


def test_a_layout_comes_back(host):
    host.docks["flow"].hide()
    host.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, host.docks["next"])
    QApplication.processEvents()
    kept = host.remembered()
    host.arrange()
    assert not host.docks["flow"].isHidden()
    assert host.restore(kept)
    assert host.docks["flow"].isHidden()
    assert host.dockWidgetArea(host.docks["next"]) == Qt.DockWidgetArea.BottomDockWidgetArea


def test_widths_that_come_back_stay_when_the_window_is_resized_at_once(window, host):
    host.resizeDocks([host.docks["flow"], host.docks["next"]], [500, 760], Qt.Orientation.Horizontal)
    QApplication.processEvents()
    kept, share = host.remembered(), host.docks["flow"].width() / host.width()
    host.arrange()
    assert host.restore(kept)
    window.resize(1500, 800)
    assert width_of(host, "flow") / host.width() == pytest.approx(share, abs=0.04)


def test_a_window_that_is_wider_gives_the_picture_more(window, host):
    narrow = width_of(host, "flow") / host.width()
    window.resize(1900, 800)
    assert width_of(host, "flow") / host.width() > narrow + 0.05


def test_a_floating_dock_comes_home(host):
    host.docks["map"].setFloating(True)
    QApplication.processEvents()
    host.arrange()
    QApplication.processEvents()
    assert not host.docks["map"].isFloating()
    assert host.docks["map"] in host.tabifiedDockWidgets(host.docks["next"])


@pytest.mark.parametrize("layout", [b"", b"no layout at all", b"\x00" * 64])
def test_what_is_no_layout_changes_nothing(host, layout):
    places = {name: dock.geometry() for name, dock in host.docks.items()}
    assert not host.restore(layout)
    assert {name: dock.geometry() for name, dock in host.docks.items()} == places


def test_the_grip_is_drawn_in_the_theme_and_says_what_it_is_for(qtbot):
    grip = Grip("All heads")
    qtbot.addWidget(grip)
    grip.resize(200, 10)
    light = rendered(grip)
    grip.set_theme(DARK)
    assert rendered(grip) != light
    assert "All heads" in grip.toolTip()


@pytest.mark.full
def test_hover_object_is_shared(window):
    assert isinstance(window.hover, Hover)
    assert all(panel.hover is window.hover for panel in (window.input, *window.panels))


@pytest.mark.full
def test_every_tab_says_what_its_panel_is_for(window):
    """Also those whose panels were made after the first paint."""
    hints = {panel.title: panel.hint for panel in window.panels}
    assert all(hint.endswith(".") for hint in hints.values())
    found: dict[str, str] = {}
    for bar in window.dock_host.findChildren(QTabBar):
        found |= {bar.tabText(i): bar.tabToolTip(i) for i in range(bar.count())}
    assert len(found) >= 7
    assert found == {title: hints[title] for title in found}


def test_the_tab_in_front_is_whole_whichever_come_and_go_before_it(window, host):
    """A model that is opened brings panels and takes others: "Playg" stood beside the arrows."""
    assert len(window.panels) > 12
    host.raise_panel("playground")
    host.go_to("playground")

    def is_whole() -> bool:
        QApplication.processEvents()
        bar = next(bar for bar in host.tab_bars() if bar.tabText(bar.currentIndex()) == "Playground")
        arrows = [button.x() for button in bar.findChildren(QToolButton) if button.isVisible()]
        front = bar.tabRect(bar.currentIndex())
        return bool(arrows) and front.left() >= 0 and front.right() < min(arrows)

    assert is_whole()
    for is_open in (False, True):
        for name in ("cell", "masks", "effects"):
            host.set_open(name, is_open)
            assert is_whole(), (name, is_open)
