"""What a model that converses reads: the switch from text to conversation, the turns, and whose tokens are whose."""

from __future__ import annotations

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.panels.input.labels import TextInput
from attention_explorer.panels.input.turn_mark import turn_legend
from attention_explorer.widgets.scroll_areas import BoundedArea
from attention_explorer.widgets.segments import Segments
from attention_models.protocol.chat import MOST_TURNS, ROLES, Turn

# The turns of a conversation to type in: whose each is, what it says, and a button that takes it away.


_GAP = 4
_MOST_ROWS = 3  # of one line each, that are seen at once
_SAYS = {
    "system": "What the model is told to be",
    "user": "What the user says",
    "assistant": "What the assistant has said; Step and Decode go on from here",
}


class TurnRow(QWidget):
    """One turn."""

    role_chosen = Signal(int)  # its place among `ROLES`

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.role = QComboBox()
        for role in ROLES:
            self.role.addItem(role.capitalize())
        self.role.setToolTip("Whose turn it is")
        self.role.activated.connect(self.role_chosen)
        self.text = TextInput(most_lines=2)
        self.remove = QToolButton()
        self.remove.setText("✕")
        self.remove.setToolTip("Take this turn away")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        top = Qt.AlignmentFlag.AlignTop
        row.addWidget(self.role, 0, top)
        row.addWidget(self.text, 1, top)
        row.addWidget(self.remove, 0, top)

    @property
    def turn(self) -> Turn:
        return Turn(ROLES[self.role.currentIndex()], self.text.text())

    def show_turn(self, turn: Turn, number: int, is_only: bool) -> bool:
        """Show `turn`; whether it was another one before."""
        changed = self.turn != turn
        self.role.setCurrentIndex(ROLES.index(turn.role))
        self.text.set_text(turn.text)
        self.text.setPlaceholderText(_SAYS[turn.role])
        self.text.setToolTip(
            f"{_SAYS[turn.role]}. It runs as you type; Enter runs it again, Shift+Enter breaks the line."
        )
        self.role.setAccessibleName(f"Role of turn {number}")
        self.text.setAccessibleName(f"Turn {number}, {turn.role}")
        self.remove.setAccessibleName(f"Remove turn {number}")
        self.remove.setEnabled(not is_only)
        return changed


class TurnList(BoundedArea):
    """As high as its turns need, up to a few lines; beyond them it scrolls."""

    said = Signal(int, str)  # the place of a turn, and its text after a person changed it
    changed = Signal(object)  # tuple of `Turn`: a role was chosen, or a turn added or taken away
    submitted = Signal()
    refused = Signal(str)  # a sentence: a paste that is too long

    def __init__(self, parent: QWidget | None = None) -> None:
        self._body = QWidget()
        super().__init__(self._body, parent)
        self.rows: list[TurnRow] = []
        self._latest: TurnRow | None = None  # shown or gone to last
        self._column = QVBoxLayout(self._body)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(_GAP)
        self._column.addStretch(1)
        # a row that is new has its place when the layout next runs
        self.verticalScrollBar().rangeChanged.connect(lambda *_: self._scroll_to_latest())

    def turns(self) -> tuple[Turn, ...]:
        return tuple(row.turn for row in self.rows)

    def set_turns(self, turns: tuple[Turn, ...]) -> None:
        """Show these turns. Emits nothing; a turn that is another one than before is scrolled to."""
        while len(self.rows) < len(turns):
            self._add_row()
        while len(self.rows) > len(turns):
            row = self.rows.pop()
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        new = None
        for place, (row, turn) in enumerate(zip(self.rows, turns, strict=True)):
            if row.show_turn(turn, place + 1, is_only=len(turns) == 1):
                new = row
        self.fit_height()
        if new is not None:
            self._show_row(new)

    def add_turn(self) -> None:
        """Add an empty turn of whoever is next, and go there to type."""
        next_role = "assistant" if self.rows and self.rows[-1].turn.role == "user" else "user"
        self.changed.emit((*self.turns(), Turn(next_role, "")))  # type: ignore[arg-type]
        self.focus_turn(len(self.rows) - 1)

    def focus_turn(self, place: int) -> None:
        if 0 <= place < len(self.rows):
            self.rows[place].text.setFocus(Qt.FocusReason.OtherFocusReason)
            self._show_row(self.rows[place])

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 30)

    def _show_row(self, row: TurnRow) -> None:
        self._latest = row
        self._scroll_to_latest()

    def _scroll_to_latest(self) -> None:
        if self._latest in self.rows:
            self.ensureWidgetVisible(self._latest, 0, 0)

    def _add_row(self) -> None:
        row = TurnRow(self._body)
        row.role_chosen.connect(lambda _: self.changed.emit(self.turns()))
        row.text.edited.connect(lambda text: self.said.emit(self.rows.index(row), text))
        row.text.submitted.connect(self.submitted)
        row.text.refused.connect(self.refused)
        row.text.document().documentLayout().documentSizeChanged.connect(lambda _: self.fit_height())
        row.remove.clicked.connect(lambda: self._take_away(row))
        self.rows.append(row)
        self._column.insertWidget(self._column.count() - 1, row)

    def _take_away(self, row: TurnRow) -> None:
        place = self.rows.index(row)
        turns = self.turns()
        self.changed.emit((*turns[:place], *turns[place + 1 :]))
        self.focus_turn(min(place, len(self.rows) - 1))

    def fit_height(self) -> None:
        if self.rows:
            super().fit_height()

    def wanted_height(self) -> int:
        heights = [max(row.text.height(), row.role.sizeHint().height()) for row in self.rows]
        wanted = sum(heights) + _GAP * (len(heights) - 1)
        line = min(heights)
        return min(wanted, _MOST_ROWS * line + (_MOST_ROWS - 1) * _GAP)


class ChatParts(QObject):
    """The widgets of a conversation, for the input panel to place; hidden for models without a chat template."""

    switched = Signal(bool)
    """The model is to read the conversation (True), or the text."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.switch = Segments(
            [
                ("Text", "The model reads plain text, without its chat template"),
                ("Chat", "The model reads turns of a conversation, as its chat template writes them"),
            ],
            "What the model reads",
        )
        self.switch.chosen.connect(self._on_switched)
        self.add = QPushButton("+ Turn")
        self.add.setToolTip("Add a turn to the conversation")
        self.turns = TurnList()
        self.add.clicked.connect(self.turns.add_turn)
        self.legend = turn_legend()
        self.side = QWidget()  # in the place of the title
        column = QVBoxLayout(self.side)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.switch)
        column.addWidget(self.add)
        column.addStretch(1)
        for part in (self.side, self.turns, self.legend):
            part.hide()

    def show_turns(self, turns: tuple[Turn, ...] | None, can_converse: bool, has_roles: bool) -> None:
        """Show the turns that the model reads, None where it reads the text. `has_roles`: its tokens are coloured."""
        self.side.setVisible(can_converse)
        self.switch.choose(int(turns is not None))
        for part in (self.add, self.turns):
            part.setVisible(turns is not None)
        self.legend.setVisible(turns is not None and has_roles)
        if turns is not None:
            self.turns.set_turns(turns)
            self.add.setEnabled(len(turns) < MOST_TURNS)

    def _on_switched(self, place: int) -> None:
        self.switched.emit(place == 1)
        if place == 1:
            self.turns.focus_turn(len(self.turns.rows) - 1)
