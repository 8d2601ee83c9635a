"""What can be asked of all heads about a cell of this one's map: a menu, and the keys for the same."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QWidget

from attention_explorer.widgets.token_text import isolated

KEYS = {"cell": "W", "row": "R", "column": "C"}
"""In the map: which heads attend so here, from here, to here."""

Ask = Callable[[str], None]


def bind_keys(where: QWidget, ask: Ask) -> None:
    """Let the keys of `KEYS` call `ask` while the map has the keyboard."""
    for kind, key in KEYS.items():
        shortcut = QShortcut(QKeySequence(key), where)
        shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
        shortcut.activated.connect(lambda kind=kind: ask(kind))


def ask_menu(parent: QWidget, query: str, key: str, ask: Ask) -> QMenu:
    """A menu about the cell of two tokens; what is chosen of it is asked."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    texts = {
        "cell": f"Which heads attend from “{query}” to “{key}”?",
        "row": f"Which heads attend from “{query}” as this one does?",
        "column": f"Which heads attend to “{key}”?",
    }
    for kind, text in texts.items():
        action = menu.addAction(f"{isolated(text).replace('&', '&&')}\t{KEYS[kind]}")
        action.triggered.connect(lambda _=False, kind=kind: ask(kind))
    menu.addSeparator()
    paint = menu.addAction("Paint a pattern that heads may follow…")
    paint.triggered.connect(lambda: ask("painted"))
    return menu
