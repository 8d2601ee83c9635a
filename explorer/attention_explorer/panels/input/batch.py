"""Several texts that are run together: the way in, which of them is shown, and where they are filled up."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu, QPushButton, QSizePolicy, QToolButton, QWidget

from attention_explorer.panels.input.labels import title
from attention_explorer.widgets.layouts import in_row
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import shortened
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.files.text_stream import lines_of
from attention_models.protocol.batch import PaddingSide
from attention_models.protocol.errors import ExplorerError

_SIDES: tuple[PaddingSide, ...] = ("right", "left")


class BatchParts(QObject):
    """The widgets of several texts, for the input panel to place; all but the way in are hidden where there is one."""

    added = Signal(object)  # tuple of str: texts to run together with those that there are
    file_asked = Signal()  # the person wants to choose a file of texts
    chosen = Signal(int)  # which is to be shown
    removed = Signal()  # that which is shown
    kept_alone = Signal()  # that which is shown, without the others
    side_chosen = Signal(str)  # a `PaddingSide`
    refused = Signal(str)  # a sentence

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._count, self._shown = 1, 0
        self._listed: list[str] = []
        self.menu = QMenu(parent)
        self.menu.setToolTipsVisible(True)
        self._more = self._action("Add a text", "An empty one, to type in (Ctrl+Shift+A)", self.add_text)
        self._action("Paste each line as a text", "The lines of what was copied", self.paste_lines)
        self._action("Open a file of lines…", "Each line of a .txt file becomes a text", self.file_asked.emit)
        self._alone = self._action("Keep only this text", "Take the other texts out", self.kept_alone.emit)
        self.add = QPushButton("+ Text")
        self.add.setToolTip("Run several texts at once, padded to one length (Ctrl+Shift+A adds one)")
        self.add.setMenu(self.menu)
        self.previous = _arrow("‹", "Previous text", "The text before this one (Ctrl+PgUp)", self.show_previous)
        self.next = _arrow("›", "Next text", "The text after this one (Ctrl+PgDown)", self.show_next)
        self.list = WholeListBox()
        self.list.setAccessibleName("Which text is shown")
        self.list.setToolTip("All of them ran together; none is run again to be shown")
        self.list.setMinimumContentsLength(12)
        self.list.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.list.activated.connect(self.chosen.emit)
        self.side = Segments(
            [
                ("Pad right", "Shorter texts are filled up after their end, as for training"),
                ("Pad left", "Shorter texts are filled up before their start, as for writing on"),
            ],
            "Where shorter texts are filled up",
        )
        self.side.chosen.connect(lambda place: self.side_chosen.emit(_SIDES[place]))
        self.remove = QPushButton("Remove")
        self.remove.setAccessibleName("Remove this text")
        self.remove.setToolTip("Take this text out; the others stay")
        self.remove.clicked.connect(self.removed)
        steps, fills = in_row(self.previous, self.list, self.next), in_row(self.side, self.remove)
        self.row = (title("Texts", self.list), steps, fills)
        for part in (*self.row, self.add):
            part.hide()

    def set_noun(self, noun: str) -> None:
        """What one of them is called: a "text", or a "choice" of a model that chooses between them."""
        self.add.setText(f"+ {noun.capitalize()}")
        self.row[0].setText(f"{noun.capitalize()}s")
        self._more.setText("Add a choice" if noun == "choice" else "Add a text")

    def show_batch(self, texts: tuple[str, ...], shown: int, side: PaddingSide, can_add: bool) -> None:
        """Show which of `texts` is shown. `can_add`: the model runs several at once."""
        self._count, self._shown = len(texts), shown
        several = can_add and len(texts) > 1
        self.add.setVisible(can_add)
        self._alone.setVisible(several)
        for part in self.row:
            part.setVisible(several)
        if not several:
            return
        listed = [f"{place} of {len(texts)}:  {_in_short(text)}" for place, text in enumerate(texts, start=1)]
        if len(listed) != len(self._listed):
            self.list.clear()
            self.list.addItems(listed)
        else:
            for place, (line, before) in enumerate(zip(listed, self._listed, strict=True)):
                if line != before:
                    self.list.setItemText(place, line)
        self._listed = listed
        self.list.setCurrentIndex(shown)
        self.previous.setEnabled(shown > 0)
        self.next.setEnabled(shown < len(texts) - 1)
        self.side.choose(_SIDES.index(side))

    def add_text(self) -> None:
        if not self.add.isHidden():
            self.added.emit(("",))

    def paste_lines(self) -> None:
        """Each line that was copied becomes a text."""
        try:
            self.added.emit(lines_of(QGuiApplication.clipboard().text(), "What was copied"))
        except ExplorerError as error:
            self.refused.emit(str(error))

    def show_previous(self) -> None:
        self._step(-1)

    def show_next(self) -> None:
        self._step(1)

    def _step(self, by: int) -> None:
        if not self.row[0].isHidden() and 0 <= self._shown + by < self._count:
            self.chosen.emit(self._shown + by)

    def _action(self, text: str, tip: str, run: object) -> QAction:
        action = self.menu.addAction(text)
        action.setToolTip(tip)
        action.triggered.connect(lambda _checked=False: run())  # type: ignore[operator]
        return action


def _arrow(text: str, name: str, tip: str, run: object) -> QToolButton:
    made = QToolButton()
    made.setText(text)
    made.setAccessibleName(name)
    made.setToolTip(tip)
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    made.clicked.connect(run)
    return made


def _in_short(text: str) -> str:
    return shortened(" ".join(text.split())) or "(nothing yet)"
