"""Where a beginner starts: a dictionary, the same lookup made soft, and the head that does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QGridLayout,
    QLabel,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.text_size import wide
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.lookup.arrows_page import ArrowsPage
from attention_explorer.panels.lookup.dictionary_page import DictionaryPage
from attention_explorer.panels.lookup.entries import ENTRIES, number, percent
from attention_explorer.panels.selected_head import (
    head_name,
    head_shown,
    row_of,
    selected_cell_request,
    site_words,
    wanted_head,
)
from attention_explorer.session.hidden import WEIGHTS, Hide
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import SelectKey
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.choices_kept import number_choice
from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.weight_table import WeightCell, WeightRow, WeightTable
from attention_models.protocol.head import HeadView, RowView
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Site
from attention_models.views.lookup import SoftLookup

_GAP = 8.0


class StepBar(ItemsWidget):
    """A click, or Left and Right, goes to a step.

    Steps share the width evenly; where their labels would not fit, only the current one has its label.
    """

    axis = Qt.Orientation.Horizontal
    step_selected = Signal(int)

    def __init__(self, labels: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__("Steps", parent)
        self._labels = tuple(labels)
        self._current = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._describe()

    @property
    def current(self) -> int:
        return self._current

    def set_current(self, step: int) -> None:
        """Mark `step` as the one that is shown."""
        if step != self._current and 0 <= step < len(self._labels):
            self._current = step
            self._describe()
            self.update()

    def step_rect(self, step: int) -> QRectF:
        """Where a step lies."""
        count, width = len(self._labels), float(self.width())
        if self._labels_fit():
            return QRectF(step * width / count, 0, width / count, self.height())
        bare = self._diameter() + 2 * _GAP
        left = step * bare + (width - count * bare if step > self._current else 0)
        return QRectF(left, 0, width - (count - 1) * bare if step == self._current else bare, self.height())

    def _describe(self) -> None:
        self.setAccessibleDescription(f"Step {self._current + 1} of {len(self._labels)}: {self._labels[self._current]}")

    # geometry

    def _diameter(self) -> float:
        return QFontMetricsF(self.font()).height() + 6

    def _labels_fit(self) -> bool:
        metrics = QFontMetricsF(self.bold_font())
        room = self.width() / len(self._labels) - self._diameter() - 2 * _GAP
        return all(metrics.horizontalAdvance(label) <= room for label in self._labels)

    def sizeHint(self) -> QSize:
        return QSize(360, round(self._diameter() + 14))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for step in range(len(self._labels)):
            self._draw_step(painter, step)
        self._draw_focus_ring(painter)

    def _draw_step(self, painter: QPainter, step: int) -> None:
        theme, rect, current = self._theme, self.step_rect(step), step == self._current
        font = self.bold_font() if current else QFont(self.font())
        metrics, diameter = QFontMetricsF(font), self._diameter()
        room = rect.width() - diameter - 2 * _GAP
        shown = metrics.elidedText(self._labels[step], Qt.TextElideMode.ElideRight, room)
        if step == self._hover and not current:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface_hover))
            painter.drawRoundedRect(rect.adjusted(1, 2, -3, -4), 6, 6)
        circle = QRectF(rect.left() + 4, (self.height() - 4 - diameter) / 2, diameter, diameter)
        painter.setPen(QPen(QColor(theme.query if current else theme.border_strong), wide(1.5)))
        painter.setBrush(QColor(theme.query) if current else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(circle)
        painter.setFont(font)
        painter.setPen(QColor(theme.on_accent if current else theme.text_dim))
        painter.drawText(circle, Qt.AlignmentFlag.AlignCenter, str(step + 1))
        painter.setPen(QColor(theme.text if current else theme.text_dim))
        label = QRectF(circle.right() + _GAP, circle.top(), room, diameter)
        if current or self._labels_fit():
            painter.drawText(label, Qt.AlignmentFlag.AlignVCenter, shown)
        painter.setPen(QPen(QColor(theme.query if current else theme.border), wide(3 if current else 1)))
        y = self.height() - 2.0
        painter.drawLine(QPointF(rect.left() + 4, y), QPointF(rect.right() - 6, y))

    # pointer and keyboard

    def item_count(self) -> int:
        return len(self._labels)

    def item_rect(self, item: int) -> QRectF:
        return self.step_rect(item)

    def tooltip_of(self, item: int) -> str:
        return f"Step {item + 1}: {self._labels[item]}"

    def _choose(self, item: int) -> None:
        if item != self._current:
            self.set_current(item)
            self.step_selected.emit(item)


# What the (i) of the lookups says, of the step that is shown. Pure.


_WHAT = "Attention is a soft dictionary: a query is compared with every key, and the answer is a mixture of all values."
_TRY_WORD = (
    "Try: type a key that is not there, as “grapes”, and move the slider to hard: the soft lookup becomes the "
    "dictionary."
)
_TRY_ARROWS = "Try: drag the query's arrow onto a key's, and watch that key take the weight."
_TRY_HEAD = "Try: click another key, or select another token above: the row is that of the selected head."


def of_dictionary(key: str, found: SoftLookup) -> About:
    """What was typed, and the soft lookup's answer."""
    best = int(found.weights.argmax())
    entry = ENTRIES[best]
    exact = (
        "and it is a key, so the plain dictionary finds it"
        if any(e.key == key for e in ENTRIES)
        else "which is no key: a plain dictionary has no answer"
    )
    return About(
        (
            _WHAT,
            f"You look up “{key}”, {exact}.",
            (
                f"By likeness “{entry.key}” gets most, {percent(float(found.weights[best]))} of the weight, and "
                f"the {len(ENTRIES)} prices together give {number(float(found.answer[0]))}."
            ),
        ),
        _TRY_WORD,
    )


def of_arrows(query: tuple[float, float], function: str, found: SoftLookup) -> About:
    """The query's arrow, the score function in use, and its answer."""
    best = int(found.weights.argmax())
    entry = ENTRIES[best]
    return About(
        (
            _WHAT,
            (
                f"The query is the arrow ({number(query[0])}, {number(query[1])}); the score of a key "
                f"({function.lower()}) is larger the more it points the same way."
            ),
            (
                f"“{entry.key}” scores {number(float(found.scores[best]))} and gets "
                f"{percent(float(found.weights[best]))} of the weight: the answer is "
                f"{number(float(found.answer[0]))}."
            ),
        ),
        _TRY_ARROWS,
    )


def of_head(sentence: str, allowed: int, keys: int, total: float) -> About:
    """`sentence` is what the page says of the selected row, which may look at `allowed` of its keys.

    `total` is the sum of its weights: 1 less a sink's share, or 0 where all is masked.
    """
    shares = "are shares of 1" if total > 0.999 else f"sum to {value_text(total)} (the rest is a sink's)"
    said = (
        ""
        if not keys or not total
        else f"All weights of the row {shares}, over {allowed} of {keys} tokens."
        if allowed < keys
        else f"All weights of the row {shares}, over {keys} tokens."
    )
    return About.of((_WHAT, sentence, said), _TRY_HEAD)


STEPS = ("A dictionary", "As attention", "A real head")
MOST_KEYS = 40
"""Keys listed for a head; of a longer row the heaviest, in the order of the text."""

_EMPTY = "The row of the selected head appears here when the model has run."
_NO_HEAD = "The open model attends to nothing, so it has no head that looks anything up."


class LookupPanel(Panel):
    api_version = 1
    name = "lookup"
    title = "Lookup"
    hint = (
        "Attention from the start: a dictionary, the same lookup with arrows to drag, and what the selected head does."
    )
    shows = WEIGHTS | {"gradient", "score", "value", "width"}
    reads = ("document.view", "selection", "site", HeadView, RowView)

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.steps = StepBar(STEPS)
        self.dictionary = DictionaryPage()
        self.arrows = ArrowsPage()
        self.head = HeadPage()
        self.pages = QStackedWidget()
        for page in (self.dictionary, self.arrows, self.head):
            self.pages.addWidget(scrolling(page))
        self.steps.step_selected.connect(self.pages.setCurrentIndex)
        self.pages.currentChanged.connect(lambda _: self.attempt(self.offer_script))
        self.dictionary.next_asked.connect(lambda: self.go_to(1))
        self.arrows.next_asked.connect(lambda: self.go_to(2))
        self.arrows.changed.connect(self._compare)
        self.head.table.row_selected.connect(self._on_key)
        body = QWidget()
        inner = QVBoxLayout(body)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(6)
        inner.addWidget(self.steps)
        inner.addWidget(self.pages, 1)
        self.card = Card(self.title)
        self.card.set_subtitle("attention is a soft dictionary")
        self.card.set_content(body)
        self.fill(self.card)
        self.keep("page", number_choice(self.pages.currentIndex, self.go_to, range(len(STEPS))))
        self._row: HeadRow | None = None
        self._compare()

    def go_to(self, step: int) -> None:
        """Show a step, 0 to 2."""
        self.steps.set_current(step)
        self.pages.setCurrentIndex(step)

    def figures(self) -> Iterable[QWidget]:
        return (self.head,)  # the pages before it are of no model

    def wants(self, state: State) -> Request | None:
        return wanted_head(state)

    def prints(self, state: State) -> Request | None:
        return selected_cell_request(state) if self.pages.currentIndex() == 2 else None

    def answering(self, hidden: frozenset[Hide]) -> Sequence[Place]:
        """The page of the model's own head; the others are of words and arrows of their own."""
        return [(self.head, self.head.rect())] if hidden & self.shows else ()

    def about(self, state: State) -> About:
        page = self.pages.currentIndex()
        if page == 0:
            return of_dictionary(self.dictionary.key.text(), self.dictionary.found)
        if page == 1:
            x, y = self.arrows.query
            return of_arrows((float(x), float(y)), self.arrows.function.name, self.arrows.found)
        row = self._row
        if row is None:
            return of_head(self.head.sentence.text(), 0, 0, 0.0)
        return of_head(self.head.sentence.text(), len(row.allowed), len(row.keys), sum(row.weights))

    def render_state(self, state: State, old: State | None) -> None:
        view, ran, site = head_shown(state), state.ran, state.site
        if view is None or ran is None or site is None:
            self._row = None
            self.head.table.set_rows(())
            self.head.sentence.setText(_EMPTY if ran is None or ran.sites else _NO_HEAD)
        elif (view.request.site, view.request.head) == (site.ref, state.selection.head):
            self._row = read_row(view, ran, site, state.selection.query)
            loaded = state.results.loaded
            if loaded is not None and loaded.info.textbook:
                self._row = replace(self._row, score="a recurrent model's own, see Cell")
            elif loaded is not None and loaded.info.weights_only:
                self._row = replace(self._row, score="not seen: this model gives its weights alone")
            self.head.show_row(self._row, state.selection.key, head_name(state))
        self._compare()

    def _compare(self) -> None:
        found, function = self.arrows.found, self.arrows.function
        best = int(np.argmax(found.weights))
        x, y = self.arrows.query
        toy = (
            f"an arrow, ({number(x)}, {number(y)})",
            f"{len(ENTRIES)} arrows",
            "dot product" if function.name == "Dot" else function.name.lower(),
            f"{percent(float(found.weights[best]))} “{ENTRIES[best].key}”",
            f"{number(float(found.answer[0]))}, of {len(ENTRIES)} values",
        )
        self.head.compare(toy, self._row)

    def _on_key(self, row: int) -> None:
        if self._row is not None:
            self.dispatch(SelectKey(self._row.shown[row]))


@dataclass(frozen=True)
class HeadRow:
    """One query's lookup in one head. Numbers are the model's own."""

    query: str
    keys: tuple[str, ...]  # of every key, allowed or not
    weights: tuple[float, ...]
    allowed: tuple[int, ...]
    shown: tuple[int, ...]  # keys listed
    head_dim: int
    score: str = "dot product, as the model scales it"

    @property
    def best(self) -> int:
        return max(self.allowed, key=lambda key: self.weights[key])

    @property
    def is_dead(self) -> bool:
        """Whether every weight is 0: all keys are masked."""
        return not any(self.weights)


def read_row(view: HeadView | RowView, ran: Ran, site: Site, query: int) -> HeadRow:
    """The row of `query`."""
    queries, keys = site_words(ran, site)
    count = len(keys)
    row, mask = row_of(view, query)
    weights = tuple(float(w) for w in row)
    masked = np.zeros(count, bool) if mask is None else mask
    allowed = tuple(int(key) for key in np.flatnonzero(~masked))
    heaviest = sorted(allowed, key=lambda key: -weights[key])[:MOST_KEYS]
    return HeadRow(queries[query], tuple(keys), weights, allowed, tuple(sorted(heaviest)), site.head_dim)


class HeadPage(QWidget):
    """The live row of the selected head, and beside each part of it the same part of the arrows."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sentence = wrapped(_EMPTY, "title")
        self.more = wrapped(role="dim")
        self.table = WeightTable(("weight",), "key")
        self.table.set_empty_text(_EMPTY)
        self.toy, self.real = ([wrapped() for _ in range(5)] for _ in range(2))
        self.real_heading = wrapped(role="dim")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 6, 4)
        column.setSpacing(10)
        column.addWidget(self.sentence)
        column.addLayout(self._comparison())
        column.addWidget(self.table)
        column.addWidget(self.more)
        column.addWidget(
            wrapped("Click a key to select it in every view; choose another head or token in the other panels.", "dim")
        )
        column.addStretch(1)

    def _comparison(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(2, 1)
        grid.addWidget(wrapped("your arrows", "dim"), 0, 1)
        grid.addWidget(self.real_heading, 0, 2)
        for row, part in enumerate(("query", "keys", "score", "most weight", "answer")):
            label = QLabel(part)
            label.setProperty("role", "dim")
            label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
            grid.addWidget(label, row + 1, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(self.toy[row], row + 1, 1, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(self.real[row], row + 1, 2, Qt.AlignmentFlag.AlignTop)
        return grid

    def show_row(self, row: HeadRow, key: int, head: str) -> None:
        """Show `row` with `key` marked; `head` is what the head is called in a sentence."""
        self.table.set_rows(
            [
                WeightRow(
                    name=row.keys[i],
                    cells=(WeightCell(row.weights[i], percent(row.weights[i], 1)),),
                    tooltip=f"“{row.query}” looks at “{row.keys[i]}” (token {i}): {row.weights[i]:.6f}",
                )
                for i in row.shown
            ]
        )
        self.table.set_row(row.shown.index(key) if key in row.shown else -1)
        self.sentence.setText(sentence(row, key, head))
        self.more.setText(_left_out(row))
        self.more.setVisible(bool(self.more.text()))
        self.real_heading.setText(head[0].lower() + head[1:])

    def compare(self, toy: tuple[str, ...], row: HeadRow | None) -> None:
        """Fill the two columns: the arrows as they stand, and the head's row."""
        for label, text in zip(self.toy, toy, strict=True):
            label.setText(text)
        real = ("", "", "", "", "")
        if row is not None:
            best = "none" if row.is_dead else f"{percent(row.weights[row.best], 1)} “{row.keys[row.best]}”"
            real = (
                f"“{row.query}”, {row.head_dim} numbers" if row.head_dim else f"“{row.query}”",
                f"{len(row.allowed)} tokens",
                row.score,
                best,
                f"a vector, of {len(row.allowed)} values",
            )
        for label, text in zip(self.real, real, strict=True):
            label.setText(text)


def sentence(row: HeadRow, key: int, head: str) -> str:
    """ "Layer 5, head 5 looks up “to”: 26.8 % of its answer comes from “Tom”." """
    if row.is_dead:
        return f"{head} looks up “{row.query}”, but the mask hides every key: all weights are 0, and so is the answer."
    if key not in row.allowed:
        return f"{head} looks up “{row.query}”. The mask hides “{row.keys[key]}” from it; most, {_from(row, row.best)}."
    share = percent(row.weights[key], 1)  # as in the table
    said = f"{head} looks up “{row.query}”: {share} of its answer comes from “{row.keys[key]}”"
    return f"{said}, more than from any other." if key == row.best else f"{said}; most, {_from(row, row.best)}."


def _from(row: HeadRow, key: int) -> str:
    return f"{percent(row.weights[key], 1)}, from “{row.keys[key]}”"


def _left_out(row: HeadRow) -> str:
    parts = []
    rest = len(row.allowed) - len(row.shown)
    if rest:
        weight = sum(row.weights[key] for key in set(row.allowed) - set(row.shown))
        parts.append(f"{rest:,} lighter keys, {percent(weight, 1)} together, are not listed.")
    hidden = len(row.keys) - len(row.allowed)
    if hidden:
        parts.append(f"{hidden:,} {'token is' if hidden == 1 else 'tokens are'} masked: no lookup sees them.")
    return " ".join(parts)
