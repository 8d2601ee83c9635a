"""The list of what the heads can be coloured by."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QStandardItemModel

from attention_explorer.panels.head_atlas.scores import choices
from attention_explorer.widgets.token_text import isolated
from attention_explorer.widgets.whole_list_box import WholeListBox

ASKED = "asked"
"""A cell, a row, a column or painted cells: what was asked at the map, while it is."""
_CUT = 12  # letters


class ChoiceBox(WholeListBox):
    """Room for most of what can be chosen; cut to a few letters before the heads give way to it."""

    chosen = Signal(str)
    """A person chose it, by the name that `choices` gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.setMinimumContentsLength(16)
        self.setAccessibleName("What the heads are coloured by")
        self.setToolTip("Thumbnails of the weights, or a colour for how much each head does something")
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        for choice, text in choices():
            self.addItem(text, choice)
            model.item(self.count() - 1).setEnabled(bool(choice))  # a heading is not chosen
        self.activated.connect(self._on_activated)

    def offer_asked(self, title: str) -> None:
        """List what was asked at the map, in words; "" for nothing."""
        place = self.findData(ASKED)
        if title and place < 0:
            self.insertItem(1, isolated(title), ASKED)
        elif title:
            self.setItemText(place, isolated(title))
        elif place >= 0:
            self.removeItem(place)

    def show_choice(self, choice: str) -> None:
        """Show what is chosen. Emits nothing."""
        self.setCurrentIndex(self.findData(choice))

    def minimumSizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(hint.width() - _CUT * self.fontMetrics().horizontalAdvance("X"), hint.height())

    def _on_activated(self, place: int) -> None:
        choice = self.itemData(place)
        if choice not in (ASKED, ""):
            self.chosen.emit(choice)
