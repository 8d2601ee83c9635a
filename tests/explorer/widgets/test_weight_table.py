"""A lookup as a table."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from attention_explorer.look.theme import LIGHT
from attention_explorer.widgets.weight_table import WeightCell, WeightRow, WeightTable
from tests.explorer.widgets.pictures import rendered


def row(name: str, *weights: float) -> WeightRow:
    return WeightRow(name, tuple(WeightCell(w, f"{100 * w:.0f} %", "1.00") for w in weights))


@pytest.fixture
def table(qtbot) -> WeightTable:
    table = WeightTable(("first", "second"), "key")
    qtbot.addWidget(table)
    table.resize(500, 200)
    table.set_rows([row("a", 1.0, 0.2), row("b", 0.5, 0.7), row("c", 0.0, 0.1)])
    table.show()
    return table


def bar_length(table: WeightTable, index: int, colour: str) -> int:
    """Pixels of `colour` along the first column's bar."""
    image, cell = rendered(table), table.cell_rect(index, 0)
    y = round(cell.bottom()) - 6
    return sum(image.pixelColor(x, y).name() == colour for x in range(round(cell.left()), round(cell.right())))


def test_bars_are_in_proportion(table):
    full = bar_length(table, 0, LIGHT.bar)
    assert full == pytest.approx(table.cell_rect(0, 0).width() - 10, abs=6)
    assert bar_length(table, 1, LIGHT.bar) == pytest.approx(full / 2, abs=4)
    assert bar_length(table, 2, LIGHT.bar) == 0


def test_only_the_column_in_use_is_bright(qtbot, table):
    table.set_column(1)
    assert bar_length(table, 0, LIGHT.bar) == 0
    assert bar_length(table, 0, LIGHT.border_strong) > 50


def test_mouse_and_keys_choose_rows_and_columns(qtbot, table):
    rows: list[int] = []
    columns: list[int] = []
    table.row_selected.connect(rows.append)
    table.column_selected.connect(columns.append)
    qtbot.mouseClick(table, Qt.MouseButton.LeftButton, pos=table.cell_rect(2, 1).center().toPoint())
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Left, Qt.Key.Key_Left):
        qtbot.keyClick(table, key)
    assert (rows, columns) == ([2, 1], [1, 0])
    assert (table.row, table.column) == (1, 0)


def test_a_narrow_table_makes_room_for_its_numbers(table):
    wide = table.cell_rect(0, 0).height()
    table.resize(150, 300)
    assert table.cell_rect(0, 0).height() > 1.5 * wide
    assert table.sizeHint().height() >= table.cell_rect(2, 0).bottom()


def test_fewer_rows_keep_the_mark_inside(table):
    table.set_row(2)
    table.set_rows([row("a", 1.0, 0.2)])
    assert table.row == 0
    assert table.accessibleDescription() == "a 1.00 100 %"
