"""The second text of an encoder-decoder model, with tokens of its own: what its decoder says."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QPushButton, QWidget

from attention_explorer.panels.input.labels import title
from attention_explorer.panels.input.text_input import TextInput
from attention_explorer.panels.input.token_strip_area import TokenStripArea


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
