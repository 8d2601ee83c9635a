"""Panels of other packages in the window: they work, and one that raises is named and goes; the window stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from attention_explorer.panels import registry
from attention_explorer.session.hover import Pointed
from attention_explorer.session.intents import Arrived, SetText
from attention_explorer.session.state import State
from attention_explorer.window.lesson.covers import Covers
from attention_explorer.window.tour.pointing import Ring
from attention_explorer.window.window import MainWindow
from tests.explorer.panels.odd_panels import Fragile, Sound, Unsuited, point
from tests.explorer.real_window import destroy, look_put_back
from tests.explorer.session import answers


@contextmanager
def window_with(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[MainWindow]:
    """A window without an engine, and with panels of `odd_panels`."""
    monkeypatch.setattr(registry, "installed", lambda: tuple(point(name) for name in names))
    with look_put_back():
        inside = MainWindow(State(), remembers=False)
        inside.resize(1280, 800)
        inside.show()
        assert inside.panels  # all of them, as when it has started
        QApplication.processEvents()
        yield inside
        inside.close()
        destroy(inside)


def raise_panel(window: MainWindow, name: str) -> None:
    window.dock_host.raise_panel(name)
    QApplication.processEvents()


def test_it_has_a_tab_and_a_place_in_the_menus_and_follows_the_state(qapp, monkeypatch):
    with window_with(monkeypatch, "Sound") as window:
        panel = window.panels[-1]
        assert isinstance(panel, Sound)
        assert window.dock_host.docks["sound"].windowTitle() == "Sound"
        assert "show_sound" in window.menus
        raise_panel(window, "sound")
        window.session.dispatch(SetText("Once upon a time"))
        assert panel.label.text() == "Once upon a time"
        assert window.panel_bar.isHidden()


def test_one_that_cannot_be_made_is_named_and_the_others_stay(qapp, monkeypatch, unhandled_exceptions):
    with window_with(monkeypatch, "InConstructor", "Newer", "Sound") as window:
        assert [panel.name for panel in window.panels][-2:] == ["quality", "sound"]
        assert "“InConstructor” is left out: it raised KeyError: 'init'." in window.panel_bar.text
        assert "“Newer” is left out: it asks for version 99" in window.panel_bar.text
        assert window.panel_bar.isVisible()
        window.session.dispatch(Arrived(answers.loaded()))
        assert window.panel_bar.isVisible()  # a model that opens has nothing to do with it
    unhandled_exceptions.clear()


def test_a_built_in_one_that_cannot_be_imported_leaves_a_window_too(qapp, monkeypatch, unhandled_exceptions):
    broken = tuple(point(p.name, "nowhere.panel:Panel") if p.name in ("flow", "next") else p for p in registry.BUILT_IN)
    monkeypatch.setattr(registry, "BUILT_IN", broken)
    with window_with(monkeypatch) as window:
        assert [panel.name for panel in window.panels][:2] == ["heads", "map"]
        assert window.panel_bar.text.count("is left out") == 2
        assert window.dock_host.docks["heads"].x() < window.dock_host.docks["map"].x()
        window.reset_layout()
    unhandled_exceptions.clear()


def another_text(window: MainWindow) -> None:
    window.session.dispatch(SetText("Break."))


@pytest.mark.parametrize(
    ("where", "does"),
    [
        ("render later", another_text),
        ("wants", another_text),
        ("hover", lambda window: window.hover.point(Pointed(query=1))),
        ("theme", lambda window: window.set_theme_name("dark")),
    ],
)
def test_one_that_raises_later_is_switched_off(
    qapp, monkeypatch, unhandled_exceptions, where: str, does: Callable[[MainWindow], None]
):
    with window_with(monkeypatch, "Fragile", "Sound") as window:
        for name in ("sound", "fragile"):
            window.dock_host.docks[name].setFloating(True)
        raise_panel(window, "fragile")
        raise_panel(window, "sound")
        assert "fragile" in window.dock_host.docks
        monkeypatch.setattr(Fragile, "breaks_in", where)
        does(window)
        assert window.panel_bar.text == (
            f"The panel “Fragile” is switched off: it raised KeyError: '{where}'. The log has more."
        )
        assert [panel.name for panel in window.panels][-2:] == ["quality", "sound"]
        assert "fragile" not in window.dock_host.docks
        assert not window.menus["show_fragile"].isVisible()
        QApplication.processEvents()
        window.session.dispatch(SetText("The window goes on."))
        assert window.panels[-1].label.text() == "The window goes on."  # type: ignore[attr-defined]
        window.reset_layout()
        window.set_theme_name("light")
    assert [str(error) for error in unhandled_exceptions] == [repr(where)]  # once, not at every change
    unhandled_exceptions.clear()


def test_what_lay_over_one_that_was_switched_off_goes_with_it(qapp, monkeypatch, unhandled_exceptions):
    with window_with(monkeypatch, "Fragile") as window:
        dock = window.dock_host.docks["fragile"]
        dock.setFloating(True)
        raise_panel(window, "fragile")
        covers, ring = Covers(window.contents), Ring(window)
        covers.hide(frozenset({"map"}))
        ring.point(dock.widget(), dock.widget().rect())
        assert ring.window() is dock
        monkeypatch.setattr(Fragile, "breaks_in", "wants")
        another_text(window)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        assert not isValid(dock)
        covers.set_theme(window.theme)
        covers.lift()
        ring.point(window.input, window.input.rect())
        assert ring.window() is window
        assert ring.isVisible()
        ring.deleteLater()
    unhandled_exceptions.clear()


def test_one_that_raises_as_soon_as_it_is_shown(qapp, monkeypatch, unhandled_exceptions):
    monkeypatch.setattr(Fragile, "breaks_in", "render")
    with window_with(monkeypatch, "Fragile") as window:
        raise_panel(window, "fragile")
        assert "“Fragile” is switched off: it raised KeyError: 'render'" in window.panel_bar.text
        assert "fragile" not in window.dock_host.docks
    unhandled_exceptions.clear()


def test_one_that_cannot_say_whether_it_suits(qapp, monkeypatch, unhandled_exceptions):
    with window_with(monkeypatch, "Unsuited") as window:
        assert isinstance(window.panels[-1], Unsuited)
        window.session.dispatch(Arrived(answers.loaded()))
        assert "“Fragile” is switched off: it raised KeyError: 'suits'" in window.panel_bar.text
        assert window.session.state.results.loaded is not None
    unhandled_exceptions.clear()
