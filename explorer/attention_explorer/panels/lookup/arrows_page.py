"""The lookup as attention: a query and keys as arrows, three score functions side by side, values mixed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from attention_explorer.look.text_size import smaller
from attention_explorer.panels.lookup.entries import ENTRIES, QUERY_PLACE, colour_text, number, percent, value_vectors
from attention_explorer.panels.lookup.temperature_slider import TemperatureSlider
from attention_explorer.panels.lookup.vector_plane import Arrow, VectorPlane
from attention_explorer.widgets.labels import SaidLabel
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.together import Together
from attention_explorer.widgets.weight_table import WeightCell, WeightRow, WeightTable
from attention_models.views.lookup import SoftLookup, additive_scores, dot_scores, general_scores, hidden, look_up

# What a lookup answers: values mixed by their weights, as a colour, a number and a bar of shares.


_BAR = 16.0
_LARGEST = 104.0


@dataclass(frozen=True)
class Share:
    """One value's part of the mix. `weight` is between 0 and 1, all of them sum to 1."""

    name: str
    colour: str
    weight: float


class MixView(ThemedWidget):
    """Stands upright: heading, disc, number, the bar of shares and one line under it."""

    def __init__(self, heading: str, parent: QWidget | None = None) -> None:
        super().__init__(heading, parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._heading = heading
        self._colour = ""
        self._text = ""
        self._note = ""
        self._shares: tuple[Share, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    @property
    def text(self) -> str:
        return self._text

    @property
    def colour(self) -> str:
        """Of the mix, "#rrggbb"."""
        return self._colour

    def set_mix(self, text: str, colour: str, shares: Sequence[Share], note: str = "") -> None:
        """Show the mixed number as `text` and the mixed `colour`."""
        self._text, self._colour, self._shares, self._note = text, colour, tuple(shares), note
        heard = ", ".join(f"{share.name} {100 * share.weight:.0f} %" for share in self._shares)
        self.setAccessibleDescription(f"{text}, mixed from {heard}")
        self.update()

    def _large(self) -> QFont:
        font = QFont(self.bold_font())
        font.setPointSizeF(self.font().pointSizeF() * 1.8)
        return font

    def sizeHint(self) -> QSize:
        return QSize(150, 260)

    def minimumSizeHint(self) -> QSize:
        line = QFontMetricsF(self.font()).height()
        return QSize(104, round(2 * line + QFontMetricsF(self._large()).height() + _BAR + 80))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, width = self._theme, float(self.width())
        line = QFontMetricsF(self.font()).height()
        large = QFontMetricsF(self._large()).height()
        disc = min(_LARGEST, width - 8, self.height() - 2 * line - large - _BAR - 36)
        top = max(0.0, (self.height() - (2 * line + large + disc + _BAR + 36)) / 2)
        centre = Qt.AlignmentFlag.AlignCenter
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(QRectF(0, top, width, line), centre, self._heading)
        top += line + 8
        painter.setPen(QPen(QColor(theme.border_strong), 1))
        painter.setBrush(QColor(self._colour or theme.surface_alt))
        painter.drawEllipse(QRectF((width - disc) / 2, top, disc, disc))
        top += disc + 6
        painter.setFont(self._large())
        painter.setPen(QColor(theme.text))
        painter.drawText(QRectF(0, top, width, large), centre, self._text)
        top += large + 8
        self._draw_shares(painter, QRectF(4, top, width - 8, _BAR))
        top += _BAR + 4
        painter.setFont(self.font())
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(QRectF(0, top, width, line), centre, self._note)

    def _draw_shares(self, painter: QPainter, rect: QRectF) -> None:
        clip = QPainterPath()
        clip.addRoundedRect(rect, 4, 4)
        painter.save()
        painter.setClipPath(clip)
        left = rect.left()
        for share in self._shares:
            width = rect.width() * share.weight
            painter.fillRect(QRectF(left, rect.top(), width, rect.height()), QColor(share.colour))
            left += width
        painter.restore()
        painter.setPen(QPen(QColor(self._theme.border_strong), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(rect, 4, 4)


Rows = Sequence[Sequence[float]]


class MatrixView(ThemedWidget):
    """One or more matrices in a line, each as "name = [numbers]"; in "W_q" the q is a small index."""

    def __init__(self, matrices: Sequence[tuple[str, Rows]], parent: QWidget | None = None) -> None:
        super().__init__("Matrices", parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._matrices = [(name, [[_number(x) for x in row] for row in rows]) for name, rows in matrices]
        heard = (f"{name} is " + "; ".join(" ".join(row) for row in rows) for name, rows in self._matrices)
        self.setAccessibleDescription(", ".join(heard))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(round(self._place()[1]), round(self._height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(100, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _height(self) -> float:
        return max(len(rows) for _, rows in self._matrices) * self._line() + 6

    def _place(self) -> tuple[list[float], float]:
        """Left ends, and the right end of all."""
        left, lefts = 0.0, []
        for name, rows in self._matrices:
            lefts.append(left)
            left += self._name_width(name) + len(rows[0]) * self._cell() + 32
        return lefts, left

    def _small(self) -> QFont:
        return smaller(self.font(), 0.75)

    def _name_width(self, name: str) -> float:
        letter, _, index = name.partition("_")
        small = QFontMetricsF(self._small()).horizontalAdvance(index)
        return QFontMetricsF(self.font()).horizontalAdvance(f"{letter} = ") + small

    def _cell(self) -> float:
        metrics = QFontMetricsF(self.font())
        return max(metrics.horizontalAdvance(x) for _, rows in self._matrices for row in rows for x in row) + 10

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, metrics, middle = self._theme, QFontMetricsF(self.font()), Qt.AlignmentFlag.AlignVCenter
        for left, (name, rows) in zip(self._place()[0], self._matrices, strict=True):
            painter.setPen(QColor(theme.text_dim))
            letter, _, index = name.partition("_")
            painter.setFont(self.font())
            painter.drawText(QRectF(left, 0, 200, self._height()), middle, letter)
            painter.setFont(self._small())
            after = left + metrics.horizontalAdvance(letter)
            painter.drawText(QRectF(after, metrics.height() / 4, 200, self._height()), middle, index)
            painter.setFont(self.font())
            after += QFontMetricsF(self._small()).horizontalAdvance(index)
            painter.drawText(QRectF(after, 0, 200, self._height()), middle, " = ")
            x = left + self._name_width(name) + 4
            height = len(rows) * self._line()
            top = (self._height() - height) / 2
            painter.setPen(QColor(theme.text))
            for i, row in enumerate(rows):
                for j, entry in enumerate(row):
                    cell = QRectF(x + j * self._cell(), top + i * self._line(), self._cell() - 2, self._line())
                    painter.drawText(cell, middle | Qt.AlignmentFlag.AlignRight, entry)
            self._draw_brackets(painter, QRectF(x, top, len(rows[0]) * self._cell() + 4, height))

    def _draw_brackets(self, painter: QPainter, rect: QRectF) -> None:
        painter.setPen(QPen(QColor(self._theme.text_dim), 1.5))
        for x, inward in ((rect.left(), 4), (rect.right(), -4)):
            top, bottom = QPointF(x, rect.top()), QPointF(x, rect.bottom())
            painter.drawPolyline([top + QPointF(inward, 0), top, bottom, bottom + QPointF(inward, 0)])


def _number(value: float) -> str:
    return f"{value:.1f}".replace("-", MINUS)


Array = NDArray[np.float64]

GENERAL = ((0.5, 1.0), (-1.0, 0.5))
QUERY_WEIGHT = ((1.0, 0.5), (-0.5, 1.0))
KEY_WEIGHT = ((1.0, -0.5), (0.5, 1.0))
DIRECTION = (1.5, 1.0)


def _dot_text(q: Array, k: Array) -> str:
    return f"q · k = {_products(q, k)}"


def _general_text(q: Array, k: Array) -> str:
    turned = np.array(GENERAL) @ k
    return f"W k = {_vector(turned)}<br>q · (W k) = {_products(q, turned)}"


def _additive_text(q: Array, k: Array) -> str:
    h = hidden(q, k[None], QUERY_WEIGHT, KEY_WEIGHT)[0]
    return f"tanh(W_q q + W_k k) = {_vector(h)}<br>v · tanh(…) = {_products(np.array(DIRECTION), h)}"


@dataclass(frozen=True)
class ScoreFunction:
    """One way to compare a query with keys, and how it is written with the numbers of one key."""

    name: str
    source: str
    scores: Callable[[Array, Array], Array]  # of (2,) and (keys, 2)
    text: Callable[[Array, Array], str]
    matrices: tuple[tuple[str, Rows], ...] = ()


FUNCTIONS = (
    ScoreFunction("Dot", "Luong et al. 2015; with 1/√d: Vaswani et al. 2017", dot_scores, _dot_text),
    ScoreFunction(
        "General",
        "Luong et al. 2015, equation 8",
        lambda q, keys: general_scores(q, keys, GENERAL),
        _general_text,
        (("W", GENERAL),),
    ),
    ScoreFunction(
        "Additive",
        "Bahdanau et al. 2015, appendix A.1.2",
        lambda q, keys: additive_scores(q, keys, QUERY_WEIGHT, KEY_WEIGHT, DIRECTION),
        _additive_text,
        (("W_q", QUERY_WEIGHT), ("W_k", KEY_WEIGHT), ("v", ((DIRECTION[0],), (DIRECTION[1],)))),
    ),
)


class ArrowsPage(QWidget):
    """Everything follows the arrows, the temperature and the score function in use at once."""

    next_asked = Signal()
    changed = Signal()
    """An arrow, the temperature or the score function is another one now."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._query = np.array(QUERY_PLACE)
        self._keys = np.array([entry.place for entry in ENTRIES])  # (keys, 2)
        self._key = 0  # the key whose formula is written out
        self.plane = VectorPlane()
        self.mix = MixView("the answer")
        self.temperature = TemperatureSlider()
        self.table = WeightTable([f.name for f in FUNCTIONS], "key")
        self.heading = SaidLabel()
        self.heading.setProperty("role", "title")
        self.formulas = [wrapped(role="mono") for _ in FUNCTIONS]
        for formula in self.formulas:
            formula.setTextFormat(Qt.TextFormat.RichText)  # for the indices; nothing in it comes from outside
        self.weight = wrapped(role="mono")
        self.reset = QPushButton("Start again")
        self.reset.setToolTip("Put the arrows and the temperature back")
        self.reset.clicked.connect(self.start_again)
        self.following = QPushButton("Next: a real head  →")
        self.following.clicked.connect(self.next_asked)
        self._build()
        self.plane.moved.connect(self._on_moved)
        self.plane.selected.connect(self._on_selected)
        self.table.row_selected.connect(self._on_row)
        self.table.column_selected.connect(self._refresh)
        self.temperature.changed.connect(self._refresh)
        self.temperature.changed.connect(Together(self.temperature, self.table).moved)
        self._refresh()

    @property
    def query(self) -> Array:
        return self._query.copy()

    @property
    def keys(self) -> Array:
        """(keys, 2)."""
        return self._keys.copy()

    @property
    def function(self) -> ScoreFunction:
        """The score function in use."""
        return FUNCTIONS[self.table.column]

    @property
    def found(self) -> SoftLookup:
        """The lookup as it stands."""
        return self._look_up(self.function)

    def start_again(self) -> None:
        """Arrows and temperature as the page opens."""
        self._query = np.array(QUERY_PLACE)
        self._keys = np.array([entry.place for entry in ENTRIES])
        self.temperature.set_temperature(1.0)
        self._refresh()

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 6, 4)
        column.setSpacing(8)
        column.addWidget(
            wrapped(
                "Now words are arrows. The more a key points along the query, the more of its value is in the answer."
            )
        )
        picture = QHBoxLayout()
        picture.setSpacing(8)
        picture.addWidget(self.plane, 5)
        picture.addWidget(self.mix, 2)
        column.addLayout(picture, 1)
        hint = QHBoxLayout()
        hint.addWidget(wrapped("Drag any tip, or choose one with Space and move it with the arrow keys.", "dim"), 1)
        hint.addWidget(self.reset)
        column.addLayout(hint)
        column.addWidget(self.temperature)
        column.addWidget(self.table)
        column.addWidget(self.heading)
        for function, formula in zip(FUNCTIONS, self.formulas, strict=True):
            column.addLayout(_block(function, formula))
        column.addSpacing(4)
        column.addWidget(wrapped("Its weight, and its share of the answer"))
        column.addWidget(self.weight)
        column.addWidget(self.following, 0, Qt.AlignmentFlag.AlignRight)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.plane.setMinimumHeight(round(min(0.58 * self.width(), 420)))

    def _on_moved(self, index: int, x: float, y: float) -> None:
        if index == len(ENTRIES):
            self._query = np.array([x, y])
        else:
            self._keys[index] = x, y
        self._refresh()

    def _on_selected(self, index: int) -> None:
        if index < len(ENTRIES):
            self._key = index
            self._refresh()

    def _on_row(self, row: int) -> None:
        self._key = row
        self.plane.set_chosen(row)
        self._refresh()

    def _look_up(self, function: ScoreFunction) -> SoftLookup:
        return look_up(function.scores(self._query, self._keys), value_vectors(), self.temperature.temperature)

    def _refresh(self) -> None:
        lookups = [self._look_up(function) for function in FUNCTIONS]
        found = lookups[self.table.column]
        shares = [Share(e.key, e.colour, float(w)) for e, w in zip(ENTRIES, found.weights, strict=True)]
        self.mix.set_mix(number(float(found.answer[0])), colour_text(found.answer), shares, "mixed")
        arrows = [
            Arrow(e.key, float(k[0]), float(k[1]), colour=e.colour, weight=float(w))
            for e, k, w in zip(ENTRIES, self._keys, found.weights, strict=True)
        ]
        self.plane.set_arrows([*arrows, Arrow("query", float(self._query[0]), float(self._query[1]), is_query=True)])
        self.table.set_rows([self._row(i, lookups) for i in range(len(ENTRIES))])
        self.table.set_row(self._key)
        self._write_formulas(found)
        self.changed.emit()

    def _row(self, index: int, lookups: list[SoftLookup]) -> WeightRow:
        entry = ENTRIES[index]
        cells = [
            WeightCell(float(f.weights[index]), percent(float(f.weights[index])), number(float(f.scores[index])))
            for f in lookups
        ]
        return WeightRow(entry.key, tuple(cells), colour=entry.colour)

    def _write_formulas(self, found: SoftLookup) -> None:
        entry, key = ENTRIES[self._key], self._keys[self._key]
        self.heading.setText(f"The score of “{entry.key}”, three ways")
        for function, label in zip(FUNCTIONS, self.formulas, strict=True):
            label.setText(function.text(self._query, key))
        score, weight = float(found.scores[self._key]), float(found.weights[self._key])
        share = f"{number(weight, 3)} × {number(entry.price)} = {number(weight * entry.price)}"
        temperature, best = self.temperature.temperature, float(found.scores.max())
        if temperature == 0:
            how = f"largest score {number(best)}: it takes all"
        elif math.isinf(temperature):
            how = f"the same for all: 1/{len(ENTRIES)}"
        else:
            less = f"+ {number(-best)}" if best < 0 else f"{MINUS} {number(best)}"
            own, total = float(found.numerators[self._key]), float(found.numerators.sum())
            power = f"{number(score)} {less}" if temperature == 1 else f"({number(score)} {less}) / {temperature:.2g}"
            how = f"e^({power}) / Σ = {number(own, 3)} / {number(total, 3)}"
        self.weight.setText(f"{how} = {number(weight, 3)}\nweight × value = {share}")


def _block(function: ScoreFunction, formula: QLabel) -> QVBoxLayout:
    name = QLabel(function.name)
    title = QHBoxLayout()
    title.setSpacing(8)
    title.addWidget(name, 0, Qt.AlignmentFlag.AlignTop)
    title.addWidget(wrapped(function.source, "dim"), 1)
    block = QVBoxLayout()
    block.setContentsMargins(0, 6, 0, 0)
    block.setSpacing(3)
    block.addLayout(title)
    if function.matrices:
        block.addWidget(MatrixView(function.matrices))
    block.addWidget(formula)
    return block


def _vector(v: Array) -> str:
    return f"({number(float(v[0]), 3)}, {number(float(v[1]), 3)})"


def _products(a: Array, b: Array) -> str:
    """ "1.20 × 0.800 + 0.60 × 1.100 = 1.62"."""
    terms = " + ".join(f"{_plain(float(x))} × {_plain(float(y))}" for x, y in zip(a, b, strict=True))
    return f"{terms} = {number(float(a @ b))}"


def _plain(value: float) -> str:
    """As many decimals as it has, 2 to 3; a negative one in brackets."""
    text = number(value, 2 if abs(value - round(value, 2)) < 1e-9 else 3)
    return text if value >= 0 else f"({text})"
