"""What the pointer rests on belongs to one run, selection, step, panel and checkpoint, and ends with them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.flow.model_scene import NOWHERE
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.input.panel import shown_row
from attention_explorer.session.hover import NOTHING
from attention_explorer.session.intents import OpenCheckpoint, SelectCell, SelectHead, SetText
from attention_explorer.widgets.cells_widget import CellsWidget
from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.path_bar import PathBar
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.window.window import MainWindow
from attention_models.protocol.values import SiteRef
from tests.explorer.lessons import BEGINNING
from tests.explorer.real_window import back_to_start, key, opened_window, panel_of, settle, wait_until

STEPS = f"""{BEGINNING}
[[step]]
title = "The same"
say = "Its row is the same."
"""
NONE = (None, -1, (-1, -1), [-1, -1])


@pytest.fixture(scope="module")
def opened(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window() as window:
        yield window


@pytest.fixture
def window(opened: MainWindow) -> Iterator[MainWindow]:
    back_to_start(opened)
    opened.dock_host.raise_panel("map")
    settle(opened)
    yield opened
    opened.lessons.end()


def point_at_row(window: MainWindow, row: int = 9) -> None:
    heat_map = panel_of(window, HeadMapPanel).map

    def is_there() -> bool:
        QTest.mouseMove(heat_map, QPoint(2, 2))
        QTest.mouseMove(heat_map, heat_map.cell_rect(row, 4).center().toPoint())  # which moves while it is laid out
        return (window.hover.pointed.query, window.hover.pointed.key) == (row, 4)

    wait_until(is_there)
    assert window.input.strip._source == row


def is_lit(widget: QWidget) -> bool:
    """Whether something in it is drawn as pointed at; the picture of the model has a name of its own for it."""
    return getattr(widget, "_hover", None) not in NONE or getattr(widget, "_pointed", NOWHERE) != NOWHERE


def lit(within: QWidget) -> list[ThemedWidget]:
    """The painted widgets in which something is lit because the pointer is on it, here or elsewhere."""
    return [widget for widget in within.findChildren(ThemedWidget) if is_lit(widget) and widget.isVisible()]


CHANGES = {
    "run": lambda window: window.session.dispatch(SetText("Tom ran. Anna and Tom went to the park.")),
    "row": lambda window: window.session.dispatch(SelectCell(3, 1)),
    "head": lambda window: window.session.dispatch(SelectHead(SiteRef("decoder", 4), 2)),
    "checkpoint": lambda window: window.session.dispatch(OpenCheckpoint("en-es")),
    "panel": lambda window: window.dock_host.raise_panel("lookup"),
}


@pytest.mark.short("row")
@pytest.mark.parametrize("change", CHANGES)
def test_it_ends_with_what_it_was_of(window: MainWindow, change: str) -> None:
    point_at_row(window)
    CHANGES[change](window)
    settle(window)
    assert window.hover.pointed == NOTHING
    assert lit(window) == []
    state = window.session.state
    assert window.input.strip._source in (-1, state.selection.query)  # en-es has no row of its own there
    row = shown_row(state, -1)
    assert row is None or f"from “{row.name}”" in window.input.caption.text()


@pytest.mark.full
def test_it_ends_with_the_step_of_a_lesson(window: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "trial.toml").write_text(STEPS)
    window.lessons.begin(tmp_path / "trial.toml")
    wait_until(lambda: window.lessons.guide is not None)
    guide = window.lessons.guide
    assert guide is not None
    wait_until(lambda: guide.is_settled and window.is_settled())
    guide.covers.lift()
    key(window, Qt.Key.Key_F5)
    wait_until(lambda: bool(window.contents.one_panel.alone))
    QTest.qWait(300)
    point_at_row(window)
    key(window, Qt.Key.Key_F)  # frozen: it stays there, wherever the pointer goes
    key(window, Qt.Key.Key_PageDown)
    assert guide.at == 1
    assert window.hover.pointed == NOTHING
    assert window.input.strip._source == window.session.state.selection.query
    key(window, Qt.Key.Key_F)
    key(window, Qt.Key.Key_Escape)
    wait_until(lambda: not window.contents.one_panel.alone)


def point_anywhere(widget: QWidget) -> bool:
    """Move the pointer over a widget until something in it is lit."""
    seen = widget.visibleRegion().boundingRect()
    for x, y in product(range(1, 12), range(1, 12)):
        QTest.mouseMove(widget, QPoint(seen.x() + x * seen.width() // 12, seen.y() + y * seen.height() // 12))
        if is_lit(widget):
            return True
    return False


@pytest.mark.full
def test_in_every_panel_what_the_pointer_rests_on_ends_with_the_run(window: MainWindow) -> None:
    texts, tried = ("Anna ran to the park and", "Tom and Anna went to the park. Anna gave the ball to"), set()
    for panel in window.panels:
        window.dock_host.raise_panel(panel.name)
        settle(window)
        painted = [one for one in panel.findChildren(ThemedWidget) if one.isVisible() and not isinstance(one, PathBar)]
        widget = next((one for one in painted if point_anywhere(one)), None)
        if widget is None:
            continue
        tried.add(panel.name)
        QTest.qWait(50)  # the pointer rests
        window.session.dispatch(SetText(texts[(len(tried) - 1) % 2]))
        settle(window)
        # Qt may tell the widget below of the pointer once more, when something beside it comes or goes
        assert lit(window) in ([], [widget]), panel.name
        assert is_lit(widget) or window.hover.pointed == NOTHING
        if isinstance(widget, ItemsWidget | CellsWidget):
            said = widget.tooltip_of(widget._hover) if is_lit(widget) else ""  # type: ignore[arg-type]
            assert widget.toolTip() == said, panel.name
    assert {"heads", "map", "flow", "cell", "next", "lookup", "decoding", "effects"} <= tried
