"""What a model that converses reads: the switch from text to conversation, the turns, and whose tokens are whose."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.input.turn_list import TurnList
from attention_explorer.panels.input.turn_mark import turn_legend
from attention_explorer.widgets.segments import Segments
from attention_models.protocol.chat import MOST_TURNS, Turn


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
