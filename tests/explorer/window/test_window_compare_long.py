"""Compare with a text of 1,500 tokens: squares of the maps, and single cells where one zooms in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from transformers import PreTrainedTokenizerFast

from attention_explorer.panels.compare.linked_maps import DIFFERENCE, A, B
from attention_explorer.panels.compare.panel import ComparePanel
from attention_explorer.session.comparing import before_as_b
from attention_explorer.session.intents import CompareWith, PutIntervention, SelectHead
from attention_explorer.window.window import MainWindow
from attention_models import open_checkpoint, run
from attention_models.protocol.interventions import Scale
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import opened_window, panel_of, settle
from tests.models import tiny

pytestmark = pytest.mark.full

TOKENS, ROOM = 1500, 2048
HEAD = SiteRef("decoder", 1), 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny GPT-2 with room for 2,048 tokens."""
    kind = tiny.KINDS["gpt2"]

    def tokenizer() -> PreTrainedTokenizerFast:
        made = kind.tokenizer()
        made.model_max_length = ROOM
        return made

    long = replace(kind, settings={**kind.settings, "n_positions": ROOM}, tokenizer=tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tiny.KINDS, "gpt2", long)
        return tiny.save("gpt2", tmp_path_factory.mktemp("long") / "long")


@pytest.fixture
def window(qapp: QApplication, folder: Path) -> Iterator[MainWindow]:
    with opened_window(str(folder), tiny.text_of(open_checkpoint(folder), TOKENS)) as window:
        yield window


def test_the_maps_are_those_of_two_runs_at_every_zoom(window: MainWindow, folder: Path) -> None:
    model, text = open_checkpoint(folder), window.session.state.document.text
    after = run(model, text, interventions=[Scale(0.2)]).weights(*HEAD)
    before = run(model, text).weights(*HEAD)
    window.session.dispatch(SelectHead(*HEAD))
    window.session.dispatch(PutIntervention(Scale(0.2)))
    window.session.dispatch(CompareWith(before_as_b(window.session.state)))
    window.dock_host.raise_panel("compare")
    settle(window)
    maps = panel_of(window, ComparePanel).page.linked.maps
    assert all(one.is_tiled for one in maps)
    for which, weights in ((A, after), (B, before)):
        value, cell = maps[which].value_at(1200, 301) or (0.0, 0)
        assert cell == 1 << maps[which].level > 1
        rows, columns = (slice(place // cell * cell, (place // cell + 1) * cell) for place in (1200, 301))
        assert value == pytest.approx(float(weights[rows, columns].max()), abs=1e-6)
    square, _ = maps[DIFFERENCE].value_at(1200, 301) or (0.0, 0)
    apart = (after - before)[rows, columns]
    assert abs(square) == pytest.approx(float(np.abs(apart).max()), abs=1e-6)
    low, high = maps[DIFFERENCE].colour_span
    assert low == -high < 0
    maps[B].go_to_cell(1200, 301)
    settle(window)
    assert [one.level for one in maps] == [0] * 3
    for query, key in ((1200, 301), (1203, 300), (1198, 305)):
        for which, weights in ((A, after), (B, before), (DIFFERENCE, after - before)):
            value, cell = maps[which].value_at(query, key) or (0.0, 0)
            assert cell == 1
            assert value == pytest.approx(float(weights[query, key]), abs=1e-6)
