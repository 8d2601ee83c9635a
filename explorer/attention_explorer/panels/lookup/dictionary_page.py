"""A dictionary looked up by an exact key, and softly by any key at all."""

from __future__ import annotations

import math
from typing import Literal

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QLineEdit, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from attention_explorer.panels.lookup.entries import ENTRIES, colour_text, number, percent, value_vectors
from attention_explorer.panels.lookup.temperature_slider import TemperatureSlider
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.together import Together
from attention_explorer.widgets.token_text import isolated
from attention_explorer.widgets.weight_table import WeightCell, WeightRow, WeightTable
from attention_models.views.lookup import SoftLookup, look_up, word_similarity

Kind = Literal["plain", "ok", "error"]
_PAD = 10.0


class AnswerBox(ThemedWidget):
    """A rounded box with a heading, one large line (made smaller where it is too long), and a dim note."""

    def __init__(self, heading: str, parent: QWidget | None = None) -> None:
        super().__init__(heading, parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._heading = heading
        self._text, self._note = "", ""
        self._kind: Kind = "plain"
        self._colour = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def text(self) -> str:
        return self._text

    @property
    def kind(self) -> Kind:
        return self._kind

    def set_answer(self, text: str, note: str = "", kind: Kind = "plain", colour: str = "") -> None:
        """Show `text`, with a disc of `colour` ("#rrggbb") before it if there is one."""
        text, note = isolated(text), isolated(note)
        self._text, self._note, self._kind, self._colour = text, note, kind, colour
        self.setAccessibleDescription(f"{text}. {note}")
        self.setToolTip(text)
        self.update()

    def sizeHint(self) -> QSize:
        line = QFontMetricsF(self.font()).height()
        return QSize(180, round(2 * line + QFontMetricsF(self._large(1.6)).height() + 2 * _PAD))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def _large(self, factor: float) -> QFont:
        font = QFont(self.bold_font())
        font.setPointSizeF(self.font().pointSizeF() * factor)
        return font

    def _fitting(self, width: float) -> QFont:
        """The largest of a few sizes in which the answer fits."""
        fonts = [self._large(factor) for factor in (1.6, 1.35, 1.15, 1.0)]
        return next((f for f in fonts if QFontMetricsF(f).horizontalAdvance(self._text) <= width), fonts[-1])

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = self._theme
        edge, ink = {
            "plain": (theme.border, theme.text),
            "ok": (theme.ok, theme.ok),
            "error": (theme.error, theme.error),
        }[self._kind]
        painter.setPen(QPen(QColor(edge), 1))
        painter.setBrush(QColor(theme.surface_alt))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        inner = QRectF(self.rect()).adjusted(_PAD, _PAD - 2, -_PAD, -_PAD + 2)
        line, middle = QFontMetricsF(self.font()).height(), Qt.AlignmentFlag.AlignVCenter
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(QRectF(inner.left(), inner.top(), inner.width(), line), middle, self._heading)
        note = painter.fontMetrics().elidedText(self._note, Qt.TextElideMode.ElideRight, round(inner.width()))
        painter.drawText(QRectF(inner.left(), inner.bottom() - line, inner.width(), line), middle, note)
        body = inner.adjusted(0, line, 0, -line)
        if self._colour:
            size = QFontMetricsF(self.font()).height()
            painter.setPen(QPen(QColor(theme.border_strong), 1))
            painter.setBrush(QColor(self._colour))
            painter.drawEllipse(QRectF(body.left() + 1, body.center().y() - size / 2, size, size))
            body.setLeft(body.left() + size + 9)
        font = self._fitting(body.width())
        painter.setFont(font)
        painter.setPen(QColor(ink))
        shown = QFontMetricsF(font).elidedText(self._text, Qt.TextElideMode.ElideRight, body.width())
        painter.drawText(body, middle, shown)


_TRY = ("grape", "grapes", "banan", "kiwi")
_LITTLE = 0.35  # below this similarity no key is much like the one typed
_NARROW = 42  # characters of width below which the answers stand under each other
_LONGEST = 24  # characters of a typed key


class DictionaryPage(QWidget):
    """The person types a key; both lookups answer at every keystroke."""

    next_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.key = QLineEdit(_TRY[1])
        self.key.setMaxLength(_LONGEST)
        self.key.setAccessibleName("The key to look up")
        self.key.setPlaceholderText("type a key")
        self.exact = AnswerBox("the dictionary")
        self.soft = AnswerBox("the soft lookup")
        self.table = WeightTable(("similarity, weight",), "key", "value")
        self.table.row_selected.connect(lambda row: self.key.setText(ENTRIES[row].key))
        self.temperature = TemperatureSlider(0.2)
        self.explanation = wrapped()
        self.following = QPushButton("Next: the same as attention  →")
        self.following.clicked.connect(self.next_asked)
        self.tries = [self._try(word) for word in _TRY]

        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 6, 4)
        column.setSpacing(10)
        column.addWidget(
            wrapped(
                "A dictionary stores a value under each key. Look a price up, by an exact key or by one that is not:"
            )
        )
        column.addLayout(self._question())
        column.addLayout(_line(self.tries))
        self._answers = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._answers.setSpacing(10)
        self._answers.addWidget(self.exact)
        self._answers.addWidget(self.soft)
        column.addLayout(self._answers)
        column.addWidget(self.table)
        column.addWidget(self.temperature)
        column.addWidget(self.explanation)
        column.addWidget(self.following, 0, Qt.AlignmentFlag.AlignRight)
        column.addStretch(1)
        self.key.textChanged.connect(self._answer)
        self.temperature.changed.connect(self._answer)
        self.temperature.changed.connect(Together(self.table, self.temperature).moved)
        self._answer()

    def _question(self) -> QHBoxLayout:
        before, after = QLabel("price[“"), QLabel("”]")
        for label in (before, after):
            label.setProperty("role", "mono")
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(before)
        row.addWidget(self.key, 1)
        row.addWidget(after)
        return row

    def _try(self, word: str) -> QPushButton:
        button = QPushButton(word)
        button.setToolTip(f"Look up “{word}”")
        button.setMinimumWidth(1)
        button.clicked.connect(lambda: self.key.setText(word))
        return button

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._arrange()

    def _arrange(self) -> None:
        narrow = self.width() < _NARROW * QFontMetricsF(self.font()).averageCharWidth()
        self._answers.setDirection(QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight)

    @property
    def found(self) -> SoftLookup:
        """The soft lookup of what is typed."""
        return look_up(self._similarities(), value_vectors(), self.temperature.temperature)

    def _similarities(self) -> list[float]:
        return [word_similarity(self.key.text(), entry.key) for entry in ENTRIES]

    def _answer(self) -> None:
        key = self.key.text()
        similarities, found = self._similarities(), self.found
        self._answer_exactly(key)
        answer = float(found.answer[0])
        self.soft.set_answer(number(answer), "every key, by likeness", colour=colour_text(found.answer))
        self.table.set_rows(
            [
                WeightRow(
                    name=f"“{entry.key}”",
                    value=number(entry.price),
                    colour=entry.colour,
                    cells=(WeightCell(float(weight), percent(float(weight)), number(similarity)),),
                    tooltip=f"“{entry.key}”: similarity {similarity:.4f}, weight {weight:.4f}. Click looks it up",
                )
                for entry, similarity, weight in zip(ENTRIES, similarities, found.weights, strict=True)
            ]
        )
        self.table.set_row(next((i for i, entry in enumerate(ENTRIES) if entry.key == key), -1))
        products = " + ".join(
            f"{number(float(w))} × {number(e.price)}" for e, w in zip(ENTRIES, found.weights, strict=True)
        )
        self.explanation.setText(
            f"{self._remark(key, max(similarities))}\n"
            f"Softmax makes weights of the similarities, and the values are mixed: {products} = {number(answer)}."
        )

    def _answer_exactly(self, key: str) -> None:
        entry = next((entry for entry in ENTRIES if entry.key == key), None)
        if entry is not None:
            self.exact.set_answer(number(entry.price), "the same key is there", "ok", entry.colour)
        else:
            self.exact.set_answer(f"KeyError: '{key}'", "no key is exactly this", "error")

    def _remark(self, key: str, closest: float) -> str:
        temperature = self.temperature.temperature
        if not key.strip():
            return "Nothing is typed, so every key is equally unlike it, and all count alike."
        if temperature == 0:
            return "At temperature 0 the most similar key takes all: for a key that is there, this is the dictionary."
        if math.isinf(temperature):
            return "At temperature ∞ similarity no longer matters: the answer is the mean of all values."
        if closest < _LITTLE:
            return f"No key is much like “{key}”, and still there is an answer: the weights always sum to 1."
        return "Similarity compares spelling: shared letters and pairs of letters, 1 for the same word."


def _line(tries: list[QPushButton]) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(6)
    label = QLabel("Try")
    label.setProperty("role", "dim")
    row.addWidget(label)
    for button in tries:
        button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        row.addWidget(button)
    return row
