"""The question of a step that is being made: what is asked, how it is answered, and what makes an answer right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.session.figures import Figure
from attention_explorer.session.hidden import HIDES, Hide
from attention_explorer.session.lesson_drafts import LETTERS, DraftAsk, Way
from attention_explorer.session.lessons import prediction
from attention_explorer.session.statements import Value, statement
from attention_explorer.widgets.notes_field import NotesField
from attention_explorer.widgets.number_field import RealBox
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_explorer.window.lesson.column import MarkdownText
from attention_models.protocol.facts import SHARES, FactKind

# The text of a step that is being made, in Markdown, beside what becomes of it.


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


Kind = Literal["none", "options", "weight", "row", "next", "mask", "role", "number"]
"""What a person chooses between."""

_KINDS: dict[Kind, str] = {
    "none": "No question",
    "options": "Several answers",
    "weight": "Predict the weight of the cell",
    "row": "Predict the row's largest weight",
    "next": "Predict the next token",
    "mask": "Predict the mask of the row",
    "role": "Predict what the head does",
    "number": "Guess a number",
}
_HIDES: dict[Hide, str] = {
    "": "What is asked for",
    "weight": "The selected cell",
    "row": "The selected row",
    "next": "What comes next",
    "map": "The head's weights",
    "mask": "The head's mask",
    "score": "The score of the cell",
    "value": "Lengths of values",
    "role": "What heads do",
    "effect": "What heads and layers do for the answer",
    "gradient": "Gradients",
    "vector": "How near two vectors are",
    "position": "How positions are told",
    "variance": "The variance of products",
    "width": "The width of heads",
    "size": "How large the model is",
    "cache": "Keys and values that are kept",
}
_MOST_OPTIONS, _FEWEST_OPTIONS = len(LETTERS), 2
_LARGE = 1e9

assert set(_HIDES) == set(HIDES)


def kind_of(ask: DraftAsk | None) -> Kind:
    if ask is None:
        return "none"
    if ask.way == "options":
        return "options"
    if ask.way == "number":
        return "weight" if (ask.figure, ask.hide) == ("weight", "weight") else "number"
    by_way: dict[Way, Kind] = {"click": "row", "cells": "mask"}
    return by_way.get(ask.way, "next")


def begun(kind: Kind, was: DraftAsk | None) -> DraftAsk | None:
    """A question of this kind, with what was written of another."""
    if kind == "none":
        return None
    if kind == "options":
        ask = DraftAsk()
    elif kind == "number":
        ask = DraftAsk(way="number", figure="entropy", high=8.0)
    else:
        figure = {"weight": "weight", "row": "peak", "next": "next", "mask": "visible_keys", "role": "role"}[kind]
        of_screen = prediction(kind, figure).lesson.step[0].ask
        assert of_screen is not None
        ask = DraftAsk.of(of_screen)
    if was is None:
        return ask
    asked_before = was.question if kind_of(was) in ("options", "number") else ""
    return replace(ask, question=asked_before or ask.question, reveal=was.reveal)


class _OptionRow(QWidget):
    """One answer, when it is right, and whether it is now."""

    edited = Signal()
    removed = Signal()

    def __init__(self, letter: str) -> None:
        super().__init__()
        self.say, self.when = QLineEdit(), WholeListBox()
        self.say.setMaxLength(200)
        self.say.setPlaceholderText(f"Answer {letter}")
        self.say.setAccessibleName(f"Answer {letter}")
        self.when.setEditable(True)
        self.when.setInsertPolicy(WholeListBox.InsertPolicy.NoInsert)
        self.when.setMinimumContentsLength(6)
        line = self.when.lineEdit()
        assert line is not None
        line.setMaxLength(300)
        line.setPlaceholderText("peak = 'Tom'")
        self.when.setAccessibleName(f"Answer {letter} is right when")
        self.when.setToolTip("When this answer is right: a figure, one of < <= = != >= > and a number or a 'word'")
        self.mark = QLabel()
        self.mark.setFixedWidth(18)
        self.remove = QPushButton("×")
        self.remove.setProperty("role", "flat")
        self.remove.setFixedWidth(30)
        self.remove.setAccessibleName(f"Take answer {letter} away")
        self.remove.setToolTip("Take this answer away")
        self.remove.clicked.connect(self.removed)
        self.say.textEdited.connect(lambda _: self.edited.emit())
        line.textEdited.connect(lambda _: self.edited.emit())
        self.when.activated.connect(lambda _: self.edited.emit())
        first, second = QHBoxLayout(), QHBoxLayout()
        first.addWidget(self.say, 1)
        first.addWidget(self.remove)
        second.addWidget(QLabel("right when"))
        second.addWidget(self.when, 1)
        second.addWidget(self.mark)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 4)
        column.setSpacing(3)
        column.addLayout(first)
        column.addLayout(second)

    def show_option(self, say: str, when: str) -> None:
        if say != self.say.text():
            self.say.setText(say)
        if when != self.when.currentText():
            self.when.setEditText(when)

    def show_offers(self, offers: Sequence[str]) -> None:
        if list(offers) != [self.when.itemText(i) for i in range(self.when.count())]:
            text = self.when.currentText()
            self.when.clear()
            self.when.addItems(list(offers))
            self.when.setCurrentIndex(-1)
            self.when.setEditText(text)

    def show_holding(self, figures: Mapping[str, Value]) -> None:
        """Whether its statement is so, by the figures that are known."""
        text = self.when.currentText()
        try:
            said = statement(text)
        except ValueError as error:
            self.mark.setText("!" if text.strip() else "")
            self.mark.setToolTip(str(error) if text.strip() else "")
            return
        if any(name not in figures for name in said.names):
            self.mark.setText("…")
            self.mark.setToolTip("Not known yet, or not of what is on screen")
            return
        holds = said.holds(figures)
        self.mark.setText("✓" if holds else "✗")
        self.mark.setToolTip("Right, by what is on screen" if holds else "Wrong, by what is on screen")


class QuestionForm(QWidget):
    """Shows a question that need not be complete, and says what it becomes."""

    edited = Signal(object, str)
    """The question as it is now, a `DraftAsk` or None, and which part of it was changed."""

    def __init__(self, numbers: Sequence[tuple[str, str]]) -> None:
        """`numbers` can be guessed: what each is, and its name."""
        super().__init__()
        self._ask: DraftAsk | None = None
        self._is_filling = False
        self._kinds: Mapping[str, FactKind] = {}
        self._shares: frozenset[str] = frozenset()
        self.kind = WholeListBox()
        self.kind.setMinimumContentsLength(8)
        self.kind.setAccessibleName("Question")
        for kind, text in _KINDS.items():
            self.kind.addItem(text, kind)
        self.kind.activated.connect(self._on_kind)
        self.question = TextField("What is asked", 2)
        self.question.setPlaceholderText("What is asked")
        self.question.edited.connect(lambda text: self._change("question", question=text))
        self.rows: list[_OptionRow] = []
        self.options = QWidget()
        self._options_column = QVBoxLayout(self.options)
        self._options_column.setContentsMargins(0, 0, 0, 0)
        self._options_column.setSpacing(4)
        self.another = QPushButton("Another answer")
        self.another.clicked.connect(self._add_option)
        self._options_column.addWidget(self.another)
        self.figure = WholeListBox()
        self.figure.setMinimumContentsLength(6)
        self._numbers = list(numbers)
        self.figure.activated.connect(self._on_figure)
        self.low, self.high, self.within = RealBox(), RealBox(), RealBox()
        for box in (self.low, self.high, self.within):
            box.setDecimals(2)
            box.setRange(-_LARGE, _LARGE)
        self.within.setRange(0.01, _LARGE)
        self.low.valueChanged.connect(lambda value: self._change("low", low=value / self._scale))
        self.high.valueChanged.connect(lambda value: self._change("high", high=value / self._scale))
        self.within.valueChanged.connect(lambda value: self._change("within", within=value / self._scale))
        self.hide_box = WholeListBox()
        self.hide_box.setMinimumContentsLength(6)
        for hide, text in _HIDES.items():
            self.hide_box.addItem(text, hide)
        self.hide_box.activated.connect(lambda _: self._change("hide", hide=self.hide_box.currentData()))
        self.reveal = TextField("Said once it is answered", 2)
        self.reveal.setPlaceholderText("Said once it is answered; left empty, what the model says")
        self.reveal.edited.connect(lambda text: self._change("reveal", reveal=text))
        self.told = wrapped("", "dim")
        self.form = QFormLayout()
        self.form.setContentsMargins(0, 0, 0, 0)
        self.form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self.form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.form.addRow(self.kind)
        self.form.addRow(self.question)
        self.form.addRow(self.options)
        self.form.addRow("The number", self.figure)
        self.form.addRow("From", self.low)
        self.form.addRow("To", self.high)
        self.form.addRow("Right within", self.within)
        self.form.addRow("Covered", self.hide_box)
        self.form.addRow(self.reveal)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(self.form)
        column.addWidget(self.told)  # a form would cut off what is broken into lines
        self.show_question(None, {}, {})

    @property
    def _scale(self) -> float:
        """Shares are written in per cent."""
        return 100.0 if self._ask is not None and self._ask.figure in self._shares else 1.0

    def show_question(self, ask: DraftAsk | None, kinds: Mapping[str, FactKind], figures: Mapping[str, Value]) -> None:
        """Show it, with the `figures` that are known; `kinds` says what each is of. Emits nothing."""
        self._is_filling, self._ask = True, ask
        try:
            self._kinds = kinds
            self._shares = frozenset(name for name, kind in kinds.items() if kind in SHARES)
            self._fill(ask or DraftAsk(), kind_of(ask), figures)
        finally:
            self._is_filling = False

    def _fill(self, ask: DraftAsk, kind: Kind, figures: Mapping[str, Value]) -> None:
        self.kind.setCurrentIndex(self.kind.findData(kind))
        is_number = kind in ("weight", "number")
        for part, shown in (
            (self.question, kind != "none"),
            (self.options, kind == "options"),
            (self.figure, kind == "number"),
            (self.low, kind == "number"),
            (self.high, kind == "number"),
            (self.within, is_number),
            (self.hide_box, kind in ("number", "options")),
            (self.reveal, kind != "none"),
        ):
            self.form.setRowVisible(part, shown)
        self.told.setVisible(kind != "none")
        self.question.set_text(ask.question)
        self.reveal.set_text(ask.reveal)
        self._fill_options(ask, figures)
        self._fill_numbers(ask)
        self.hide_box.setCurrentIndex(self.hide_box.findData(ask.hide))
        self.told.setText(_told(ask, kind, self._kinds, figures))

    def _fill_options(self, ask: DraftAsk, figures: Mapping[str, Value]) -> None:
        while len(self.rows) < len(ask.options):
            row = _OptionRow(LETTERS[len(self.rows)])
            row.edited.connect(self._on_options)
            row.removed.connect(lambda row=row: self._remove_option(row))
            self._options_column.insertWidget(len(self.rows), row)
            self.rows.append(row)
        while len(self.rows) > max(len(ask.options), _FEWEST_OPTIONS):
            row = self.rows.pop()
            row.hide()
            row.deleteLater()
        offers = _offers(figures)
        for row, (say, when) in zip(self.rows, ask.options, strict=False):
            row.show_offers(offers)
            row.show_option(say, when)
            row.show_holding(figures)
            row.remove.setEnabled(len(ask.options) > _FEWEST_OPTIONS)
        self.another.setEnabled(len(ask.options) < _MOST_OPTIONS)

    def _fill_numbers(self, ask: DraftAsk) -> None:
        listed = list(self._numbers)
        if ask.figure and ask.figure not in (name for _, name in listed):
            listed.append((ask.figure, ask.figure))
        if [name for _, name in listed] != [self.figure.itemData(i) for i in range(self.figure.count())]:
            self.figure.clear()
            for text, name in listed:
                self.figure.addItem(text, name)
        self.figure.setCurrentIndex(self.figure.findData(ask.figure))
        scale, suffix = self._scale, " %" if self._scale == 100 else ""
        for box, value in ((self.low, ask.low), (self.high, ask.high), (self.within, ask.within)):
            box.setSuffix(suffix)
            if round(value * scale, 2) != box.value():
                box.setValue(value * scale)

    # what a person does

    def _change(self, part: str, **parts: object) -> None:
        if not self._is_filling and self._ask is not None:
            self._ask = replace(self._ask, **parts)  # type: ignore[arg-type]
            self.edited.emit(self._ask, part)

    def _on_kind(self) -> None:
        kind: Kind = self.kind.currentData()
        if kind != kind_of(self._ask):
            self._ask = begun(kind, self._ask)
            self.edited.emit(self._ask, "")

    def _on_figure(self) -> None:
        name = self.figure.currentData()
        if self._ask is not None and name != self._ask.figure:
            self._change("", figure=name, low=0.0, high=1.0 if name in self._shares else 100.0, within=0.1)

    def _on_options(self) -> None:
        options = tuple((row.say.text(), row.when.currentText()) for row in self.rows)
        self._change("options", options=options)

    def _add_option(self) -> None:
        if self._ask is not None:
            self._change("", options=(*self._ask.options, ("", "")))
            self.rows[-1].say.setFocus()

    def _remove_option(self, row: _OptionRow) -> None:
        if self._ask is not None:
            at = self.rows.index(row)
            self._change("", options=(*self._ask.options[:at], *self._ask.options[at + 1 :]))


def _offers(figures: Mapping[str, Value]) -> list[str]:
    """Statements to begin from, by what is on screen."""
    words = [f"{name} = '{figures[name]}'" for name in ("peak", "next") if name in figures]
    return [*(text for text in words if text.count("'") == 2), "weight > 0.5", "entropy < 1", "peak_weight > 0.5"]


def _told(ask: DraftAsk, kind: Kind, kinds: Mapping[str, FactKind], figures: Mapping[str, Value]) -> str:
    """What the model says at present, where the question is of one figure."""
    if kind == "options":
        return "Exactly one answer has to be right when the step is shown; the model decides which."
    value = figures.get(ask.figure)
    if value is None:
        return "The right answer is the model's own, computed when the step is shown."
    return f"Right, by what is on screen: {Figure(kind=kinds[ask.figure]).text_of(value)}."
