"""A button with a menu of files: one is chosen in a dialog, or among those chosen lately."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QPushButton

from attention_explorer.widgets import dialogs
from attention_explorer.widgets.token_text import apart


class FileButton(QPushButton):
    chosen = Signal(str)
    """A path; "" for what there is without a file."""

    def __init__(self, label: str, tooltip: str, title: str, kinds: str, own: str = "") -> None:
        """`title` is the dialog's, `kinds` what it lists, as in `dialogs.file_to_open`; `own` needs no file."""
        super().__init__(label)
        self.setToolTip(tooltip)
        self._title, self._kinds, self._own, self._path = title, kinds, own, ""
        self.setMenu(QMenu(self))
        self.menu().setToolTipsVisible(True)
        self.show_files("", ())

    def show_files(self, path: str, recent: Sequence[str]) -> None:
        """`path` is the file that is open, `recent` those chosen lately."""
        self._path = path
        menu = self.menu()
        menu.clear()
        if self._own:
            own = menu.addAction(self._own, partial(self.chosen.emit, ""))
            own.setEnabled(bool(path))
        menu.addAction("Choose a file…", self.ask)
        others = [other for other in recent if other != path]
        if others:
            menu.addSeparator()
        for other in others:
            action = menu.addAction(apart(Path(other).name).replace("&", "&&"))
            action.setToolTip(other)
            action.triggered.connect(partial(self.chosen.emit, other))

    def ask(self) -> None:
        """Let the person choose a file in a dialog."""
        path = dialogs.file_to_open(self, self._title, self._path, self._kinds)
        if path:
            self.chosen.emit(path)
