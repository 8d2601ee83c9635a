"""How often labels are drawn: once, until text, font, theme or place is another one."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import DARK
from attention_explorer.widgets.heat_map import picture as labels
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.heat_map.view import labelled
from tests.explorer.drawn_text import text_of_ours
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

NAMES = [f"t{i}" for i in range(40)]


@pytest.fixture
def drawn(monkeypatch) -> list[tuple[str, int, bool]]:
    """(side, cell, bold) of the labels that were drawn, in order."""
    calls: list[tuple[str, int, bool]] = []
    draw = labels.draw_label

    def counted(look, side, cell, bold):
        calls.append((side, cell, bold))
        return draw(look, side, cell, bold)

    monkeypatch.setattr(labels, "draw_label", counted)
    return calls


@pytest.fixture
def heat_map(qtbot, drawn) -> HeatMap:
    widget = HeatMap()
    qtbot.addWidget(widget)
    widget.resize(500, 440)
    widget.set_values(np.eye(40, dtype=np.float32), None, NAMES, NAMES, 0.0, 1.0)
    widget.set_selection(3, 2)
    widget.show()
    rendered(widget)
    return widget


def visible(heat_map: HeatMap) -> set[tuple[str, int]]:
    """The labels that have room when (3, 2) is selected."""
    line = heat_map.fontMetrics().height()
    rows = labelled(heat_map.view.rows, line * 0.95, [3])
    return {("row", cell) for cell in rows} | {("column", cell) for cell in labelled(heat_map.view.columns, line, [2])}


def test_what_has_room_is_drawn_once(heat_map, drawn):
    assert {call[:2] for call in drawn} == visible(heat_map)
    assert len(drawn) == len(visible(heat_map))
    drawn.clear()
    rendered(heat_map)
    assert drawn == []


def test_selection_and_pointer_draw_the_names_that_turn_bold_and_each_once(heat_map, drawn):
    drawn.clear()
    heat_map.set_selection(13, 20)
    rendered(heat_map)
    move_pointer(heat_map, heat_map.cell_rect(30, 7).center().toPoint())
    rendered(heat_map)
    bold = [call for call in drawn if call[2]]
    assert sorted(bold) == [("column", 7, True), ("column", 20, True), ("row", 13, True), ("row", 30, True)]
    plain = {call[:2] for call in drawn if not call[2]}
    assert plain <= {("row", 3), ("column", 2)} | visible_around(heat_map)  # those that had made room for a bold one
    drawn.clear()
    heat_map.set_selection(3, 2)
    QApplication.sendEvent(heat_map, QEvent(QEvent.Type.Leave))
    rendered(heat_map)
    assert drawn == []


def visible_around(heat_map: HeatMap) -> set[tuple[str, int]]:
    line = heat_map.fontMetrics().height()
    rows, columns = heat_map.view.rows, heat_map.view.columns
    return {("row", cell) for cell in labelled(rows, line * 0.95)} | {
        ("column", cell) for cell in labelled(columns, line)
    }


def test_other_weights_of_the_same_tokens_draw_no_label(heat_map, drawn):
    drawn.clear()
    heat_map.set_values(np.ones((40, 40), np.float32), None, NAMES, NAMES, 0.0, 1.0)
    rendered(heat_map)
    assert drawn == []


@pytest.mark.parametrize("change", ["text", "theme", "font", "width", "zoom", "screen"])
def test_another_look_is_drawn(heat_map, drawn, qtbot, change):
    drawn.clear()
    if change == "text":
        heat_map.set_values(np.eye(40, dtype=np.float32), None, [f"u{i}" for i in range(40)], NAMES, 0.0, 1.0)
    elif change == "theme":
        heat_map.set_theme(DARK)
    elif change == "font":
        font = heat_map.font()
        font.setPointSizeF(font.pointSizeF() * 1.5)
        heat_map.setFont(font)
    elif change == "width":
        heat_map.resize(620, 440)
    elif change == "zoom":
        qtbot.keyClick(heat_map, Qt.Key.Key_Plus)
    else:
        heat_map.devicePixelRatioF = lambda: 2.0
        QApplication.sendEvent(heat_map, QEvent(QEvent.Type.DevicePixelRatioChange))
    rendered(heat_map, heat_map.devicePixelRatioF())
    assert {side for side, _, _ in drawn} == {"row", "column"}
    assert len(drawn) >= len(visible(heat_map))


@pytest.mark.parametrize("moved", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("selected", [False, True])
def test_the_label_of_a_half_hidden_row_stays_beside_the_map(heat_map, moved, selected):
    heat_map.set_selection(-1, -1)
    heat_map.zoom_by(4)
    before = heat_map.view.rows
    heat_map.set_view(heat_map.view.panned(0, (before.offset - 5 - moved) * before.size))
    rows = heat_map.view.rows
    first = rows.visible().start
    assert rows.edge(first) < rows.origin - 1  # a part of it is hidden
    if selected:
        heat_map.set_selection(first, heat_map.view.columns.visible().start + 2)
    picture = heat_map.grab().toImage()
    ground = picture.pixelColor(1, 1)
    corner = QRect(0, 0, int(heat_map.view.columns.origin) - 8, int(rows.origin) - 2)  # left of the columns' labels
    columns, lines = range(corner.width()), range(corner.height())
    assert all(picture.pixelColor(x, y) == ground for x in columns for y in lines)


def test_what_is_enlarged_is_written_anew(heat_map, drawn, monkeypatch):
    """The pictures that are kept would blur: for a lens, or a projector of another scale."""
    drawn.clear()
    with text_of_ours(monkeypatch) as ours:
        rendered(heat_map, 3.0)
    assert drawn == []
    assert {f"t{cell}" for _, cell in visible(heat_map)} <= {each.text for each in ours}
    with text_of_ours(monkeypatch) as ours:
        rendered(heat_map)
    assert not {f"t{cell}" for _, cell in visible(heat_map)} & {each.text for each in ours} - {"t3", "t2"}
