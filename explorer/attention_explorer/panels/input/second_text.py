"""The second text of an encoder-decoder model, with tokens of its own: what its decoder says."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from attention_explorer.panels.input.labels import TextInput, title
from attention_explorer.panels.input.token_strip import TokenStripArea
from attention_explorer.panels.input.turn_mark import FIRST, SECOND, Legend

_WHICH = "Tokens by the text that they are of; the template's own by the segment that they are in."


class PairParts(QObject):
    """The widgets of the second text, for the input panel to place; hidden for models that read one."""

    changed = Signal(object)
    """What the second text is now, a string; None closes its field."""

    def __init__(self, parent: QWidget, first: QLabel) -> None:
        """`first` names the field of the first text."""
        super().__init__(parent)
        self._first, self._alone = first, first.text()
        self.text = TextInput(most_lines=2)
        self.text.setAccessibleName("Second text")
        self.text.setPlaceholderText("Type the second text: the model reads both together")
        self.text.setToolTip("Read together with text A, in the way of the model's own tokenizer for two texts.")
        self.text.edited.connect(self.changed.emit)
        self.remove = QPushButton("Remove")
        self.remove.setAccessibleName("Remove the second text")
        self.remove.setToolTip("Let the model read text A alone")
        self.remove.clicked.connect(self._close)
        self.add = QPushButton("+ Second text")
        self.add.setToolTip("Let the model read a second text together with this one (Ctrl+Shift+B)")
        self.add.clicked.connect(self.open)
        self.row = (title("Text B", self.text), self.text, self.remove)
        self.legend = Legend("Which text's tokens", {FIRST: "text A", SECOND: "text B"}, _WHICH)
        for part in (*self.row, self.add, self.legend):
            part.hide()

    def open(self) -> None:
        """Go to the second text, and open its field where it is closed."""
        if self.text.isHidden():
            self.changed.emit("")
        self.text.setFocus()

    def _close(self) -> None:
        self.changed.emit(None)
        self._first.buddy().setFocus()

    def show_pair(self, second: str | None, can_pair: bool, has_segments: bool) -> None:
        """Show the second text, None where there is none. `has_segments`: the tokens shown are of two texts."""
        is_open = can_pair and second is not None
        self.add.setVisible(can_pair and not is_open)
        for part in self.row:
            part.setVisible(is_open)
        self.legend.setVisible(is_open and has_segments)
        self._first.setText("Text A" if is_open else self._alone)
        if second is not None:
            self.text.set_text(second)


class TargetParts(QObject):
    """The widgets of the target, for the input panel to place; hidden for models that have none."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.text = TextInput(most_lines=2)
        self.text.setAccessibleName("Target text")
        self.text.setPlaceholderText("Nothing written yet. Press Step, or type a translation.")
        self.text.setToolTip("What the decoder says. Type to put words into its mouth, and see how likely each was.")
        self.writes_button = QPushButton("Model writes")
        self.writes_button.setCheckable(True)
        self.writes_button.setToolTip(
            "Down: the model writes the target itself, by beam search. Up: it is made to say what stands here."
        )
        self.area = TokenStripArea()
        self.strip = self.area.strip
        self.strip.set_empty_text("The target's tokens appear here.")
        self.strip.setAccessibleName("Target tokens")
        self.row = (title("Target", self.text), self.text, self.writes_button)
        self.set_visible(False)

    def set_visible(self, visible: bool) -> None:
        place = self.text.parentWidget()
        layout = None if place is None else place.layout()
        if layout is not None:
            layout.setEnabled(False)  # with each part that shows itself it would lay out the whole window
        for part in (*self.row, self.area):
            part.setVisible(visible)
        if layout is not None:
            layout.setEnabled(True)

    def show_target(self, target: str | None, written: str | None) -> None:
        """What the decoder is made to say; where it writes itself (None), what it wrote, None while that is unknown."""
        self.writes_button.setChecked(target is None)
        text = written if target is None else target
        if text is not None:
            self.text.set_text(text)
