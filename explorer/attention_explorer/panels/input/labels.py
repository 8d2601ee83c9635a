"""A text field of a few lines that grows with its text, for a text that something else keeps and undoes."""

from __future__ import annotations

import re

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QInputMethodEvent, QKeyEvent, QKeySequence, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QSizePolicy, QWidget

from attention_explorer.session.text_limits import MOST_CHARACTERS
from attention_explorer.widgets.labels import SaidLabel
from attention_explorer.widgets.notes_field import wrap_for

# The labels and buttons of the input panel.


class KeyButton(QPushButton):
    """A button that says its key, where there is room for that; its tooltip says it everywhere."""

    def __init__(self, text: str, key: str, tooltip: str, action: object) -> None:
        super().__init__()
        self._name, self._key, self.says_key = text, key, True
        self.setAccessibleName(text)
        self.setToolTip(tooltip)
        self.clicked.connect(action)
        self._say()

    def set_key(self, key: str) -> None:
        self._key = key
        self._say()

    def set_says_key(self, says: bool) -> None:
        self.says_key = says
        self._say()

    @property
    def key_width(self) -> int:
        """Pixels that saying the key takes."""
        metrics = self.fontMetrics()
        return metrics.horizontalAdvance(self._with_key()) - metrics.horizontalAdvance(self._name)

    def _with_key(self) -> str:
        return f"{self._name}  ·  {self._key}"

    def _say(self) -> None:
        said = self._with_key() if self.says_key else self._name
        if said != self.text():
            self.setText(said)


def title(text: str, buddy: QWidget) -> QLabel:
    """The bold name of a field."""
    label = QLabel(text)
    label.setProperty("role", "title")
    label.setBuddy(buddy)
    return label


def dim() -> QLabel:
    """A dim label for what may hold a token."""
    label = SaidLabel()
    label.setProperty("role", "dim")
    return label


def mark(tooltip: str) -> QPushButton:
    """A word in a frame that can be pressed, whose place is kept while it is hidden."""
    made = QPushButton()
    made.setProperty("role", "mark")
    made.setToolTip(tooltip)
    policy = made.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    made.setSizePolicy(policy)
    return made


_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class TextInput(QPlainTextEdit):
    """Enter submits, Shift+Enter begins a new line. Undo and redo are left to the window."""

    edited = Signal(str)  # the whole text, after the person changed it
    submitted = Signal()
    refused = Signal(str)  # a sentence: a paste that is too long

    def __init__(self, most_lines: int = 3, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._most_lines = most_lines
        self._setting = False
        self._shown_text = ""
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.textChanged.connect(self._on_changed)
        self.document().documentLayout().documentSizeChanged.connect(lambda _: self._fit_height())
        self._fit_height()

    def set_most_lines(self, lines: int) -> None:
        """How many lines are seen at once."""
        if lines != self._most_lines:
            self._most_lines = lines
            self._fit_height()

    def text(self) -> str:
        """The text as it is; Qt's own `toPlainText` would make plain spaces of no-break spaces."""
        return self.document().toRawText().replace("\u2029", "\n")

    def set_text(self, text: str) -> None:
        """Show another text, the cursor at its end. Emits nothing.

        Qt has no lone surrogates and one kind of line end: they are shown as "\ufffd" and as new lines.
        """
        if text in (self._shown_text, self.text()):
            return
        self._shown_text = text
        self._setting = True
        try:
            self.clear()
            wrap_for(self, text)
            self.setPlainText(_LONE_SURROGATE.sub("\ufffd", text))
            self.moveCursor(QTextCursor.MoveOperation.End)
        finally:
            self._setting = False

    def selected_span(self) -> tuple[int, int]:
        """Start and end of what is marked, in characters of `text` (code points); the same where nothing is."""
        cursor, text = self.textCursor(), self.text()
        ends = (cursor.selectionStart(), cursor.selectionEnd())
        start, end = (len(_utf16(text)[: 2 * at].decode("utf-16-le", "surrogatepass")) for at in ends)
        return start, end

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        # a file that is dropped here is for the window: it opens checkpoint folders
        return source.hasText() and not any(url.isLocalFile() for url in source.urls())

    def insertFromMimeData(self, source: QMimeData) -> None:
        text = source.text()
        if len(text) + len(self.text()) > MOST_CHARACTERS:
            self.refused.emit(
                f"What you pasted has {len(text):,} characters; the input takes {MOST_CHARACTERS:,} in all. "
                "Nothing was pasted. Paste a shorter part of it."
            )
            return
        wrap_for(self, text)
        self.insertPlainText(text)

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _ENTER:
            if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.insertPlainText("\n")
            else:
                self.submitted.emit()
            return
        if event.text().isprintable() and event.text() and self._is_full():
            self.refused.emit(f"The input takes {MOST_CHARACTERS:,} characters, and has them all.")
            return
        super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        if event.commitString() and self._is_full():
            self.refused.emit(f"The input takes {MOST_CHARACTERS:,} characters, and has them all.")
            return
        super().inputMethodEvent(event)

    def _is_full(self) -> bool:
        return self.document().characterCount() > MOST_CHARACTERS and not self.textCursor().hasSelection()

    def event(self, event: QEvent) -> bool:
        # the field would swallow these for an undo of its own, which is off
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if event.matches(QKeySequence.StandardKey.Undo) or event.matches(QKeySequence.StandardKey.Redo):
                event.ignore()
                return False
            if event.modifiers() & Qt.KeyboardModifier.ControlModifier and event.key() in _ENTER:
                event.ignore()
                return False
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_height()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit_height()

    def _on_changed(self) -> None:
        if not self._setting:
            self._shown_text = self.text()
            self.edited.emit(self.text())

    def _fit_height(self) -> None:
        # QPlainTextEdit counts its document's height in lines
        wanted = round(self.document().size().height())
        lines = max(1, min(self._most_lines, wanted))
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if wanted > lines else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(policy)
        # not the viewport's height, which is made up until the first layout
        around = self.height() - self.contentsRect().height() + 2 * self.document().documentMargin()
        around += 1  # a last line without a pixel to spare counts as hidden, and the text scrolls on to a blank one
        height = round(lines * self.fontMetrics().lineSpacing() + around)
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)
            self.ensureCursorVisible()


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")
