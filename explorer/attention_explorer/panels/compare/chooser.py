"""What B reads, and which checkpoint reads it: two fields for what else is made with one key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from attention_explorer.session.text_limits import MOST_CHARACTERS
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.files.catalogue import shipped
from attention_models.files.fingerprint import title_of_reference

FOLDER = "\x00folder"
"""Stands for a checkpoint that is chosen among the person's files."""
_LEAST_TEXT = 28  # letters that the field of the text has room for
_MOST_SEEN = 24  # entries of a list; more are scrolled


@dataclass(frozen=True, slots=True)
class Given:
    """What B is given: a text or, of a vision model, a picture; and the checkpoint that reads it."""

    text: str
    picture: str
    checkpoint: str


class BChooser(QWidget):
    """Says what a person typed or chose, once they are done: Enter, or leaving the field."""

    given = Signal(object)  # Given
    typing = Signal()
    """A text is being typed that B does not read yet, or no longer."""
    kept = Signal()  # what is open is to become B
    swapped = Signal()
    let_go = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.text = _Field()
        self.text.setAccessibleName("What B reads")
        self.text.setMaxLength(MOST_CHARACTERS)
        self.text.setPlaceholderText("Another text for B, and Enter")
        self.text.setToolTip("What B reads. Enter runs it; Escape puts back what stood here")
        self.text.textChanged.connect(lambda _: self._say_typing())
        self.text.editingFinished.connect(self._on_typed)
        self.text.escaped.connect(self._put_back)
        self.picture = WholeListBox()
        self.picture.setAccessibleName("The picture of B")
        self.picture.setToolTip("What B looks at")
        self.picture.setMinimumContentsLength(10)
        self.picture.activated.connect(lambda _index: self._give())
        self.checkpoint = WholeListBox()
        self.checkpoint.setAccessibleName("The checkpoint of B")
        self.checkpoint.setToolTip("The model that reads it: the one that is open, or another beside it")
        self.checkpoint.setMinimumContentsLength(12)
        self.checkpoint.setMaxVisibleItems(_MOST_SEEN)
        self.checkpoint.activated.connect(self._on_checkpoint)
        self.keep = QPushButton("Use as B")
        self.keep.setToolTip("All that is open becomes B, as it is now (Ctrl+B); then change A")
        self.keep.clicked.connect(self.kept)
        self.swap = QPushButton("Swap")
        self.swap.setToolTip("Open B, and compare it with what is open now (Ctrl+E)")
        self.swap.clicked.connect(self.swapped)
        self.drop = QPushButton("Clear B")
        self.drop.setToolTip("Compare with nothing: B and its model go out of memory. Ctrl+Z brings B back")
        self.drop.clicked.connect(self.let_go)
        self.label = QLabel("B reads")
        self.label.setProperty("role", "title")
        self.label.setBuddy(self.text)
        self.by = QLabel("with")
        self._upper, self._lower = QHBoxLayout(), QHBoxLayout()
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(4)
        for line in (self._upper, self._lower):
            line.setSpacing(6)
            lines.addLayout(line)
        for part in (self.label, self.text, self.picture):
            self._upper.addWidget(part, 2 if part is self.text else 0)
        self._in_one: bool | None = None
        self._lay_out()
        self._cards = shipped()
        self._shown = Given("", "", "")
        self._was_typing = False

    @property
    def is_typing(self) -> bool:
        """Whether another text stands in the field than B reads."""
        return self.text.isModified() and self.text.text() != self._shown.text

    def _say_typing(self) -> None:
        if self.is_typing != self._was_typing:
            self._was_typing = self.is_typing
            self.typing.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        """All in one line, or the checkpoint and the buttons in a second where there is little room."""
        rest = (self.by, self.checkpoint, self.keep, self.swap, self.drop)
        letters = self.fontMetrics().averageCharWidth()
        needed = sum(part.sizeHint().width() + 6 for part in (self.label, *rest)) + _LEAST_TEXT * letters
        in_one = self.width() >= needed
        if in_one == self._in_one:
            return
        self._in_one = in_one
        line = self._upper if in_one else self._lower
        for part in rest:
            line.addWidget(part, 1 if part is self.checkpoint else 0)

    def show_given(
        self, given: Given, others: Sequence[str], pictures: Sequence[tuple[str, str]], exists: bool
    ) -> None:
        """Show what B is given. `others` are checkpoints beside those that come along, `pictures` (reference, title).

        Where B does not exist yet, it is what is open.
        """
        self._shown = given
        if not (self.text.hasFocus() and self.text.isModified()):
            self.text.setText(given.text)
            self.text.setCursorPosition(0)
        self.text.setVisible(not pictures)
        self.picture.setVisible(bool(pictures))
        self.label.setText("B looks at" if pictures else "B reads")
        self._fill(self.picture, pictures, given.picture)
        listed = [(card.name, card.title) for card in self._cards]
        known = {name for name, _ in listed}
        listed += [(name, title_of_reference(name)) for name in dict.fromkeys(others) if name not in known]
        self._fill(self.checkpoint, [*listed, (FOLDER, "A folder…")], given.checkpoint)
        self.swap.setEnabled(exists)
        self.drop.setEnabled(exists)

    def _fill(self, box: WholeListBox, entries: Sequence[tuple[str, str]], chosen: str) -> None:
        if [box.itemData(i) for i in range(box.count())] != [name for name, _ in entries]:
            box.clear()
            for name, title in entries:
                box.addItem(title, name)
                if name != FOLDER:
                    box.setItemData(box.count() - 1, name, Qt.ItemDataRole.ToolTipRole)
        box.setCurrentIndex(box.findData(chosen))

    def _on_typed(self) -> None:
        if self.text.isModified():
            self.text.setModified(False)
            self._say_typing()
            self._give()

    def _put_back(self) -> None:
        self.text.setText(self._shown.text)

    def _on_checkpoint(self, index: int) -> None:
        if self.checkpoint.itemData(index) != FOLDER:
            self._give()
            return
        folder = dialogs.folder(self, "Choose the checkpoint of B, a folder", "")
        self.checkpoint.setCurrentIndex(self.checkpoint.findData(self._shown.checkpoint))
        if folder:
            self.given.emit(Given(self.text.text(), self._shown.picture, folder))

    def _give(self) -> None:
        picture = self.picture.currentData() if not self.picture.isHidden() else self._shown.picture
        self.given.emit(Given(self.text.text(), picture or "", self.checkpoint.currentData() or self._shown.checkpoint))


class _Field(QLineEdit):
    """Escape is said; what was typed is only said once it is done."""

    escaped = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
            return
        super().keyPressEvent(event)
