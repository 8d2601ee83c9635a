"""The window beside that shows a panel's figures as PyTorch."""

from __future__ import annotations

from attention_explorer.panels.base import Panel
from attention_explorer.window.script import ScriptWindow
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import click, destroy, settle, wait_until


def script_of(window: MainWindow) -> ScriptWindow:
    """The window beside, once it says something."""
    wait_until(lambda: any(found.note.text() != "Writing it …" for found in window.findChildren(ScriptWindow)))
    return window.findChildren(ScriptWindow)[0]


def code_of(window: MainWindow, panel: Panel) -> str:
    """What a click on the panel's button opens; the window is closed again."""
    assert panel.code_button.isEnabled(), panel.code_button.toolTip()
    click(panel.code_button, panel.code_button.rect().center())
    script = script_of(window)
    code, note = script.text.toPlainText(), script.note.text()
    script.close()
    destroy(script)  # the next one is another
    settle(window)
    assert code, note
    return code
