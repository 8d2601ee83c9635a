"""A session's selection that its model does not have: another is chosen, and every panel shows that one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QApplication

from attention_explorer.panels.all_heads.panel import STACKS, HeadAtlasPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import OpenCheckpoint, RestoreDocument
from attention_explorer.session.state import Document, Selection
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.window.window import MainWindow
from attention_models.protocol.values import SiteRef, site_tokens
from tests.explorer.real_window import opened_window, panel_of, settle

pytestmark = pytest.mark.full

STRANGE = [
    Selection(SiteRef("cross", 2), head=4, query=3, key=2),
    Selection(SiteRef("encoder", 3), head=7, query=90, key=90),
    Selection(SiteRef("decoder", 7), head=7, query=500, key=0),
    Selection(SiteRef("decoder", 40), head=30),
    Selection(SiteRef("nowhere", 0), head=1),
    Selection(None, head=12, query=4, key=9),
]
VIEWS = [
    ViewOptions(block="ab"),
    ViewOptions(words=True, normalisation="difference"),
    ViewOptions(distance="attention"),
]


def assert_shown(window: MainWindow) -> None:
    """The selection is one of what ran, and marked where it is looked for."""
    settle(window)
    state = window.session.state
    assert state.ran is not None
    if not state.ran.sites:
        return
    site = state.site
    assert site is not None
    selection = state.selection
    assert state.document.selection == selection
    queries, keys = site_tokens(state.ran, site)
    assert 0 <= selection.head < site.heads
    assert 0 <= selection.query < len(queries)
    assert 0 <= selection.key < len(keys)
    atlas = panel_of(window, HeadAtlasPanel)
    pressed = STACKS[atlas.stacks.current]
    assert not atlas.stacks.isVisible() or pressed == site.stack
    row, head = atlas.atlas.selection
    assert (row, head) == ([s for s in state.ran.sites if s.stack == site.stack].index(site), selection.head)
    heat_map = panel_of(window, HeadMapPanel).map
    assert not heat_map.cell_rect(selection.query, selection.key).isEmpty()


@pytest.mark.parametrize(
    "name", ["story-gpt", "story-bert", "en-es", "vit-quickdraw", "recurrent-en-es-bahdanau", "dates-bottleneck"]
)
def test_another_model_s_selection(qapp: QApplication, name: str) -> None:
    with opened_window(name, "") as window:
        settle(window)
        own = window.session.state.document
        for selection in STRANGE:
            window.session.dispatch(RestoreDocument(replace(own, selection=selection)))
            assert_shown(window)
        for view in VIEWS:
            window.session.dispatch(RestoreDocument(replace(own, selection=STRANGE[0], view=view)))
            assert_shown(window)


def test_from_one_model_to_another_and_back(qapp: QApplication) -> None:
    with opened_window("en-es", "The black cat sleeps.") as window:
        settle(window)
        assert window.session.state.selection.site == SiteRef("cross", 2)
        saved = window.session.state.document
        window.session.dispatch(
            RestoreDocument(Document(checkpoint="story-gpt", text=saved.text, selection=saved.selection))
        )
        assert_shown(window)
        window.session.dispatch(OpenCheckpoint("en-es"))
        assert_shown(window)
        window.session.undo()
        assert_shown(window)
