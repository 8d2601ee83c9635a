"""The text of a step that is being made, in Markdown, beside what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QLabel, QMenu, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from attention_explorer.widgets.notes_field import NotesField
from attention_explorer.window.lesson.column import MarkdownText

MOST_CHARACTERS = 6000
_SIDE_BY_SIDE = 560
"""Pixels: in a column that is narrower the preview stands below the text."""
_LINES = 6


class TextField(NotesField):
    """So many lines high, at the size of its letters. Takes plain text up to what a step may hold."""

    def __init__(self, name: str, lines: int = _LINES) -> None:
        super().__init__(MOST_CHARACTERS)
        self._lines = lines
        self.setAccessibleName(name)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def sizeHint(self) -> QSize:
        return QSize(120, self._lines * self.fontMetrics().lineSpacing() + 22)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class TextForm(QWidget):
    """A field, a preview, and a button that puts a figure into the text."""

    edited = Signal(str)
    refused = Signal(str)

    def __init__(self, figures: Sequence[tuple[str, str]]) -> None:
        """`figures` can be put into the text: what each is, and its name."""
        super().__init__()
        self.field = TextField("Text of the step")
        self.field.setPlaceholderText("What the step says, in Markdown: **bold**, *italics*, - lists, # headings.")
        self.field.edited.connect(self.edited)
        self.field.refused.connect(self.refused)
        self.preview = MarkdownText()
        self.preview.setAccessibleName("Preview of the text")
        self.figure = QPushButton("Insert a figure")
        self.figure.setProperty("role", "flat")
        self.figure.setToolTip("A number or a word of what is on screen, computed whenever the step is shown")
        self.menu = QMenu(self.figure)
        for text, name in figures:
            self.menu.addAction(text).triggered.connect(lambda _checked=False, name=name: self.insert(name))
        self.figure.setMenu(self.menu)
        title = QLabel("&Text")
        title.setProperty("role", "title")
        title.setBuddy(self.field)
        head = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        head.addWidget(title, 1)
        head.addWidget(self.figure)
        frame = QFrame()
        frame.setProperty("role", "preview")
        inner = QVBoxLayout(frame)
        inner.setContentsMargins(8, 6, 8, 6)
        inner.addWidget(self.preview, 0, Qt.AlignmentFlag.AlignTop)
        self._pair = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._pair.setSpacing(6)
        self._pair.addWidget(self.field, 1)
        self._pair.addWidget(frame, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(head)
        column.addLayout(self._pair)

    def insert(self, name: str) -> None:
        """Put a figure where the text cursor is."""
        self.field.insertPlainText(f"{{{name}}}")
        self.field.setFocus()

    def show_text(self, text: str, said: str) -> None:
        """The text, and how it reads with its figures. Emits nothing."""
        self.field.set_text(text)
        self.preview.say(said or "*Nothing yet.*")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        directions = QBoxLayout.Direction
        is_wide = event.size().width() >= _SIDE_BY_SIDE
        self._pair.setDirection(directions.LeftToRight if is_wide else directions.TopToBottom)
