"""Where a head rests on the first token the window says so, in map, strip and Cell, and only there."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import SelectHead
from attention_models import open_checkpoint
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import click_cell, opened_window, panel_of, settle
from tests.models import tiny
from tests.models.eager import attentions


@pytest.mark.full
def test_the_resting_place_is_explained_with_this_rows_share(qapp: QApplication) -> None:
    text = "Tom and Anna went to the park. Anna gave the ball to"
    model = open_checkpoint("story-gpt")
    eager = attentions(tiny.eager_run(model, text), model)[SiteRef("decoder", 7)][7]
    share = f"takes {100 * eager[-1, 0]:.1f} % of the row of “to”"
    with opened_window(text=text) as window:
        shown, cell, strip = panel_of(window, HeadMapPanel).map, panel_of(window, CellPanel), window.input.strip
        label = QPointF(shown.cell_rect(0, 0).center().x() + 12, shown.view.rows.origin - 12)  # of ⟨start⟩
        window.dock_host.raise_panel("cell")
        for head, rests in ((SiteRef("decoder", 7), 7), True), ((SiteRef("decoder", 6), 4), False):
            window.session.dispatch(SelectHead(*head))
            click_cell(window, len(eager) - 1, 0)
            settle(window)
            assert cell.rests.isVisible() == rests
            assert (share in cell.rests.text()) == rests
            assert (f"has the most of {len(eager) - 1} of {len(eager) - 1} other rows" in shown.readout(13, 0)) == rests
            said = shown.tool_tip_at(label)
            assert said.startswith("key 0: ⟨start⟩")
            assert (share in said.replace("\n", " ")) == rests
            QTest.mouseMove(strip, strip.chip_rect(3).center().toPoint())
            QTest.mouseMove(strip, strip.chip_rect(0).center().toPoint())
            assert (share in strip.toolTip().replace("\n", " ")) == rests
            assert max(map(len, strip.toolTip().splitlines())) < 120
