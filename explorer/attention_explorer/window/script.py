"""“Show as PyTorch”: a window beside with the lines that compute what a panel shows, to copy and to save."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut, QTextCursor
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from attention_explorer.look.theme import Theme
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.dialogs import Kind, ask_where_to_save
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.python_colours import PythonColours
from attention_explorer.widgets.screens import room_for
from attention_models.files.safe_files import not_written, write_whole
from attention_models.protocol.request import Request
from attention_models.protocol.scripts import ScriptRequest, ScriptView

KEY = "Ctrl+P"

_FIRST = QSize(940, 620)
_COMPUTATION = "# ---- the computation"
_WRITING = "Writing it …"
_LOADING = "Another checkpoint is being opened. Ask again once it has run."
_KIND = Kind("Python", ".py")
_OWN = "from models"
_FROM_DISK = ("from_pretrained(", "open_checkpoint(", "load_file(", "Path(")


class ScriptWindow(QDialog):
    """Not modal. It keeps what was on screen when it was asked: another run does not change it."""

    again = Signal()
    """The key that opens it was pressed in it: what is on screen now is wanted."""

    def __init__(self, session: Session, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Show as PyTorch")
        self._session = session
        self._asked: ScriptRequest | None = None
        self.code = ""
        """The script; empty before it is written, and where it cannot be."""
        self.title = ElidedLabel()
        self.title.setProperty("role", "title")
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.note = QLabel()
        self.note.setProperty("role", "dim")
        self.note.setWordWrap(True)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setAccessibleName("The script")
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setTabChangesFocus(True)
        self.text.setProperty("role", "mono")
        self._colours = PythonColours(self.text.document())
        self.numbers_button = QPushButton("Numbers")
        self.numbers_button.setToolTip("To the numbers that it starts from")
        self.numbers_button.clicked.connect(lambda: self._go_to(0))
        self.lines_button = QPushButton("Computation")
        self.lines_button.setToolTip("To the lines that compute")
        self.lines_button.clicked.connect(self._go_to_computation)
        self.copy_button = QPushButton("Copy")
        self.copy_button.setProperty("role", "primary")
        self.copy_button.setToolTip("The whole script, to paste into a notebook")
        self.copy_button.clicked.connect(self.copy)
        self.save_button = QPushButton("Save as .py…")
        self.save_button.clicked.connect(self.save)
        close = QPushButton("Close")
        close.clicked.connect(self.close)
        QShortcut(QKeySequence(KEY), self, self.again.emit)
        self._lay_out(close)
        self.set_theme(theme)
        session.changed.connect(self._on_changed)
        self.resize(_FIRST.boundedTo(room_for(self)))

    def _lay_out(self, close: QPushButton) -> None:
        row = QHBoxLayout()
        row.addWidget(self.numbers_button)
        row.addWidget(self.lines_button)
        row.addStretch(1)
        for button in (self.copy_button, self.save_button, close):
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.addWidget(self.title)
        column.addWidget(self.note)
        column.addWidget(self.text, 1)
        column.addLayout(row)

    def set_theme(self, theme: Theme) -> None:
        self._colours.set_theme(theme)

    def ask(self, request: Request) -> None:
        """Show the lines that compute the answer to `request`."""
        self._asked = ScriptRequest(of=request)
        self._show("", "", _WRITING)
        self._session.request(self._asked)

    def copy(self) -> None:
        """Put the whole script on the clipboard."""
        QGuiApplication.clipboard().setText(self.code)
        self.note.setText("Copied. Paste it into a notebook, or into a file that Python runs.")

    def save(self) -> None:
        """Let the person save the script as a file."""
        path = ask_where_to_save(self, "Save the script", "attention.py", (_KIND,))
        if path is None:
            return
        try:
            write_whole(path, self.code.encode())
        except OSError as error:
            self.note.setText(not_written("The script", path, error))
            return
        self.note.setText(f"Saved: {path}")

    def _on_changed(self, old: State, new: State) -> None:
        if self._asked is None:
            return
        view = new.results.of(ScriptView)
        if view is not None and view.request == self._asked:
            self._asked = None
            self._show(view.title, view.code, view.refusal or needs(view.code))
        elif self._asked.of.outlives_model:
            if old.loading is not None and new.loading is None:  # which called it off: a training that is followed
                self._session.request(self._asked)
        elif new.loading is not None:
            self._asked = None
            self._show("", "", _LOADING)

    def _show(self, title: str, code: str, note: str) -> None:
        self.code = code
        self.title.setText(title)
        self.title.setVisible(bool(title))
        self.note.setText(note)
        self.text.setPlainText(code)
        for button in (self.numbers_button, self.lines_button, self.copy_button, self.save_button):
            button.setEnabled(bool(code))
        if code:
            self._go_to_computation()
            self.text.setFocus()

    def _go_to_computation(self) -> None:
        lines = self.code.split("\n")
        self._go_to(next((i for i, line in enumerate(lines) if line.startswith(_COMPUTATION)), 0))

    def _go_to(self, line: int) -> None:
        """Bring a line to the top."""
        self.text.moveCursor(QTextCursor.MoveOperation.End)
        cursor = QTextCursor(self.text.document().findBlockByNumber(line))
        self.text.setTextCursor(cursor)
        self.text.verticalScrollBar().setValue(line)


def needs(code: str) -> str:
    """What it takes to run a script."""
    if any(from_disk in code for from_disk in _FROM_DISK) and _OWN in code:
        return "Runs where this program is installed: it imports parts of it, and opens files of this computer."
    if _OWN in code:
        return "Runs where this program is installed: it imports parts of it."
    if "from transformers " in code:
        return "Runs with torch and transformers, and opens the checkpoint's folder; nothing is fetched."
    return "Runs by itself, with torch alone: all numbers are in it."
