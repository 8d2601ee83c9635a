"""What a panel shows belongs to the token, the run and the checkpoint that it names: against eager transformers.

After another token, another checkpoint, a new text, undo and an intervention.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from explorer.panels.flow.panel import FlowPanel
from explorer.session.intents import OpenCheckpoint, SelectHead, SelectQuery, SetText, SetView
from explorer.window.window import MainWindow
from models.protocol.flow import OutputBox
from models.protocol.values import SiteRef
from tests.explorer.independent import facts_of
from tests.explorer.real_window import EXAMPLE, opened_window, panel_of, settle

SITE = SiteRef("decoder", 5)
CLOSE = 5e-4 + 1e-5
"""The table says three decimals of float32 numbers."""


@pytest.fixture
def window(qapp) -> Iterator[MainWindow]:
    with opened_window("story-gpt", EXAMPLE, "flow") as window:
        window.session.dispatch(SelectHead(SITE, 5))
        window.session.dispatch(SelectQuery(13))
        window.session.dispatch(SetView("distance", "block"))
        settle(window)
        yield window


def table_of(window: MainWindow) -> tuple[str, np.ndarray]:
    """The heading of Flow's table, and its last column."""
    numbers = panel_of(window, FlowPanel).body.numbers
    model = numbers.table.model()
    last = model.columnCount() - 1
    values = [model.index(row, last).data().replace("−", "-") for row in range(model.rowCount())]
    return numbers.heading.text(), np.array([float(value) for value in values])


def test_the_table_of_numbers_follows_what_is_shown(window):
    session, panel = window.session, panel_of(window, FlowPanel)
    view = panel.body.block.view
    assert view is not None
    panel._show_numbers(next(i for i, box in enumerate(view.boxes) if isinstance(box, OutputBox)))

    def agrees(module: str, name: str = "story-gpt") -> None:
        settle(window)
        heading, out = table_of(window)
        assert module in heading
        expected = facts_of(name, session.state.ran).outputs[module][session.state.selection.query]
        np.testing.assert_allclose(out, expected, atol=CLOSE)

    output = "transformer.h.5.attn.c_proj"
    agrees(output)
    session.dispatch(SelectQuery(10))
    agrees(output)
    session.dispatch(SelectHead(SiteRef("decoder", 2), 0))
    agrees("transformer.h.2.attn.c_proj")
    session.undo()
    agrees(output)
    session.dispatch(SetText("Ben and Sue sat on the wall. Sue gave the book to"))
    agrees(output)
    session.undo()
    agrees(output)
    session.dispatch(OpenCheckpoint("story-bert"))
    settle(window)
    agrees(f"bert.encoder.layer.{session.state.selection.site.layer}.attention.output.dense", "story-bert")
