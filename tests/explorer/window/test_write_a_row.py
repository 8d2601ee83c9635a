"""A click on a row of Next writes that token, and no row that does nothing is lit under the pointer."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint

from attention_explorer.panels.lookup.dictionary_page import DictionaryPage
from attention_explorer.panels.lookup.entries import ENTRIES
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import SelectQuery, SetTarget
from attention_explorer.window.window import MainWindow
from attention_models.protocol.prediction import PredictionView
from tests.explorer.real_window import EXAMPLE, click, opened_window, panel_of, picture, settle, wait_until
from tests.explorer.widgets.pointer import move_pointer


def shown(window: MainWindow) -> NextTokenPanel:
    window.dock_host.raise_panel("next")
    settle(window)
    return panel_of(window, NextTokenPanel)


def centre(panel: NextTokenPanel, row: int) -> QPoint:
    return panel.bars.row_rect(row).center().toPoint()


def click_row(window: MainWindow, row: int) -> None:
    panel, run = shown(window), window.session.state.ran
    click(panel.bars, centre(panel, row))
    wait_until(lambda: window.session.state.pending_step is None and window.session.state.ran is not run)
    settle(window)


def lights(window: MainWindow, row: int) -> bool:
    """Whether a row looks otherwise under the pointer."""
    panel = shown(window)
    move_pointer(panel.bars, QPoint(0, panel.bars.height() - 1))
    before = picture(panel.bars)
    move_pointer(panel.bars, centre(panel, row))
    return picture(panel.bars) != before


def test_a_row_is_written_after_the_text(window: MainWindow) -> None:
    shown(window)
    view = window.session.state.results.of(PredictionView)
    assert view is not None
    chosen = view.predictions[0].candidates[2]
    assert lights(window, 2)
    assert panel_of(window, NextTokenPanel).bars.toolTip().endswith("Click writes it after the text")
    click_row(window, 2)
    ran = window.session.state.ran
    assert ran is not None
    assert ran.tokens[-1].id == chosen.id
    assert window.session.state.document.text == EXAMPLE + chosen.label.replace("␣", " ")
    window.session.undo()
    settle(window)
    assert window.session.state.document.text == EXAMPLE


def test_where_another_token_follows_rows_do_nothing_and_are_not_lit(window: MainWindow) -> None:
    window.session.dispatch(SelectQuery(4))
    assert not lights(window, 0)
    panel = shown(window)
    click(panel.bars, centre(panel, 0))
    assert window.session.state.pending_step is None
    assert window.session.state.document.text == EXAMPLE


def test_a_row_goes_into_its_own_mask(qapp) -> None:
    text = "Anna lost her ball in the [MASK]. Tom [MASK] find it."
    with opened_window("story-bert", text) as window:
        panel = shown(window)
        view = window.session.state.results.of(PredictionView)
        ran = window.session.state.ran
        assert view is not None
        assert ran is not None
        assert len(view.predictions) == len(ran.masks) == 2
        for which in (1, 0):  # the second first: the model may be surer of the other
            view = window.session.state.results.of(PredictionView)
            assert view is not None
            prediction = view.predictions[which]
            row = sum(len(each.candidates) for each in view.predictions[:which]) + 1
            click_row(window, row)
            ran = window.session.state.ran
            assert ran is not None
            assert ran.tokens[prediction.position].id == prediction.candidates[1].id
        assert "[MASK]" not in window.session.state.document.text
        assert panel.bars.isVisible()


def test_a_target_is_gone_on_with_and_a_written_one_is_not(qapp) -> None:
    with opened_window("en-es", "The house has three doors.") as window:
        assert not lights(window, 0)
        window.session.dispatch(SetTarget(""))
        settle(window)
        assert lights(window, 0)
        click_row(window, 0)
        assert window.session.state.document.target == "La"


@pytest.mark.parametrize("name", ["vit-quickdraw", "story-next"])
def test_classes_are_not_lit(qapp, name: str) -> None:
    with opened_window(name, "Tom fell.") as window:
        assert not lights(window, 0)


def test_a_row_of_the_dictionary_is_looked_up(qtbot) -> None:
    page = DictionaryPage()
    qtbot.addWidget(page)
    page.resize(500, 600)
    page.show()
    for row, entry in enumerate(ENTRIES):
        click(page.table, page.table.item_rect(row).center().toPoint())
        assert page.key.text() == entry.key
        assert page.table.row == row
    page.key.setText("nothing like it")
    assert page.table.row == -1
