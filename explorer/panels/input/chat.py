"""What a model that converses reads: the switch from text to conversation, the turns, and whose tokens are whose."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from explorer.panels.input.turn_list import TurnList
from explorer.panels.input.turn_mark import TurnLegend
from explorer.session.intents import SayInTurn, SetChat, SetTurns, Show
from explorer.session.state import Notice, State
from explorer.widgets.segments import Segments
from models.protocol.chat import MOST_TURNS


class ChatParts(QObject):
    """The widgets of a conversation, for the input panel to place; hidden for models without a chat template."""

    intent = Signal(object)
    """What the person asks for, an `Intent`."""

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
        self.turns.said.connect(lambda place, text: self.intent.emit(SayInTurn(place, text)))
        self.turns.changed.connect(lambda turns: self.intent.emit(SetTurns(turns)))
        self.turns.refused.connect(lambda sentence: self.intent.emit(Show(Notice("warning", sentence))))
        self.legend = TurnLegend()
        self.side = QWidget()  # in the place of the title
        column = QVBoxLayout(self.side)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.switch)
        column.addWidget(self.add)
        column.addStretch(1)
        for part in (self.side, self.turns, self.legend):
            part.hide()

    def show_state(self, state: State) -> bool:
        """Show the conversation, where there is one; whether the model reads it."""
        loaded, document = state.results.loaded, state.document
        converses = loaded is not None and loaded.info.chat
        self.side.setVisible(converses)
        is_chat = converses and document.chat
        self.switch.choose(int(is_chat))
        for part in (self.add, self.turns):
            part.setVisible(is_chat)
        self.legend.setVisible(is_chat and state.ran is not None and any(token.role for token in state.ran.tokens))
        if is_chat:
            self.turns.set_turns(document.turns)
            self.add.setEnabled(len(document.turns) < MOST_TURNS)
        return is_chat

    def remark(self, state: State) -> str:
        """Says so where a turn holds what the model takes for the template's own; "" where none does."""
        ran = state.ran
        if ran is None or not state.document.chat:
            return ""
        found = next((token for token in ran.tokens if token.role and token.special), None)
        if found is None:
            return ""
        return f"“{found.text.strip()}” in the {found.role}'s turn is read as the template's own mark."

    def _on_switched(self, place: int) -> None:
        self.intent.emit(SetChat(place == 1))
        if place == 1:
            self.turns.focus_turn(len(self.turns.rows) - 1)
