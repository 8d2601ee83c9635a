"""The column of a lesson: its steps, what the step says, its question, and the way on."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QListWidget,
    QMainWindow,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.theme import Theme
from attention_explorer.session.lessons import Lesson
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.window.docks import Grip
from attention_explorer.window.lesson.question import QuestionCard


class SideDock(QDockWidget):
    """At the left of `window` at first, and hidden."""

    def __init__(self, title: str, window: QMainWindow) -> None:
        super().__init__(title, window)
        self.setObjectName(title.lower())  # what saveState calls it
        self._grip = Grip(title, floats=False)
        self.setTitleBarWidget(self._grip)
        self.setFeatures(QDockWidget.DockWidgetFeature.DockWidgetMovable)
        self.setAllowedAreas(Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea)
        window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, self)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._grip.set_theme(theme)


_WIDE = 340
_STEPS_SHOWN = 6


class MarkdownText(QTextBrowser):
    """Text in Markdown, as high as it is. It opens no link and reads no file."""

    def __init__(self) -> None:
        super().__init__()
        self.setOpenLinks(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setProperty("role", "lesson")
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(lambda _: self._fit())
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._said = ""

    def say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            features = (
                QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
            )
            self.document().setMarkdown(text, features)
            self.setAccessibleDescription(self.toPlainText())
            self._fit()

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing: a lesson names no place outside itself."""
        return None

    def _fit(self) -> None:
        height = int(self.document().size().height()) + 4
        if height != self.height():
            self.setFixedHeight(height)


class LessonColumn(QWidget):
    """Draws what it is given; what is pressed is said by signals."""

    chosen = Signal(int)
    """A step of the list was pressed."""
    moved = Signal(int)
    """Back (-1) or on (1)."""
    closed = Signal()
    returned = Signal()
    """What the step shows is to come back on screen."""

    def __init__(self) -> None:
        super().__init__()
        self.title = wrapped("", "title")
        self.number = wrapped("", "dim")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(6)
        self.bar.setAccessibleName("How far the lesson is")
        self.steps = QListWidget()
        self.steps.setAccessibleName("Steps of the lesson")
        self.steps.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.steps.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.steps.itemClicked.connect(lambda item: self.chosen.emit(self.steps.row(item)))
        self.list_button = QPushButton("Steps")
        self.list_button.setCheckable(True)
        self.list_button.setProperty("role", "flat")
        self.list_button.setToolTip("Show the list of steps, to go to any of them")
        self.list_button.toggled.connect(self.steps.setVisible)
        self.steps.hide()
        self.notes_button = QPushButton("Notes")
        self.notes_button.setCheckable(True)
        self.notes_button.setProperty("role", "flat")
        self.notes_button.setToolTip("Notes for whoever gives the lesson")
        self.text, self.notes = MarkdownText(), MarkdownText()
        self.heading = wrapped("", "heading")
        self.notes.hide()
        self.notes_button.toggled.connect(self._show_notes)
        self.question = QuestionCard()
        self.back, self.next = QPushButton("Back"), QPushButton("Next")
        self.back.setToolTip("The step before, as it was left (PgUp)")
        self.next.setToolTip("The next step (PgDown, or a presenter's remote)")
        self.next.setProperty("role", "primary")
        self.next.setAutoDefault(True)  # Enter presses it, also outside of a dialog
        self.back.clicked.connect(lambda: self.moved.emit(-1))
        self.next.clicked.connect(lambda: self.moved.emit(1))
        self.score = wrapped("", "dim")
        self.away = QPushButton("Show the step again")
        self.away.setToolTip("Put back on screen what this step shows")
        self.away.clicked.connect(self.returned)
        self.away.hide()
        self.end = QPushButton("End the lesson")
        self.end.setProperty("role", "flat")
        self.end.clicked.connect(self.closed)
        self._has_notes = self._notes_elsewhere = False
        self._lay_out()

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.number, 1)
        top.addWidget(self.list_button)
        top.addWidget(self.notes_button)
        page = QWidget()
        inner = QVBoxLayout(page)
        inner.setContentsMargins(2, 0, 2, 0)
        inner.setSpacing(10)
        for part in (self.heading, self.text, self.question, self.away, self.notes):
            inner.addWidget(part)
        inner.addStretch(1)
        self.area = scrolling(page)
        buttons = QHBoxLayout()
        buttons.addWidget(self.back)
        buttons.addWidget(self.next, 1)
        below = QHBoxLayout()
        below.addWidget(self.score, 1)
        below.addWidget(self.end)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 6, 8)
        column.setSpacing(6)
        column.addWidget(self.title)
        column.addLayout(top)
        column.addWidget(self.bar)
        column.addWidget(self.steps)
        column.addWidget(self.area, 1)
        column.addLayout(buttons)
        column.addLayout(below)

    def sizeHint(self) -> QSize:
        return QSize(_WIDE, 600)

    def show_lesson(self, lesson: Lesson) -> None:
        self.title.setText(lesson.title)
        self.title.setToolTip(lesson.about)
        self.steps.clear()
        for number, step in enumerate(lesson.step, start=1):
            self.steps.addItem(f"{number}  {step.title}")
        row = max(self.steps.sizeHintForRow(0), 16)
        self.steps.setFixedHeight(row * min(len(lesson.step), _STEPS_SHOWN) + 6)
        self.bar.setRange(0, len(lesson.step))

    def show_step(self, at: int, count: int, heading: str) -> None:
        """The step `at`, from 0; the end where it is `count`."""
        is_end = at >= count
        self.number.setText("The end" if is_end else f"Step {at + 1} of {count}")
        self.bar.setValue(min(at + 1, count))
        self.heading.setText(heading)
        self.back.setEnabled(at > 0)
        self.next.setText("Close" if is_end else "Finish" if at + 1 == count else "Next")
        self.steps.setCurrentRow(at if not is_end else -1)
        self.area.verticalScrollBar().setValue(0)

    def show_notes(self, text: str) -> None:
        self._has_notes = bool(text)
        self.notes.say(text)
        self.notes_button.setVisible(self._has_notes and not self._notes_elsewhere)
        self._show_notes(self.notes_button.isChecked())

    def keep_notes_elsewhere(self, elsewhere: bool) -> None:
        """Leave the notes to another place while an audience sees this column."""
        self._notes_elsewhere = elsewhere
        self.notes_button.setVisible(self._has_notes and not elsewhere)
        self._show_notes(self.notes_button.isChecked())

    def _show_notes(self, on: bool) -> None:
        self.notes.setVisible(on and self._has_notes and not self._notes_elsewhere)
