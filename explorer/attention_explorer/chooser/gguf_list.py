"""The GGUF files of a repository on a hub, to choose one by its name and size."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHeaderView, QLabel, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from attention_explorer.widgets.page import wrapped
from attention_models.files.gguf_names import FEWEST_BITS, suggested
from attention_models.files.memory import in_bytes
from attention_models.files.names import parse
from attention_models.protocol.hub import HubFile, HubListing

MOST_ROWS, FEWEST_ROWS = 5, 3  # on screen at once
_FRAME = 16  # pixels of the list that are no rows
_REFERENCE = Qt.ItemDataRole.UserRole


class GgufList(QWidget):
    """Hidden where there is nothing to choose. Up and Down choose; a click on what is chosen asks for it again."""

    chosen = Signal(str)
    """A reference like hf://owner/name:file.gguf; without a file for the safetensors checkpoint beside the files."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.heading = QLabel()
        self.heading.setProperty("role", "title")
        self.rows = QTreeWidget()
        self.rows.setAccessibleName("GGUF files of this repository")
        self.rows.setHeaderHidden(True)
        self.rows.setRootIsDecorated(False)
        self.rows.setUniformRowHeights(True)
        self.rows.setColumnCount(3)
        self.rows.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.rows.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.rows.header()
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(0)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        self.rows.currentItemChanged.connect(self._on_current)
        self.rows.itemClicked.connect(self._on_current)
        self.heading.setBuddy(self.rows)
        self.note = wrapped(role="dim")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.heading)
        column.addWidget(self.note)
        column.addWidget(self.rows)
        self.hide()

    @property
    def reference(self) -> str:
        """What is chosen; "" where nothing is."""
        item = self.rows.currentItem()
        return str(item.data(0, _REFERENCE)) if item is not None else ""

    def clear(self) -> None:
        self.rows.blockSignals(True)
        self.rows.clear()
        self.rows.blockSignals(False)
        self.hide()

    def show_listing(self, listing: HubListing) -> None:
        """List what there is. What `listing` is of is chosen, and where it is of nothing yet, what is suggested."""
        if not listing.ggufs:
            self.clear()
            return
        name, beside = parse(listing.reference), listing.safetensors
        suggestion = "" if beside else suggested((file.name, file.size) for file in listing.ggufs)
        self.rows.blockSignals(True)
        self.rows.clear()
        if beside:
            self._add(name.with_file("").reference, "safetensors", in_bytes(beside), "")
        for file in listing.ggufs:
            reference = name.with_file(file.name).reference
            self._add(reference, file.name, in_bytes(file.size), _remark(file, suggestion))
        if beside or name.file or suggestion:
            self._choose(name.with_file(name.file or suggestion).reference)
        self.rows.blockSignals(False)
        self.heading.setText("Also as GG&UF" if beside else "GG&UF files")
        self.note.setText(_note(len(listing.ggufs) > 1 and bool(suggestion), listing.parts))
        self.note.setVisible(bool(self.note.text()))
        self._fit()
        self.show()

    def _add(self, reference: str, title: str, size: str, remark: str) -> None:
        item = QTreeWidgetItem([title, size, remark])
        item.setData(0, _REFERENCE, reference)
        item.setToolTip(0, title)
        item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.rows.addTopLevelItem(item)

    def _choose(self, reference: str) -> None:
        for row in range(self.rows.topLevelItemCount()):
            item = self.rows.topLevelItem(row)
            if item is not None and item.data(0, _REFERENCE) == reference:
                self.rows.setCurrentItem(item)
                self.rows.scrollToItem(item)

    def _fit(self) -> None:
        row = max(1, self.rows.sizeHintForRow(0))
        count = self.rows.topLevelItemCount()
        self.rows.setMinimumHeight(row * min(count, FEWEST_ROWS) + _FRAME)
        self.rows.setMaximumHeight(row * min(count, MOST_ROWS) + _FRAME)

    def _on_current(self) -> None:
        if self.reference:
            self.chosen.emit(self.reference)


def _remark(file: HubFile, suggestion: str) -> str:
    remarks = ["suggested"] if file.name == suggestion else []
    if file.here:
        remarks.append("here" if file.here == file.size else f"{in_bytes(file.here)} here")
    return ", ".join(remarks)


def _note(suggests: bool, parts: int) -> str:
    sentences = []
    if suggests:
        sentences.append(f"Suggested is the smallest whose name says at least {FEWEST_BITS} bits a weight.")
    if parts:
        sentences.append(
            f"{parts} more {'is part' if parts == 1 else 'are parts'} of split models (-00001-of-00003), which can "
            "not be opened."
        )
    return " ".join(sentences)
