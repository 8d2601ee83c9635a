"""Where a beginner starts: a dictionary, the same lookup made soft, and the head that does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QGridLayout,
    QLabel,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.lookup.about import of_arrows, of_dictionary, of_head
from attention_explorer.panels.lookup.arrows_page import ArrowsPage
from attention_explorer.panels.lookup.dictionary_page import DictionaryPage
from attention_explorer.panels.lookup.entries import ENTRIES, number, percent
from attention_explorer.panels.lookup.step_bar import StepBar
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
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.weight_table import WeightCell, WeightRow, WeightTable
from attention_models.protocol.head import HeadView, RowView
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Site

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
