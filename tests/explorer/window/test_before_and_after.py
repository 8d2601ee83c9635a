"""Next shows what the model as it is would say beside what the changed one says, as long as something is changed."""

from __future__ import annotations

import pytest
import torch

import attention_models as models
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import ClearInterventions, PutIntervention
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.window.window import MainWindow
from attention_models.protocol.interventions import Scale
from tests.explorer.real_window import EXAMPLE, panel_of, picture, settle
from tests.models import tiny


@pytest.mark.full
def test_before_stands_beside_after(window: MainWindow) -> None:
    window.dock_host.raise_panel("next")
    settle(window)
    bars = panel_of(window, NextTokenPanel).bars
    plain, before = bars.accessibleDescription(), picture(bars)
    assert "was" not in plain
    window.session.dispatch(PutIntervention(Scale(0.0)))
    settle(window)
    model = models.open_checkpoint("story-gpt")
    with torch.no_grad():
        own = tiny.eager(model)(**model.encode(EXAMPLE).inputs).logits[0, -1].double().softmax(-1)
    rows = [row for group in bars._groups for row in group.rows]
    best = model.piece_label(int(own.argmax()))
    told = {row.label: row for row in rows}
    assert best in told
    assert told[best].text.endswith(f", was {percent_text(float(own.max()))}")
    assert all(row.before is not None for row in rows)
    assert sum(row.before or 0.0 for row in rows) == pytest.approx(
        sum(float(own[model.tokenizer.convert_tokens_to_ids(row.tooltip[1:].split("”")[0])]) for row in rows), abs=1e-4
    )
    assert picture(bars) != before
    window.session.dispatch(ClearInterventions())
    settle(window)
    assert bars.accessibleDescription() == plain
