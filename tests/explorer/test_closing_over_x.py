"""A window manager asks the window to close while a dialog is open over it: the program ends, and the work is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attention_explorer.session import attn
from attention_explorer.session.kept import KeptState, SessionFile
from attention_explorer.session.state import Document
from tests.harness.program import started
from tests.harness.window_manager import ask_to_close

pytestmark = [
    pytest.mark.x,
    pytest.mark.skipif(os.environ.get("QT_QPA_PLATFORM") != "xcb", reason="only X has window managers that ask"),
]

TYPED = "Once upon "
DIALOGS = {
    "where to save": ("window.sessions.save_as()", 1),
    "which session to open": ("window.sessions.open()", 1),
    "which picture to open": ("window.dialogs.open_picture()", 1),
    "whether to replace": (
        "__import__('attention_explorer.widgets.dialogs', fromlist=['*'])"
        ".may_replace(window, 'Save', __import__('pathlib').Path('{folder}/session.attn'))",
        1,
    ),
    "the chooser": ("window.choose_checkpoint()", 1),
    "a folder, over the chooser": ("(window.choose_checkpoint(), window.chooser.dialog.browse_folder())", 2),
    "a state's name": ("window.states_menu.keep()", 1),
    "a new name, over the notes": ("(window.sessions.keep('one'), window.show_notes(), window._notes._rename())", 2),
    "the notes": ("window.show_notes()", 1),
    "a session's checkpoint": ("window.sessions.open_path(__import__('pathlib').Path('{folder}/session.attn'))", 1),
    "help": ("window.menus['help'].trigger()", 1),
}
AMONG_THEM = ("where to save", "whether to replace", "a folder, over the chooser", "a new name, over the notes")
"""Those that are tried with every change: a dialog of Qt's, a message, one over another, and one over a tool."""


def kept(folder: Path) -> list[str]:
    """The texts that were kept for the next start."""
    return [attn.load(path).present.document.text for path in (folder / "settings" / "autosave").glob("*.attn")]


def without_checkpoint(path: Path) -> None:
    """Write a session whose checkpoint has gone."""
    state = KeptState(Document(checkpoint="/gone/mine", text="Tom"), files={"model.safetensors": 64 * "0"})
    attn.save(SessionFile(state), path)


@pytest.mark.parametrize(
    "dialog", [pytest.param(name, marks=() if name in AMONG_THEM else pytest.mark.long) for name in DIALOGS]
)
def test_the_program_ends_and_keeps_what_was_typed(tmp_path, dialog):
    without_checkpoint(tmp_path / "session.attn")
    opens, count = DIALOGS[dialog]
    with started(tmp_path) as program:
        program.ask("window.input.text.selectAll()")
        program.ask(f"keys(window, {TYPED!r})")
        program.ask(f"later(lambda: {opens.format(folder=tmp_path)})")
        program.wait_until(f"len(open_dialogs()) == {count}")
        ask_to_close(program.ask("int(window.winId())"))
        assert program.ended() == 0
        assert program.complaints() == []
    assert kept(tmp_path) == [TYPED]
