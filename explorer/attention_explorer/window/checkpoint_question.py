"""Asking about the checkpoint of a session that has moved, is another by now, or is on another computer."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from attention_explorer.session.session_check import Checked
from attention_explorer.widgets import asking
from attention_explorer.widgets.token_text import isolated
from attention_models.files.names import is_elsewhere

_TOLD_OF_OPENING = {
    "changed": "Opened anyway, the figures will be those of the checkpoint that is there, and the window will say so.",
    "elsewhere": (
        "Opening a place on another computer can tell it your user name, and help it to guess your password. Open it "
        "only if you know that computer."
    ),
}


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
        can_choose = not checked.elsewhere or checked.state.document.checkpoint in checked.elsewhere
        role = QMessageBox.ButtonRole.ActionRole
        self._choose = self.addButton("Choose where it is…", role) if can_choose else None
        can_open = checked.found in _TOLD_OF_OPENING
        self._open = self.addButton("Open it anyway", QMessageBox.ButtonRole.AcceptRole) if can_open else None
        cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.setDefaultButton(QMessageBox.StandardButton.Cancel)
        self.setEscapeButton(cancel)
        self.setInformativeText(_TOLD_OF_OPENING.get(checked.found, "Nothing on screen changes before it is found."))
        self.finished.connect(lambda _result: self._on_finished())

    def _on_finished(self) -> None:
        clicked = self.clickedButton()
        if clicked is self._choose and clicked is not None:
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
        is_here = not is_elsewhere(reference) and Path(reference).is_absolute() and beside.is_dir()
        folder = str(beside) if is_here else str(Path.home())
        if reference.lower().endswith(".gguf") or any(name.lower().endswith(".gguf") for name in files):
            return asking.file_to_open(parent, "Where is the checkpoint?", folder, "GGUF files (*.gguf)")
        return asking.folder(parent, "Where is the checkpoint's folder?", folder)
