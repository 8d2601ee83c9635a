"""Another kind of model brings the panel that is made for it to the front; the same kind leaves all as it is."""

from __future__ import annotations

import pytest

from attention_explorer.session.intents import OpenCheckpoint
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import settle, wait_until


def opened(window: MainWindow, name: str) -> None:
    window.session.dispatch(OpenCheckpoint(name))
    wait_until(lambda: window.session.state.loading is None)
    settle(window)


def in_front(window: MainWindow, name: str) -> bool:
    return not window.dock_host.docks[name].visibleRegion().isEmpty()


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "front"), [("en-es", "alignment"), ("dates-bahdanau", "recurrent"), ("vit-quickdraw", "next")]
)
def test_what_is_made_for_a_kind_comes_to_the_front_with_it(window: MainWindow, name: str, front: str) -> None:
    window.dock_host.raise_panel("masks")
    opened(window, name)
    assert in_front(window, front)
    opened(window, "story-gpt")
    assert in_front(window, "next")


@pytest.mark.full
def test_what_a_person_looks_at_stays_where_the_new_kind_has_nothing_of_its_own(window: MainWindow) -> None:
    opened(window, "en-es")
    window.dock_host.raise_panel("decoding")
    opened(window, "story-gpt")
    assert in_front(window, "decoding")


def test_another_of_the_same_kind_leaves_what_is_in_front(window: MainWindow) -> None:
    window.dock_host.raise_panel("masks")
    opened(window, "story-bert")
    assert in_front(window, "masks")


def test_every_tab_says_what_its_panel_is_for(window: MainWindow) -> None:
    for panel in window.panels:
        assert window.dock_host.docks[panel.name].toggleViewAction().toolTip() == panel.hint
        assert panel.hint.endswith(".")
