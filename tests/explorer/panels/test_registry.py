"""Which panels a window gets: the built-in ones, those of other packages, and a sentence for what cannot be had."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from attention_explorer.panels import registry
from attention_explorer.panels.base import API_VERSION, Panel
from attention_explorer.panels.registry import BUILT_IN, GROUP, Opened, installed, load, open_panels
from attention_explorer.session.hover import Hover
from tests.explorer.panels.odd_panels import Sound, point
from tests.explorer.silent import SilentSession


def opened(qtbot, *points: EntryPoint) -> Opened:
    session = SilentSession()
    found = open_panels(session, Hover(), points)
    for panel in found.panels:
        qtbot.addWidget(panel, before_close_func=lambda _panel: session)
    return found


@pytest.mark.parametrize("built_in", BUILT_IN, ids=lambda built_in: built_in.name)
def test_built_in_panels_are_found_as_any_other(built_in):
    kind = load(built_in)
    assert kind.name == built_in.name
    assert kind.api_version == API_VERSION
    assert kind.title
    assert kind.hint.endswith(".")


def test_every_folder_of_panels_is_listed_but_for_the_two_that_have_no_tab():
    folders = {path.parent.name for path in Path(registry.__file__).parent.glob("*/panel.py")}
    assert {point.module.split(".")[-2] for point in BUILT_IN} == folders - {"input", "trust"}


def test_panels_of_other_packages_come_after_the_built_in_ones(qtbot, monkeypatch):
    monkeypatch.setattr(registry, "installed", lambda: (point("Sound"),))
    session = SilentSession()
    found = open_panels(session, Hover())
    for panel in found.panels:
        qtbot.addWidget(panel)
    assert [panel.name for panel in found.panels] == [*(built_in.name for built_in in BUILT_IN), "sound"]
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (point("x", "no_such_package.panel:Entropy"), "it raised ModuleNotFoundError: No module named"),
        (point("x", "tests.explorer.panels.odd_panels:Missing"), "it raised AttributeError"),
        (point("InConstructor"), "it raised KeyError: 'init'"),
        (point("Interrupting"), "it raised KeyboardInterrupt"),
        (point("Numbered"), "its name is 5, and has to be a text"),
        (point("Untitled"), "its title is empty, and has to be a text"),
        (point("Newer"), "it asks for version 99 of the panel interface, and this program has version 1"),
        (point("Ageless"), "it says no api_version, and this program has version 1"),
        (point("x", "pathlib:Path"), "pathlib:Path is no subclass of attention_explorer.panels.base.Panel"),
        (point("x", "math:pi"), "math:pi is no subclass of attention_explorer.panels.base.Panel"),
    ],
)
def test_what_cannot_be_had_is_left_out_with_a_sentence(qtbot, unhandled_exceptions, bad, reason):
    found = opened(qtbot, bad, point("Sound"))
    assert [type(panel) for panel in found.panels] == [Sound]
    (sentence,) = found.left_out
    assert sentence.startswith(f"The panel “{bad.name}” is left out: {reason}")
    assert sentence.endswith(".")
    assert len(unhandled_exceptions) == 1  # the log has the traceback
    unhandled_exceptions.clear()


def test_two_panels_of_one_name(qtbot, unhandled_exceptions):
    found = opened(qtbot, point("Sound"), point("InConstructor"), point("Sound"))
    assert len(found.panels) == 1
    assert found.left_out[1] == "The panel “Sound” is left out: another panel is called “sound” already."
    unhandled_exceptions.clear()


def test_an_installed_package_is_found_and_named(qtbot, monkeypatch, tmp_path, unhandled_exceptions):
    """By what pip leaves behind: a folder of metadata with its entry points."""
    info = tmp_path / "attention_odd-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: attention-odd\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nsound = tests.explorer.panels.odd_panels:Sound\nbroken = tests.explorer.panels.odd_panels:Newer\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = opened(qtbot, *installed())
    assert [panel.name for panel in found.panels] == ["sound"]
    assert found.left_out[0].startswith("The panel “broken” of attention-odd 2.1 is left out: it asks for version 99")
    unhandled_exceptions.clear()


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "name",
    ["event", "resizeEvent", "showEvent", "paintEvent", "changeEvent", "hideEvent", "sizeHint", "minimumSizeHint"],
)
def test_what_a_panel_overrides_of_qt_may_raise_and_switches_it_off(qtbot, unhandled_exceptions, name, error):
    def raises(*_: object) -> None:
        raise error

    kind = type("Raising", (Sound,), {name: raises})
    panel = kind(SilentSession(), Hover())
    said: list[str] = []
    panel.failed.connect(said.append)
    qtbot.addWidget(panel)
    panel.show()
    panel.resize(300, 200)
    panel.setEnabled(False)
    panel.grab()
    panel.updateGeometry()
    assert panel.sizeHint().isValid()
    assert panel.minimumSizeHint().isValid()
    assert said == []  # Qt is in the middle of it: the window is told a moment later
    panel.hide()
    qtbot.waitUntil(lambda: bool(said))
    assert said == [error.__name__]
    assert panel.attempt(lambda: "asked") is None
    assert len(unhandled_exceptions) == 1  # the log has the traceback
    unhandled_exceptions.clear()


def test_the_base_class_asks_for_no_version_itself():
    """Else every panel would seem written for whatever version runs."""
    assert not hasattr(Panel, "api_version")
