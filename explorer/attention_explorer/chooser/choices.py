"""The list of what can be opened: shipped checkpoints, those opened lately, and what was just chosen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from attention_models.files.catalogue import shipped
from attention_models.files.names import SCHEME, is_hub

ROOM = 12  # pixels above and below a line together
_REFERENCE = Qt.ItemDataRole.UserRole


class Choices(QListWidget):
    """Up and down choose; Delete takes one that was opened lately off the list. Headings cannot be chosen."""

    chosen = Signal(str)
    """The reference of the current entry."""
    removed = Signal(str)
    """A reference that a person took off the list."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Checkpoints")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._shipped = shipped()
        self._recent: list[str] = []
        self._added: list[str] = []
        self.currentItemChanged.connect(self._on_current)
        self._fill("")

    @property
    def reference(self) -> str:
        """What is chosen; "" where nothing is."""
        row = self.currentRow()
        return str(self.item(row).data(_REFERENCE)) if row >= 0 else ""

    @property
    def is_recent(self) -> bool:
        """Whether what is chosen can be taken off the list."""
        return self.reference in self._recent

    def set_recent(self, recent: Sequence[str]) -> None:
        """Those opened lately, the last one first."""
        self._recent = list(recent)
        self._fill(self.reference)

    def add(self, reference: str) -> None:
        """Put what a person just chose at the top, unless it is listed, and choose it."""
        listed = {card.name for card in self._shipped} | set(self._recent) | set(self._added)
        if reference not in listed:
            self._added.insert(0, reference)
        self._fill(reference)

    def choose(self, reference: str) -> None:
        """Choose an entry; nothing is chosen where there is none of that name."""
        for row in range(self.count()):
            if reference and self.item(row).data(_REFERENCE) == reference:
                self.setCurrentRow(row)
                return
        self.setCurrentRow(-1)

    def _fill(self, reference: str) -> None:
        self.blockSignals(True)
        self.clear()
        if self._added:
            self._heading("Just chosen")
            for added in self._added:
                self._entry(_short(added), added, added)
        self._heading("Included")
        for card in self._shipped:
            self._entry(card.title, card.name, card.sentences)
        if self._recent:
            self._heading("Opened lately")
            for recent in self._recent:
                self._entry(_short(recent), recent, recent)
        self.blockSignals(False)
        self.choose(reference)

    def _heading(self, text: str) -> None:
        item = QListWidgetItem(text)
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        font = self.font()
        font.setBold(True)
        item.setFont(font)
        item.setData(_REFERENCE, "")
        self._add(item)

    def _entry(self, text: str, reference: str, tip: str) -> None:
        item = QListWidgetItem(f"   {text}")
        item.setData(_REFERENCE, reference)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, text)
        item.setToolTip(tip)
        self._add(item)

    def _add(self, item: QListWidgetItem) -> None:
        item.setSizeHint(QSize(0, self.fontMetrics().height() + ROOM))
        self.addItem(item)

    def _on_current(self) -> None:
        if self.reference:
            self.chosen.emit(self.reference)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete and self.is_recent:
            self.removed.emit(self.reference)
            return
        super().keyPressEvent(event)


def _short(reference: str) -> str:
    """The last two parts of a path, as many a folder is called “model”; the repository of a name on a hub."""
    if is_hub(reference):
        return reference.removeprefix(SCHEME)
    return "/".join(reference.replace("\\", "/").rstrip("/").split("/")[-2:]) or reference
