"""Asking about the checkpoint of a session that is elsewhere, or is another by now."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from explorer.session.session_check import Checked
from explorer.widgets import asking
from explorer.widgets.token_text import isolated


class CheckpointQuestion(QMessageBox):
    """Where is it? Nothing waits for the answer but the session that asks. Deleted when it is closed."""

    place_chosen = Signal(str)
    """A folder or a GGUF file, to look there."""
    open_asked = Signal()
    """Open what is there, though it is another one."""
    left = Signal()

    def __init__(self, checked: Checked, parent: QWidget) -> None:
        super().__init__(
            QMessageBox.Icon.Question, "The session's checkpoint", isolated(checked.question), parent=parent
        )
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._checked = checked
        self._choose = self.addButton("Choose where it is…", QMessageBox.ButtonRole.ActionRole)
        self._open = (
            self.addButton("Open it anyway", QMessageBox.ButtonRole.AcceptRole) if checked.found == "changed" else None
        )
        cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.setDefaultButton(QMessageBox.StandardButton.Cancel)
        self.setEscapeButton(cancel)
        told = (
            "Opened anyway, the figures will be those of the checkpoint that is there, and the window will say so."
            if self._open is not None
            else "Nothing on screen changes before it is found."
        )
        self.setInformativeText(told)
        self.finished.connect(lambda _result: self._on_finished())

    def _on_finished(self) -> None:
        clicked = self.clickedButton()
        if clicked is self._choose:
            place = self._ask_for_place()
            if place:
                self.place_chosen.emit(place)
            else:
                self.left.emit()
        elif clicked is self._open and clicked is not None:
            self.open_asked.emit()
        else:
            self.left.emit()

    def _ask_for_place(self) -> str:
        reference, parent = self._checked.state.document.checkpoint, self.parentWidget()
        files = self._checked.state.files
        beside = Path(reference).parent
        folder = str(beside) if beside.is_dir() and Path(reference).is_absolute() else str(Path.home())
        if reference.lower().endswith(".gguf") or any(name.lower().endswith(".gguf") for name in files):
            return asking.file_to_open(parent, "Where is the checkpoint?", folder, "GGUF files (*.gguf)")
        return asking.folder(parent, "Where is the checkpoint's folder?", folder)
