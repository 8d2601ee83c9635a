"""The states kept by name, as a menu: keeping one, going to one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.session.intents import Show
from attention_explorer.session.state import Notice
from attention_explorer.session.text_limits import MOST_CHARACTERS
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.notes_field import NotesField
from attention_explorer.widgets.token_text import apart, shortened
from attention_explorer.window.sessions import Sessions


class NotesWindow(QDialog):
    """Stays open while one works in the window behind it."""

    compared = Signal(int)
    """The state of this number is to be B."""

    def __init__(self, sessions: Sessions, parent: QWidget) -> None:
        super().__init__(parent)
        self._sessions, self._states = sessions, sessions.states
        self.setWindowTitle("States and notes")
        self.setWindowFlag(Qt.WindowType.Tool)
        self.resize(420, 480)
        self.list = QListWidget()
        self.list.setAccessibleName("States kept by name")
        self.list.setToolTip("Double-click a state, or press Enter, to put it on screen")
        self.list.itemActivated.connect(lambda _item: self._sessions.go_to(self.list.currentRow()))
        self.list.currentRowChanged.connect(lambda _row: self._enable())
        self.go, self.rename, self.delete = QPushButton("Go to it"), QPushButton("Rename…"), QPushButton("Delete")
        self.as_b = QPushButton("As B")
        self.as_b.setToolTip("Compare what is open with this state")
        self.as_b.clicked.connect(lambda: self.compared.emit(self.list.currentRow()))
        self.up, self.down = QPushButton("Up"), QPushButton("Down")
        self.keep = QPushButton("Keep this state…")
        self.keep.setProperty("role", "primary")
        self.notes = NotesField(MOST_CHARACTERS)
        self.notes.setAccessibleName("Notes")
        self.notes.setPlaceholderText("Notes for yourself or for a class. They are saved with the session.")
        self.notes.edited.connect(self._states.set_notes)
        self.notes.refused.connect(self._say)
        self._lay_out()
        self.go.clicked.connect(lambda: self._sessions.go_to(self.list.currentRow()))
        self.rename.clicked.connect(self._rename)
        self.delete.clicked.connect(self._delete)
        self.up.clicked.connect(lambda: self._move(-1))
        self.down.clicked.connect(lambda: self._move(1))
        self._states.changed.connect(self._show_states)
        self._show_states()

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setSpacing(8)
        titles = QLabel("States"), QLabel("&Notes")
        for title in titles:
            title.setProperty("role", "title")
        titles[1].setBuddy(self.notes)
        head = QHBoxLayout()
        head.addWidget(titles[0])
        head.addStretch(1)
        head.addWidget(self.keep)
        column.addLayout(head)
        column.addWidget(self.list, 3)
        row = QHBoxLayout()
        row.setSpacing(6)
        for button in (self.go, self.as_b, self.rename, self.up, self.down):
            row.addWidget(button)
        row.addStretch(1)
        row.addWidget(self.delete)
        column.addLayout(row)
        column.addWidget(titles[1])
        column.addWidget(self.notes, 2)
        for button in (self.go, self.as_b, self.rename, self.delete, self.up, self.down, self.keep):
            button.setAutoDefault(False)  # Enter in the list goes to a state

    def _show_states(self) -> None:
        names = [state.name for state in self._states.kept.states]
        if names != [self.list.item(row).text() for row in range(self.list.count())]:
            self.list.clear()
            self.list.addItems(names)
        if self._states.current >= 0:
            self.list.setCurrentRow(self._states.current)
        self.notes.set_text(self._states.kept.notes)
        self._enable()

    def _enable(self) -> None:
        row, count = self.list.currentRow(), self.list.count()
        for button in (self.go, self.as_b, self.rename, self.delete):
            button.setEnabled(0 <= row < count)
        self.up.setEnabled(row > 0)
        self.down.setEnabled(0 <= row < count - 1)

    def _rename(self) -> None:
        row = self.list.currentRow()
        name = dialogs.line(self, "Rename the state", "Its name:", self._states.kept.states[row].name)
        if name is not None:
            try:
                self._states.rename(row, name)
            except ValueError as error:
                self._say(str(error))

    def _delete(self) -> None:
        row = self.list.currentRow()
        self._states.delete(row)
        self.list.setCurrentRow(min(row, self.list.count() - 1))

    def _move(self, by: int) -> None:
        row = self.list.currentRow()
        self._states.move(row, row + by)
        self.list.setCurrentRow(row + by)

    def _say(self, sentence: str) -> None:
        self._sessions.session.dispatch(Show(Notice("warning", sentence)))


WITH_KEYS = 9
"""States that have a key of their own."""


class StatesMenu:
    """Fills a menu with the states that there are, and keeps it filled."""

    def __init__(self, window: QWidget, sessions: Sessions) -> None:
        self._window, self._sessions = window, sessions
        self._menu: QMenu | None = None
        self._walked: Sequence[QAction] = ()
        self._renew: QAction | None = None
        self._listed: list[QAction] = []
        self._group: QActionGroup | None = None

    def fill(self, menu: QMenu, walked: Sequence[QAction], renew: QAction) -> None:
        """List the states at the end of `menu`. `walked` lead from one to another, `renew` keeps one anew."""
        self._menu, self._walked, self._renew = menu, walked, renew
        self._sessions.states.changed.connect(self._list)
        self._list()

    def keep(self) -> None:
        """Ask for a name, and keep what is on screen under it."""
        suggested = f"State {len(self._sessions.states.kept.states) + 1}"
        told = "Keep all that is on screen, to go back to it from the States menu.\nIts name:"
        name = dialogs.line(self._window, "Keep this state", told, suggested)
        if name is not None:
            self._say_refusal(partial(self._sessions.keep, name))

    def renew(self) -> None:
        """Keep what is on screen in the place of the state that was gone to."""
        if self._sessions.states.current >= 0:
            self._sessions.renew(self._sessions.states.current)

    def _say_refusal(self, keep: partial[None]) -> None:
        try:
            keep()
        except ValueError as error:
            self._sessions.session.dispatch(Show(Notice("warning", str(error))))

    def _list(self) -> None:
        if self._menu is None or self._renew is None:
            return
        for action in self._listed:
            self._menu.removeAction(action)
            action.deleteLater()
        if self._group is not None:
            self._group.deleteLater()
        self._group = QActionGroup(self._menu)
        states, current = self._sessions.states.kept.states, self._sessions.states.current
        self._listed = []
        for index, state in enumerate(states):
            action = self._menu.addAction(shortened(state.name).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(index == current)
            self._group.addAction(action)
            if index < WITH_KEYS:
                action.setShortcut(QKeySequence(f"Ctrl+Alt+{index + 1}"))
            action.setToolTip(f"{apart(state.name)}: {apart(state.document.checkpoint)}")
            action.triggered.connect(partial(self._sessions.go_to, index))
            self._listed.append(action)
        if not states:
            none = self._menu.addAction("No state is kept yet")
            none.setEnabled(False)
            self._listed = [none]
        for action in self._walked:
            action.setEnabled(bool(states))
        self._renew.setEnabled(current >= 0)
