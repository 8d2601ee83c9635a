"""The column in which a lesson is made: its steps, and of the chosen one all that is said and asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QDrag, QDropEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.session.lesson_drafts import STANDING, Draft, DraftStep
from attention_explorer.session.lessons import OF_SCENES
from attention_explorer.session.scenes import LARGEST_TEXT, SMALLEST_TEXT
from attention_explorer.session.statements import Value
from attention_explorer.session.tours import Part
from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.number_field import WholeBox
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_explorer.window.lesson.question_form import QuestionForm, TextField, TextForm
from attention_models.files.sample_pictures import title_of_picture
from attention_models.protocol.facts import SHARES, WORDS, FactKind
from attention_models.protocol.prompt import plain_text, shown_of

_SHOWN = 6, 3
"""Rows that it is high at most, and at least."""


class StepList(QListWidget):
    """Says what is done to it; what it lists is given by `show_titles`."""

    chosen = Signal(int)
    moved = Signal(int, int)
    """A step was put in another place: from where, and where it is then."""
    deleted = Signal()
    """The chosen one is to go."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Steps of the lesson that is being made")
        self.setToolTip("Drag a step, or press Ctrl+Up or Ctrl+Down, to put it elsewhere; double-click shows it")
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.currentRowChanged.connect(self._on_row)
        self._is_filling = False

    def show_titles(self, titles: Sequence[str], at: int) -> None:
        """List these, the one at `at` chosen; -1 for none. Emits nothing."""
        self._is_filling = True
        try:
            if list(titles) != [self.item(row).text() for row in range(self.count())]:
                self.clear()
                self.addItems(list(titles))
            self.setCurrentRow(at)
        finally:
            self._is_filling = False
        row = max(self.sizeHintForRow(0), self.fontMetrics().height() + 10)
        most, least = _SHOWN
        self.setFixedHeight(row * min(max(self.count(), least), most) + 2 * self.frameWidth() + 14)

    def startDrag(self, actions: Qt.DropAction) -> None:
        """As Qt does, but that after a move it takes away the row which is chosen then."""
        indexes = self.selectedIndexes()
        if indexes:
            drag = QDrag(self)
            drag.setMimeData(self.model().mimeData(indexes))
            drag.setPixmap(self.viewport().grab(self.visualRect(indexes[0])))
            drag.exec(Qt.DropAction.MoveAction)

    def dropEvent(self, event: QDropEvent) -> None:
        """Say where it was let go; whoever fills the list moves it."""
        row, at = self.currentRow(), event.position().toPoint()
        under = self.indexAt(at)
        to = under.row() if under.isValid() else self.count()
        if under.isValid() and at.y() > self.visualRect(under).center().y():
            to += 1
        event.acceptProposedAction()
        self._move(row, to - 1 if to > row else to)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys, row = event.modifiers(), self.currentRow()
        if event.key() == Qt.Key.Key_Delete and row >= 0:
            self.deleted.emit()
        elif keys == Qt.KeyboardModifier.ControlModifier and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._move(row, row + (-1 if event.key() == Qt.Key.Key_Up else 1))
        else:
            super().keyPressEvent(event)

    def _move(self, row: int, to: int) -> None:
        if 0 <= row < self.count() and 0 <= to < self.count() and to != row:
            self.moved.emit(row, to)

    def _on_row(self, row: int) -> None:
        if not self._is_filling and row >= 0:
            self.chosen.emit(row)


_WIDE = 380

_INVITATION = (
    "Put on screen what the first step is to show: a model, a text, a cell, panels. Then press “Add this as a step”."
)

FIGURES: dict[FactKind, str] = {
    "weight": "Weight of the selected cell",
    "product": "Query times key of the cell, q · k",
    "scaled score": "Scaled score of the cell",
    "peak": "Key with the row's largest weight",
    "peak weight": "The row's largest weight",
    "entropy": "Entropy of the row, in bits",
    "visible": "How many keys the query can see",
    "visible keys": "Which keys the query can see",
    "mask": "Mask of the head",
    "role": "What the head does, over many texts",
    "value length": "Length of the key's value",
    "read length": "Weight times length of the value",
    "read peak": "Key of which the row reads most",
    "received": "What all rows give the key",
    "diagonal": "Mean weight of a token on itself",
    "above": "Mean weight on later tokens",
    "next": "The next token",
    "next probability": "Probability of the next token",
    "moved": "How far interventions move the answer",
    "tokens": "Tokens of the text",
    "layers": "Layers of the model",
    "heads": "Heads in a layer",
    "all heads": "Heads of the model",
    "joined width": "Width of a layer's heads together",
    "head width": "Width of a head",
    "width": "Width of the model",
    "vocabulary": "Tokens in the vocabulary",
    "context": "The longest text, in tokens",
    "parameters": "Parameters of the model",
    "query parameters": "Parameters of the query matrices",
    "cells": "Weights of all heads together",
    "attention products": "Multiplications in attention",
    "matrix products": "Multiplications by learned matrices",
    "cached bytes": "Bytes of all keys and values",
}
"""What a person can put into a text or ask for, in the words of the window."""

_RINGS: dict[Part, str] = {
    "cell": "The selected cell",
    "head": "The selected head",
    "token": "The query",
    "block": "The button that blocks the cell",
    "panel": "The panel's tab",
    "checkpoint": "The model",
}

_NAMED = tuple((FIGURES[kind], name) for name, kind in STANDING.items())
_NUMBERS = tuple((text, name) for text, name in _NAMED if STANDING[name] not in WORDS)
_SHARES_FIRST = tuple(sorted(_NUMBERS, key=lambda each: STANDING[each[1]] not in SHARES))


class EditorColumn(QWidget):
    """Draws what it is given; what is done to it is said by signals."""

    added = Signal()
    """What is on screen is to become a step."""
    taken = Signal()
    """What is on screen is to be what the chosen step shows."""
    shown = Signal()
    """What the chosen step shows is to come on screen."""
    chosen = Signal(int)
    moved = Signal(int, int)
    deleted = Signal()
    lesson_edited = Signal(object, str)
    """The draft with another title, sentence or length, and which of them it was."""
    step_edited = Signal(object, str)
    """The chosen step as it is now, and which part of it was changed."""
    text_size_chosen = Signal(float)
    undone = Signal()
    redone = Signal()
    saved = Signal()
    saved_as = Signal()
    tried = Signal()
    """The lesson is to be given from the chosen step on."""
    closed = Signal()
    refused = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._draft, self._step = Draft(), DraftStep(title="")
        self._is_filling = False
        self.title, self.about, self.minutes = QLineEdit(), QLineEdit(), WholeBox()
        self.list = StepList()
        self.add = QPushButton("Add this as a step")
        self.take, self.show_it = QPushButton("Take the screen again"), QPushButton("Show it")
        self.up, self.down, self.delete = QPushButton("↑"), QPushButton("↓"), QPushButton("×")
        self.step_title = QLineEdit()
        self.text = TextForm(_NAMED)
        self.notes = TextField("Notes for the teacher", 2)
        self.ring = WholeListBox()
        self.text_size = WholeBox()
        self.question = QuestionForm(_SHARES_FIRST)
        self.invitation = wrapped(_INVITATION, "dim")
        self._of_step = QWidget()
        self.shows = wrapped("", "dim")
        self.said = wrapped("", "dim")
        self.fault = wrapped("", "warning")
        self.save, self.save_as = QPushButton("Save"), QPushButton("Save as…")
        self.try_it, self.close_button = QPushButton("Try it"), QPushButton("Close")
        self._tell()
        self._connect()
        self._lay_out()
        self.setTabOrder(self.step_title, self.text.field)
        self.setTabOrder(self.text.field, self.notes)

    def _tell(self) -> None:
        """What each part is, for who sees it and for who hears it."""
        self.title.setMaxLength(60)
        self.title.setPlaceholderText("Title of the lesson")
        self.title.setAccessibleName("Title of the lesson")
        self.about.setMaxLength(600)
        self.about.setPlaceholderText("What it is about, in a sentence")
        self.about.setAccessibleName("What the lesson is about")
        self.minutes.setRange(1, 120)
        self.minutes.setSuffix(" min")
        self.minutes.setAccessibleName("Minutes that the lesson takes")
        self.step_title.setMaxLength(60)
        self.step_title.setPlaceholderText("Title of the step")
        self.step_title.setAccessibleName("Title of the step")
        self.notes.setPlaceholderText("For whoever gives the lesson; the class does not see them.")
        self.ring.setMinimumContentsLength(6)
        self.ring.setToolTip("What the step points at; of the cell, head and token those that are selected in it")
        self.text_size.setRange(round(SMALLEST_TEXT * 100), round(LARGEST_TEXT * 100))
        self.text_size.setSingleStep(10)
        self.text_size.setSuffix(" %")
        self.text_size.setAccessibleName("Text size of the step")
        self.text_size.setToolTip("Of all text in the window while this step is shown, where 100 % is as you like it")
        self.add.setProperty("role", "primary")
        self.add.setToolTip("Model, text, selected cell, interventions, panels and choices in them (Ctrl+Shift+L)")
        self.take.setToolTip("What is on screen now, in the place of what this step shows")
        self.show_it.setToolTip("Put what this step shows on screen")
        self.up.setToolTip("One place earlier (Ctrl+Up in the list)")
        self.down.setToolTip("One place later (Ctrl+Down in the list)")
        self.delete.setToolTip("Take this step out of the lesson; Ctrl+Z in the list brings it back")
        self.save.setToolTip("Write the lesson to its file (Ctrl+S in this column)")
        self.try_it.setToolTip("Give the lesson from this step on; ending it comes back here")
        self.close_button.setProperty("role", "flat")
        for button, name in ((self.up, "Move up"), (self.down, "Move down"), (self.delete, "Delete the step")):
            button.setAccessibleName(name)
            button.setFixedWidth(36)

    def _connect(self) -> None:
        self.title.textEdited.connect(lambda text: self._edit_lesson("title", title=text))
        self.about.textEdited.connect(lambda text: self._edit_lesson("about", about=text))
        self.minutes.valueChanged.connect(lambda value: self._edit_lesson("minutes", minutes=value))
        self.step_title.textEdited.connect(lambda text: self._edit("title", title=text))
        self.text.edited.connect(lambda text: self._edit("say", say=text))
        self.notes.edited.connect(lambda text: self._edit("notes", notes=text))
        self.question.edited.connect(lambda ask, part: self._edit(part and f"ask {part}", ask=ask))
        self.text_size.valueChanged.connect(self._on_text_size)
        self.ring.activated.connect(lambda _: self._edit("", point=self.ring.currentData()))
        for field in (self.text, self.notes, self.question.question, self.question.reveal):
            field.refused.connect(self.refused)
        self.list.chosen.connect(self.chosen)
        self.list.moved.connect(self.moved)
        self.list.deleted.connect(self.deleted)
        self.list.itemDoubleClicked.connect(lambda _: self.shown.emit())
        for button, signal in (
            (self.add, self.added),
            (self.take, self.taken),
            (self.show_it, self.shown),
            (self.delete, self.deleted),
            (self.save, self.saved),
            (self.save_as, self.saved_as),
            (self.try_it, self.tried),
            (self.close_button, self.closed),
        ):
            button.clicked.connect(lambda _checked=False, signal=signal: signal.emit())
        self.up.clicked.connect(lambda: self._move(-1))
        self.down.clicked.connect(lambda: self._move(1))

    def _lay_out(self) -> None:
        """All but the last line scrolls: letters may be large, and the window low."""
        top, of_lesson, listed, beside = QHBoxLayout(), QHBoxLayout(), QHBoxLayout(), QVBoxLayout()
        top.addWidget(wrapped("Making a lesson", "title"), 1)
        top.addWidget(self.close_button)
        of_lesson.addWidget(self.title, 1)
        of_lesson.addWidget(self.minutes)
        for button in (self.up, self.down, self.delete):
            beside.addWidget(button)
        beside.addStretch(1)
        listed.addWidget(self.list, 1)
        listed.addLayout(beside)
        self._page = QWidget()
        inner = QVBoxLayout(self._page)
        inner.setContentsMargins(2, 2, 6, 4)
        inner.setSpacing(8)
        for part in (top, of_lesson, self.about, listed, self.add, _flow(self.take, self.show_it), self.invitation):
            inner.addWidget(part) if isinstance(part, QWidget) else inner.addLayout(part)
        inner.addWidget(self._of_step)
        inner.addStretch(1)
        self._lay_out_step()
        self.area = scrolling(self._page, keeps_width=True)
        self._page.installEventFilter(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 6, 8)
        column.setSpacing(6)
        column.addWidget(self.area, 1)
        column.addWidget(self.fault)
        column.addWidget(self.said)
        column.addWidget(_flow(self.save, self.save_as, self.try_it))

    def _lay_out_step(self) -> None:
        column, sized = QVBoxLayout(self._of_step), QFormLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for label, field in (("&Ring around", self.ring), ("Text &size", self.text_size)):
            sized.addRow(_titled(label, field), field)
        for part in (self.shows, self.step_title, self.text):
            column.addWidget(part)
        for label, title in (("&Notes for the teacher", self.notes), ("&Question", self.question.kind)):
            column.addWidget(_titled(label, title))
            column.addWidget(self.notes if title is self.notes else self.question)
        column.addLayout(sized)

    def sizeHint(self) -> QSize:
        return QSize(_WIDE, 600)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._page and event.type() == QEvent.Type.LayoutRequest:
            self._fit_width()
        return super().eventFilter(watched, event)

    def _fit_width(self) -> None:
        """As wide as its page needs with letters of this size: it scrolls up and down only."""
        bar = self.area.verticalScrollBar().sizeHint().width()
        self.area.setMinimumWidth(self._page.minimumSizeHint().width() + bar)

    # what it shows

    def show_draft(self, draft: Draft, at: int) -> None:
        """The lesson, with the step at `at` chosen; -1 where there is none. Emits nothing."""
        self._is_filling, self._draft = True, draft
        try:
            for field, text in ((self.title, draft.title), (self.about, draft.about)):
                if field.text() != text:
                    field.setText(text)
            self.minutes.setValue(draft.minutes)
            titles = [f"{number}  {step.title}" for number, step in enumerate(draft.steps, start=1)]
            self.list.show_titles(titles, at)
            has_step = 0 <= at < len(draft.steps)
            self._show_step(draft.steps[at] if has_step else DraftStep(title=""))
            self._of_step.setVisible(has_step)
            self.invitation.setVisible(not has_step)
            for button in (self.take, self.show_it, self.delete):
                button.setEnabled(has_step)
            self.show_it.setEnabled(has_step and self._step.has_screen)
            self.up.setEnabled(has_step and at > 0)
            self.down.setEnabled(has_step and at + 1 < len(draft.steps))
            self.save.setEnabled(bool(draft.steps))
            self.save_as.setEnabled(bool(draft.steps))
            self.try_it.setEnabled(bool(draft.steps))
        finally:
            self._is_filling = False

    def _show_step(self, step: DraftStep) -> None:
        self._step = step
        if self.step_title.text() != step.title:
            self.step_title.setText(step.title)
        self.notes.set_text(step.notes)
        self.text_size.setValue(round(100 * (step.text_size or 1.0)))
        self.shows.setText(_shown_by(step))
        self._fill_ring(step)

    def _fill_ring(self, step: DraftStep) -> None:
        """What can be pointed at depends on what there is to be seen."""
        listed: dict[Part | None, str] = {None: "Nothing"}
        if step.has_screen:
            listed |= {part: text for part, text in _RINGS.items() if step.state is None or part not in OF_SCENES}
        if list(listed) != [self.ring.itemData(i) for i in range(self.ring.count())]:
            self.ring.clear()
            for part, text in listed.items():
                self.ring.addItem(text, part)
        self.ring.setCurrentIndex(list(listed).index(step.point))

    def show_figures(self, figures: Mapping[str, Value], said: str) -> None:
        """The figures of the chosen step that are known, and its text with them."""
        step = self._step
        kinds: dict[str, FactKind] = {**STANDING, **{name: figure.kind for name, figure in step.figures.items()}}
        self.text.show_text(step.say, said)
        self.question.show_question(step.ask, kinds, figures)

    def show_fault(self, sentence: str) -> None:
        """What keeps it from being saved; "" for nothing."""
        self.fault.setText(sentence)
        self.fault.setVisible(bool(sentence))

    # what a person does

    def _edit_lesson(self, part: str, **parts: object) -> None:
        if not self._is_filling:
            self._draft = replace(self._draft, **parts)  # type: ignore[arg-type]
            self.lesson_edited.emit(self._draft, part)

    def _edit(self, part: str, **parts: object) -> None:
        if not self._is_filling:
            self._step = replace(self._step, **parts)  # type: ignore[arg-type]
            self.step_edited.emit(self._step, part)

    def _on_text_size(self, percent: int) -> None:
        if not self._is_filling:
            size = percent / 100
            self._edit("text size", text_size=None if percent == 100 else size)
            self.text_size_chosen.emit(size)

    def _move(self, by: int) -> None:
        row = self.list.currentRow()
        self.moved.emit(row, row + by)

    def event(self, event: QEvent) -> bool:
        """Keys that nothing in it has taken: they are of the lesson here, and not of the session."""
        if isinstance(event, QKeyEvent) and event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress):
            keys = QKeySequence.StandardKey
            for key, signal in ((keys.Undo, self.undone), (keys.Redo, self.redone), (keys.Save, self.saved)):
                if event.matches(key):
                    event.accept()
                    if event.type() == QEvent.Type.KeyPress:
                        signal.emit()
                    return True
        return super().event(event)


def _flow(*buttons: QWidget) -> QWidget:
    """Buttons beside each other, or below where there is no room."""
    place = QWidget()
    flow = FlowLayout(place, gap=6)
    for button in buttons:
        flow.addWidget(button)
    return place


def _titled(text: str, field: QWidget) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "title")
    label.setBuddy(field)
    return label


def _shown_by(step: DraftStep) -> str:
    """What the step puts on screen, in a line."""
    if step.state is not None:
        document = step.state.document
        return f"Shows {document.checkpoint}: {_read(plain_text(shown_of(document.prompt)), document.picture)}"
    scene = None if step.was is None else step.was.show
    if scene is not None:
        return f"Shows {scene.checkpoint}: {_read(scene.text, scene.picture)}"
    return "Shows nothing of its own: what is there stays"


def _read(text: str, picture: str) -> str:
    return title_of_picture(picture) if picture and not text.strip() else f"“{_cut(text)}”"


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:59]}…"
