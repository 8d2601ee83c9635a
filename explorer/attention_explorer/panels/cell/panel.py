"""One cell of the selected head: from two tokens' vectors to one weight, and on to a logit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isnan

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.cell import recurrent_steps
from attention_explorer.panels.cell.cell_steps import additive_rows, additive_sentence, explained_steps, row_remark
from attention_explorer.panels.cell.row_bars import FEW, HEADINGS, RowBars
from attention_explorer.panels.cell.step_list import StepList
from attention_explorer.panels.cell.vector_bars import VectorBars, value_rows, value_sentence
from attention_explorer.panels.first_token import attention_sink
from attention_explorer.panels.selected_head import site_words
from attention_explorer.session.hidden import WEIGHTS, Hide
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import BlockCell, SelectKey
from attention_explorer.session.session import Session
from attention_explorer.session.state import State, site_of
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.number_text import counted, percent_text, signed, value_text
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.token_text import ARROW, shortened
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.cell import CellRequest, CellView
from attention_models.protocol.head import HeadView, RowView
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Candidate, CheckpointInfo, Site, SiteRef

_WHAT = "How one attention weight comes about and what it does, step by step, with the model's own numbers."
_ORDER = (
    "Query times key gives a score; softmax makes weights of a row's scores; the weight says how much of the "
    "key's value is read."
)
_RECURRENT = (
    "The decoder's state and an encoder's state give a score; softmax makes weights of a row's scores; the weight says "
    "how much of the encoder's state is in the context."
)
_NONE = "The open model attends to nothing, so there is no weight to take apart."
_TRY = (
    "Try: click another key in the row at the bottom, and compare its score and its weight; or a step, to read "
    "what it means."
)


def about(state: State, view: CellView | None) -> About:
    """`view` is the cell that is shown."""
    ran = state.ran
    if ran is not None and not ran.sites:
        return About((_NONE, _WHAT))
    site = None if ran is None or view is None else ran.site(view.request.site)
    if ran is None or view is None or site is None or view.request.run != ran.run:
        return About((_WHAT, _ORDER, "The numbers appear when the model has run."), _TRY)
    queries, keys = site_words(ran, site)
    query, key = queries[view.request.query], keys[view.request.key]
    order = _ORDER if view.recurrent is None else _RECURRENT
    return About((f"“{query}” looks at “{key}”. {order}", _score(view), _weight(view, query), _effect(view)), _TRY)


def _score(view: CellView) -> str:
    raw, products = value_text(view.raw), counted(len(view.products), "product")
    if view.recurrent is not None:
        return f"The score e is {raw}, the sum of {products}; softmax is given {value_text(view.score)}."
    if view.additive is not None:
        return f"v · tanh(q + k) is {raw}, the sum of {products}; softmax is given {value_text(view.score)}."
    return (
        f"q · k is {raw}, the sum of {products}; scaled by {value_text(view.scale * view.factor)} it is "
        f"{value_text(view.scaled)}, and softmax is given {value_text(view.score)}."
    )


def _weight(view: CellView, query: str) -> str:
    if view.masked:
        return "The cell is masked: its score counts as minus infinity, and its weight is 0."
    count = int((~view.row_masked).sum())
    return (
        f"Among the {counted(count, 'key')} that “{query}” may look at softmax makes a weight of "
        f"{value_text(view.weight)} of it."
    )


def _effect(view: CellView) -> str:
    mixed = (
        f"That much of a vector of length {value_text(view.value_norm)} is read: {value_text(view.mixed_norm)} "
        f"of the {'head' if view.recurrent is None else 'context'}'s {value_text(view.head_output_norm)}"
    )
    if view.effect is None:
        return f"{mixed}."
    return (
        f"{mixed}; its write moves the logit of “{view.target_label.lstrip('␣') or view.target_label}” by "
        f"{signed(view.effect)} directly."
    )


_EMPTY = "The arithmetic of the selected cell appears here when the model has run."
_NO_CELLS = "This model attends to nothing, so it has no cells. See its hidden states under Hidden."
_READ = "What is read, dimension by dimension"
_BLOCK = (
    "Mask this one weight of this head, all else left as it is: Next shows what that costs. A second press undoes it"
)
_HOW = "Choose a step to read its meaning. The full row is below."


class CellPanel(Panel):
    api_version = 1
    name = "cell"
    title = "Cell"
    hint = "One attention weight, step by step: from query and key to the weight, and on to a logit."
    needs_scores = True
    shows = WEIGHTS | {"next", "gradient", "score", "value", "width"}
    reads = ("selection", "site", "painted_cells", "document.view", CellView, HeadView, RowView)

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return bool(info.stacks)  # a model without attention has no heads

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._shown: CellView | None = None
        self._query = ""  # what the querying token is called
        self._target: int | None = None  # the token whose logit is shown; None for the likeliest
        self._candidates: tuple[tuple[Candidate, ...], int | None] = ((), None)
        self._meanings: tuple[str, ...] = ()
        self._make_widgets()
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(6)
        heading = ElidedLabel("Dimension by dimension")
        heading.setProperty("role", "dim")
        heading.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        column.addLayout(_line(heading, self.by_size))
        column.addWidget(self.vectors)
        column.addWidget(self.how)
        column.addWidget(self.steps)
        column.addWidget(self.read)
        column.addWidget(self.values)
        column.addWidget(self.target_line)
        column.addWidget(self.reason)
        column.addSpacing(6)
        column.addLayout(_line(self.row_heading, self.all_keys))
        column.addWidget(self.row)
        column.addWidget(self.rests)
        column.addStretch(1)
        scroll = scrolling(content)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        full = QWidget()
        self.rows = QVBoxLayout(full)
        self.rows.setContentsMargins(0, 0, 0, 0)
        self.rows.setSpacing(8)
        self.rows.addWidget(scroll, 1)
        self.rows.addWidget(self.meaning)
        self.empty = wrapped(_EMPTY, "dim")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        self.pages.addWidget(full)
        self.card = Card("One cell")
        self.card.set_content(self.pages)
        self.card.set_path(self.show_path("cell"))
        self.card.add_control(self.block)
        self.fill(self.card)
        self.keep("largest first", self.by_size)
        self.keep("all keys", self.all_keys)

    def _make_widgets(self) -> None:
        self.by_size = QCheckBox("Largest first")
        self.by_size.setToolTip(
            "Order the dimensions by the size of the products, which made the score, and of the sum, which is read"
        )
        self.vectors = VectorBars()
        self.values = VectorBars("Value, weight times value and the sum over the row, dimension by dimension")
        self.read = ElidedLabel(_READ)
        self.read.setProperty("role", "dim")
        self.read.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        for bars in (self.vectors, self.values):
            self.by_size.toggled.connect(bars.set_sorted)
        self.steps = StepList()
        self.steps.step_selected.connect(self._explain)
        self.target = WholeListBox()
        self.target.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.target.setAccessibleName("What logit is looked at")
        self.target.setToolTip("The answer (a token, or a class) on whose logit the direct effect is computed")
        self.target.activated.connect(self._choose_target)
        label = _dim("Direct effect on the logit of")
        label.setBuddy(self.target)
        self.target_line = QWidget()
        line = _line(label, self.target)
        line.setContentsMargins(0, 0, 0, 0)
        self.target_line.setLayout(line)
        self.reason, self.row_heading = wrapped(role="dim"), wrapped(role="dim")
        self.rests = wrapped(role="dim")  # why so many rows attend to the first token
        self.rests.hide()
        self.all_keys = QCheckBox("All keys")
        self.all_keys.setToolTip(f"List every key of the row, not only the {FEW} with the largest weights")
        self.row = RowBars()
        self.all_keys.toggled.connect(self._list_all)
        self.row.key_selected.connect(lambda key: self.dispatch(SelectKey(key)))
        self.row.hovered.connect(self._on_hovered)
        self.block = QPushButton("Block this cell")
        self.block.setToolTip(_BLOCK)
        self.block.setCheckable(True)
        self.block.clicked.connect(lambda on: self.dispatch(BlockCell(on)))
        self.block.hide()
        self.how, self.meaning = wrapped(_HOW, "dim"), wrapped(role="dim")
        self.meaning.hide()

    def place_of(self, part: str, site: SiteRef | None, head: int, query: int, key: int) -> Place | None:
        return (self.block, self.block.rect()) if part == "block" and self.block.isVisible() else None

    # what it shows

    def wants(self, state: State) -> Request | None:
        ran, site, chosen = state.ran, state.site, state.selection
        if ran is None or site is None:
            return None
        return CellRequest(
            run=ran.run, site=site.ref, head=chosen.head, query=chosen.query, key=chosen.key, target=self._target
        )

    def prints(self, state: State) -> Request | None:
        return self.wants(state)

    def answering(self, hidden: frozenset[Hide]) -> Sequence[Place]:
        """Of the score alone the steps that make it, and the list of all; the two vectors can be read."""
        if hidden & self.shows != {"score"}:
            return super().answering(hidden)
        return [(part, part.rect()) for part in (self.steps, self.meaning, self.row)]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc, where nothing else took it, goes out: to the matrices or whatever of the model was looked at before."""
        if event.key() == Qt.Key.Key_Escape:
            self.front_wanted.emit("flow")
        else:
            super().keyPressEvent(event)

    def about(self, state: State) -> About:
        return about(state, self._shown)

    def render_state(self, state: State, old: State | None) -> None:
        if old is not None and old.results.loaded is not state.results.loaded:
            self._target = None  # a token of another vocabulary
        view, ran = state.results.of(CellView), state.ran
        if view is None or ran is None:
            self.block.hide()
            self._shown = None
            self.empty.setText(_EMPTY if ran is None or ran.sites else _NO_CELLS)
            self.pages.setCurrentIndex(0)
            self.card.set_subtitle("")
            return
        site = site_of(ran, view.request.site)
        place = attention_sink(state)
        self.rests.setText("" if place is None else place.sentence)
        self.rests.setVisible(place is not None)
        self._render_block(state)
        if view is self._shown or view.request.run != ran.run or site is None:
            return  # the last cell stays until the new one is here
        self._shown = view
        self.pages.setCurrentIndex(1)
        self._show(view, ran, site)

    def _render_block(self, state: State) -> None:
        """The button that masks this cell; none for a cell that the model's own mask hides, nor in a textbook model."""
        loaded, chosen, view = state.results.loaded, state.selection, state.results.of(CellView)
        blocked = (chosen.query, chosen.key, False) in state.painted_cells
        hidden = view is not None and view.masked and not view.reason.startswith("painted")
        self.block.setVisible(loaded is not None and not loaded.info.textbook and (blocked or not hidden))
        self.block.setChecked(blocked)
        self.block.setText("Blocked" if blocked else "Block this cell")

    def _show(self, view: CellView, ran: Ran, site: Site) -> None:
        queries, keys = site_words(ran, site)
        query, key = queries[view.request.query], keys[view.request.key]
        self.card.set_subtitle(f"“{query}” looks at “{key}”")
        score, read = view.recurrent, query.partition(ARROW)[0]
        if score is None and view.additive is not None:
            say = partial(additive_sentence, view.additive)
            self.vectors.set_rows(additive_rows(view, view.additive, read, key), say)
            explained = explained_steps(view, site, query, key)
        elif score is None:
            self.vectors.set_vectors(view.q, view.k, view.products, read, key)
            explained = explained_steps(view, site, query, key)
        else:
            say = partial(recurrent_steps.dimension_sentence, score)
            self.vectors.set_rows(recurrent_steps.vector_rows(score, read, key), say)
            explained = recurrent_steps.recurrent_steps(view, score)
        self.values.set_rows(value_rows(view, key, "v" if score is None else "h"), partial(value_sentence, view.weight))
        self.row.set_headings(HEADINGS if score is None else recurrent_steps.HEADINGS)
        self.steps.set_steps([each.step for each in explained])
        self._meanings = tuple(each.meaning for each in explained)
        self._explain(self.steps.current)
        self._show_candidates(view)
        self.all_keys.setVisible(len(keys) > FEW)
        self.row.set_row(view.row_raw, view.row_scores, view.row_masked, view.row_weights, keys, view.request.key)
        self._query = query
        self._say_of_row()

    def _show_candidates(self, view: CellView) -> None:
        self.target_line.setVisible(view.effect is not None)
        self.reason.setVisible(view.effect is None)
        self.reason.setText(view.effect_note)
        if (view.candidates, view.target) == self._candidates:
            return
        self._candidates = (view.candidates, view.target)
        self.target.clear()
        for candidate in view.candidates:
            share = "" if isnan(candidate.probability) else f"   {percent_text(candidate.probability)}"
            self.target.addItem(f"{shortened(candidate.label)}{share}", candidate.id)
        if view.target is not None and self.target.findData(view.target) < 0:
            self.target.addItem(
                shortened(view.target_label), view.target
            )  # chosen elsewhere, and not among the likeliest here
        self.target.setCurrentIndex(self.target.findData(view.target))

    def _explain(self, step: int) -> None:
        """Say below the steps what the chosen one means; the steps get the whole height while none is chosen."""
        chosen = 0 <= step < len(self._meanings)
        text = self._meanings[step] if chosen else ""
        if text == self.meaning.text():
            return
        self.meaning.setText(text)
        self.meaning.setVisible(chosen)
        self.rows.activate()
        self.steps.show_current()  # the explanation may have come over it

    def render_hover(self, pointed: Pointed) -> None:
        here = self._shown is not None and pointed.query in (-1, self._shown.request.query)
        self.row.set_hover(pointed.key if here else -1)

    # what a person does

    def _choose_target(self, index: int) -> None:
        self._target = self.target.itemData(index)
        self._refresh()

    def _list_all(self, everything: bool) -> None:
        self.row.set_all(everything)
        self._say_of_row()

    def _say_of_row(self) -> None:
        if self._shown is not None:
            self.row_heading.setText(row_remark(self._shown, self._query, len(self.row.shown)))

    def _on_hovered(self, key: int) -> None:
        shown = self._shown
        self.hover.point(Pointed(query=shown.request.query, key=key) if shown is not None and key >= 0 else NOTHING)


def _dim(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "dim")
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def _line(left: QWidget, right: QWidget) -> QHBoxLayout:
    line = QHBoxLayout()
    line.setSpacing(8)
    line.addWidget(left, 1)
    line.addWidget(right)
    return line
