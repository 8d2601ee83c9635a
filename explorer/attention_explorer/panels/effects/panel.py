"""Does it matter? Heads ablated, layers read early, a logit as a sum, activations patched, tokens weighed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from attention_explorer.look.colour_maps import sequential
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.effects.controls import EffectsControls
from attention_explorer.panels.effects.pages import LEGENDS, grid_of, head_at, place_of, rank_figure, sentences_of
from attention_explorer.panels.effects.questions import (
    HEADS,
    LENS,
    PATCH,
    SUM,
    TOKENS,
    TYPE,
    VIEWS,
    WAITING,
    WORDS,
    View,
    is_of,
    layer_name,
    missing_word,
    plain,
    request_of,
    same_heads,
    still_wanted,
    weights_request,
    why_no_weights,
    why_not,
    words_request,
)
from attention_explorer.panels.effects.value_grid import Grid, ValueGrid
from attention_explorer.panels.effects.words_page import WordsPage
from attention_explorer.panels.selected_head import name_of_head, predicting_position, site_words
from attention_explorer.session.effects_choices import EPSILONS, EffectsChoices
from attention_explorer.session.hidden import WEIGHTS
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import AskEffects, PutIntervention, SelectHead, SelectKey, SelectQuery
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.callout import CodeButton
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.scroll_areas import scroll_to
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.ablation import Ablation, head_skip
from attention_models.protocol.effects import (
    BY_POSITION,
    AdversarialAttentionRequest,
    AdversarialAttentionView,
    AttributionView,
    EffectsRequest,
    EffectsView,
    ExplanationView,
    HeadEffectRequest,
    InContextAtRequest,
    InContextRequest,
    InContextView,
    LensAtRequest,
    LensRequest,
    LensView,
    Moved,
    PatchColumnRequest,
    PatchRequest,
    PatchView,
    Rerun,
    Scope,
)
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo, SiteRef

# What is drawn and said of other weights that give the same answer, and of those that give another. Pure.


LIMITS = (
    "Figures are those of runs with these weights in the row. Such weights are searched for, not learned, and of this "
    "text alone; where a head hardly acts, any do (Jain and Wallace 2019, Wiegreffe and Pinter 2019)."
)


def weights_grid(view: AdversarialAttentionView, site: SiteRef, head: int, keys: Sequence[str]) -> Grid:
    """A strip for the weights as they are and one for each that was found, of one head, all in one scale."""
    place = same_heads(view, site, head)
    strips = [("as it is", view.observed[place]), ("same answer", view.same.weights[place])]
    if view.blocked is not None:
        strips.append(("one key blocked", view.blocked.rerun.weights[place]))
    if view.moved is not None:
        strips.append(("least moved", view.moved.rerun.weights[place]))
    values = np.where(view.visible[place], np.stack([row for _, row in strips]), np.nan)
    high = float(np.nanmax(values, initial=0.0)) or 1.0
    return Grid(
        values=values,
        row_labels=tuple(name for name, _ in strips),
        column_labels=tuple(keys),
        low=-high,
        high=high,
        words=tuple(tuple("" if math.isnan(v) else _share(v) for v in row) for row in values.tolist()),
        tips=tuple(
            tuple(f"{name}: {percent_text(v)} on “{key}”" for key, v in zip(keys, row, strict=True))
            for (name, _), row in zip(strips, values.tolist(), strict=True)
        ),
        least_width=34.0,
        has_numbers=True,
    )


def _share(value: float) -> str:
    """ ".31"; "" for what rounds to nothing."""
    text = f"{value:.2f}"
    return "" if text == "0.00" else text.removeprefix("0")


def weights_sentences(
    view: AdversarialAttentionView, keys: Sequence[str], unit: Unit, sites: Sequence[SiteRef]
) -> tuple[str, str]:
    """What was found that leaves the answer, and what changes it; while it is searched how far it is."""
    return same_sentence(view, unit, sites), change_sentence(view, keys)


def same_sentence(view: AdversarialAttentionView, unit: Unit, sites: Sequence[SiteRef]) -> str:
    most, far = from_nats(math.log(2), unit), from_nats(float(view.same.divergence.mean()), unit)
    of = whose(view, sites)
    if far == 0:
        return f"No other weights {of} were found yet." if not view.searched else f"No other weights {of} were found."
    epsilon = f"{view.request.epsilon:g}"
    mean = ", the mean over heads" if len(view.heads) > 1 else ""
    coming = "" if view.searched else " So far."
    return (
        f"Other weights {of}, same answer: Jensen-Shannon divergence {value_text(far)} of at most "
        f"{value_text(most)} {unit}{mean}; the answer moved by {value_text(view.same.distance)} in total variation "
        f"distance, where {epsilon} was allowed: {answers(view, view.same)}.{coming}"
    )


def change_sentence(view: AdversarialAttentionView, keys: Sequence[str]) -> str:
    parts = []
    if view.blocked is not None:
        parts.append(
            f"Without “{keys[view.blocked.source]}” ({percent_text(view.blocked.mass)} of the weight): "
            f"{_changed(view, view.blocked)}."
        )
    elif view.blocks_done:
        parts.append("No key blocked by itself makes another answer likeliest.")
    if view.moved is not None:
        target = view.moved.target
        assert target is not None
        parts.append(
            f"Least move: {percent_text(view.moved.mass)} of the weight from “{keys[view.moved.source]}” to "
            f"“{keys[target]}”: {_changed(view, view.moved)}."
        )
    elif view.moves_done:
        some = f" of {view.moves:,} (those from the keys with the most weight)" if view.tried < view.moves else ""
        also = "Nor does moving" if view.blocked is None else "No other answer comes of moving"
        parts.append(f"{also} one key's weight to another: {view.tried:,} moves{some} were tried.")
    if not view.moves_done and view.searched:
        parts.append(f"{view.done:.0%} done.")
    return " ".join(parts)


def _changed(view: AdversarialAttentionView, change: Moved) -> str:
    best = change.rerun.best
    return f"“{plain(best.label)}” {percent_text(best.probability)} is likeliest, {answers(view, change.rerun)}"


def answers(view: AdversarialAttentionView, rerun: Rerun) -> str:
    """What was likeliest, before and after: "“Tom” 67.9 % → 67.6 %"."""
    before, after = percent_text(view.before.probability), percent_text(rerun.former.probability)
    return f"“{plain(view.before.label)}” {before} → {after}"


def whose(view: AdversarialAttentionView, sites: Sequence[SiteRef]) -> str:
    """ "of layer 5, head 5", "of all 8 heads of layer 5", "of all 64 heads", "of all 32 heads of cross-attention"."""
    site, head = view.heads[0]
    if view.request.scope == "head":
        return f"of {name_of_head(site, head, sites)}"
    of = f" of {layer_name(site, sites)}" if view.request.scope == "layer" else ""
    if view.request.scope == "stack" and len({each.stack for each in sites}) > 1:
        of = " of cross-attention" if site.stack == "cross" else f" of the {site.stack}"
    return f"of all {len(view.heads)} heads{of}"


# Below the accounts of tokens: a search for other weights that give the same answer, and its strips.


SCOPES: tuple[tuple[Scope, str], ...] = (
    ("head", "the selected head"),
    ("layer", "all heads of its layer"),
    ("stack", "all heads of all layers"),
)
_TIP = (
    "Search for weights as unlike these as can be that leave the answer as it is, and for the least change that does "
    "not. Takes some seconds; again to stop"
)


class AdversarialAttentionPart(QWidget):
    asked = Signal(object)
    """Another scope or bound, as fields of `EffectsChoices`."""
    switched = Signal(bool)
    """A person began the search, or stopped it."""
    script_wanted = Signal()
    """What was found is wanted as PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.scope = WholeListBox()
        for value, text in SCOPES:
            self.scope.addItem(text, value)
        self.scope.setMinimumContentsLength(14)
        self.scope.setAccessibleName("Whose weights are changed")
        self.scope.setToolTip("Whose weights are changed, in the row that the answer is read at")
        self.scope.activated.connect(lambda place: self.asked.emit({"scope": self.scope.itemData(place)}))
        self.epsilon = WholeListBox()
        for epsilon in EPSILONS:
            self.epsilon.addItem(f"{epsilon:g}", epsilon)
        self.epsilon.setMinimumContentsLength(5)
        self.epsilon.setAccessibleName("How far the answer may move")
        self.epsilon.setToolTip("How far the answer may move, in total variation distance, which goes from 0 to 1")
        self.epsilon.activated.connect(lambda place: self.asked.emit({"epsilon": self.epsilon.itemData(place)}))
        self.search = QPushButton("Search other weights")
        self.search.setCheckable(True)
        self.search.setToolTip(_TIP)
        self.search.clicked.connect(lambda on: self.switched.emit(on))
        self.code = CodeButton("Other weights")
        self.code.offer(True)
        self.code.setToolTip("Show as PyTorch: these weights put into the model")
        self.code.clicked.connect(lambda: self.script_wanted.emit())
        self.same, self.changed, self.limits = wrapped(), wrapped(), wrapped(role="dim")
        self.grid = ValueGrid("Other weights")
        self.area = QScrollArea()
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setWidget(self.grid)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        row = QWidget()
        line = FlowLayout(row, gap=6)
        for part in (self.search, QLabel("of"), self.scope, QLabel("answer within"), self.epsilon, self.code):
            line.addWidget(part)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(4)
        for each in (row, self.same, self.changed, self.area, self.limits):
            column.addWidget(each)

    def show_choices(self, asked: EffectsChoices, searching: bool, is_running: bool, why: str) -> None:
        """`why` says why nothing can be searched for; "" where something can.

        Where a search `is_running` the button stops it; one that has ended is begun anew for another head.
        """
        self.search.setText("Stop the search" if is_running and not why else "Search other weights")
        self.scope.setCurrentIndex(self.scope.findData(asked.scope))
        place = self.epsilon.findData(asked.epsilon)
        if place < 0:  # of a file
            self.epsilon.addItem(f"{asked.epsilon:g}", asked.epsilon)
            place = self.epsilon.count() - 1
        self.epsilon.setCurrentIndex(place)
        for box in (self.scope, self.epsilon, self.search):
            box.setEnabled(not why)
        self.search.setChecked(searching and not why)
        if why:
            self.show_found(None, why, "", "")

    def show_found(self, grid: Grid | None, same: str, changed: str, limits: str, has_other: bool = False) -> None:
        """`has_other`: whether there are other weights among them."""
        self.code.setVisible(has_other)
        for label, text in ((self.same, same), (self.changed, changed), (self.limits, limits)):
            label.setText(text)
            label.setVisible(bool(text))
        self.area.setVisible(grid is not None)
        self.grid.show_grid(grid)
        if grid is not None:
            bar = self.area.horizontalScrollBar().sizeHint().height()
            self.area.setFixedHeight(self.grid.minimumSizeHint().height() + bar)


_WHAT: dict[int, tuple[str, ...]] = {
    HEADS: (
        "What a head does is seen where it is taken away: its output is set to 0 before it is multiplied by W_O, and "
        "the model is run again. Blue: without it what is measured falls. Red: it rises.",
        "A click on a cell selects the head everywhere; the right button takes it out of the run, or holds it at its "
        "mean.",
    ),
    LENS: (
        "The stream after every layer, read by the model's own last norm and output head: what it would say if it "
        "ended there. The curve is the rank of one token at the selected position, 1 the likeliest, on a logarithmic "
        "axis.",
    ),
    SUM: (
        "A logit is a sum: of what each head, each feed-forward network and the embedding wrote into the stream, read "
        "along the direction of the token, with the last norm's divisor held.",
    ),
    PATCH: (
        "A part of the run of another text is copied into this one, one place at a time. Red: the answer goes towards "
        "the other text's. Of texts of different length it must be said which token stands for which.",
    ),
    TOKENS: (
        "Other weights: those furthest from the row of a head that leave the answer as it is, and the least weight "
        "whose move gives another. Each was put into the row and the model run with it; the figures are that run's.",
        "If quite other weights give the same answer, the row alone does not explain it; but they are searched for, "
        "not learned (Wiegreffe and Pinter 2019).",
    ),
    WORDS: (
        "The same word has one embedding, and another vector after every layer that has looked at its text. The cosine "
        "says how alike the two are; any two tokens are alike too, which is the line to compare it with.",
        "In two dimensions only what the first two principal components say is seen: how much that is stands at the "
        "axes.",
    ),
}
_TRY = {
    HEADS: "Try: choose a second answer after “less”, the next likeliest say, and press Strongest: the head that "
    "decides between them.",
    LENS: "Try: choose another token after “Rank of”, and see in which layer it is overtaken.",
    SUM: "Try: choose a second answer after “less”: which parts are for the one and which for the other.",
    PATCH: "Try: the same text with one name changed.",
    TOKENS: "Try: press “Search other weights”, then the same with all heads of the layer.",
    WORDS: "Try: “In two dimensions”, and drag the slider from the embedding to the last layer.",
}


def about(page: int, said: Sequence[str]) -> About:
    """`said` is what the page says just now, with its numbers."""
    return About.of((*_WHAT[page], *said), _TRY[page])


def printed(page: int, state: State, layer: int) -> Request | None:
    """None where the page has no figures yet. `layer` is that of the page Words, 0 the embedding."""
    if state.ran is None or why_not(page, state):
        return None
    site, head, position = state.selection.site, state.selection.head, predicting_position(state, state.ran)
    match request_of(page, state):
        case EffectsRequest(run=run, aim=aim):
            return None if site is None else HeadEffectRequest(run=run, aim=aim, site=site, head=head)
        case LensRequest(run=run, target=target):
            return LensAtRequest(run=run, target=target, position=position)
        case PatchRequest(run=run, other=other, kind=kind, align=align, aim=aim):
            if kind in BY_POSITION:
                return PatchColumnRequest(run=run, other=other, kind=kind, align=align, aim=aim, column=position)
            return PatchColumnRequest(run=run, other=other, kind=kind, align=align, aim=aim, site=site, column=head)
        case InContextRequest(texts=texts, words=words, starts=starts, interventions=interventions):
            return InContextAtRequest(texts=texts, words=words, starts=starts, interventions=interventions, layer=layer)
        case other_page:
            return other_page


_PAGES = (
    ("Heads", "Zero every head in turn: what changes without it"),
    ("Lens", "What the model would say if it ended after each layer"),
    ("Sum", "The logit as the sum of what every part wrote"),
    ("Patch", "Copy parts of another text's run into this one"),
    ("Tokens", "How much each token matters, by attention and by other accounts; other weights, same answer"),
    ("Words", "A word in two texts: how alike the model's vectors of it are"),
)


_LEAST_HEIGHT = 120
"""Pixels of the cells where they scroll by themselves."""


class EffectsPanel(Panel):
    api_version = 1
    name = "effects"
    title = "Effects"
    hint = "What each head, layer and token does to what the model says: taken away, read early, added up, patched."
    shows = WEIGHTS | {"next", "gradient", "effect", "value", "vector", "size"}
    reads = (
        "document.effects",
        "document.interventions",
        "document.view",
        "selection",
        "site",
        "notice",
        EffectsView,
        LensView,
        AttributionView,
        PatchView,
        ExplanationView,
        InContextView,
        AdversarialAttentionView,
    )

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return not info.textbook

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.pages = Segments(_PAGES, "What is shown", wraps=True)
        self.pages.chosen.connect(lambda _page: self._page_changed())
        self.controls = EffectsControls()
        self.controls.asked.connect(self._ask)
        self.controls.strongest.clicked.connect(self._select_strongest)
        self.controls.without.clicked.connect(lambda on: self._switch(on))
        self.sentence = wrapped()
        self.change = wrapped(role="dim")
        self.grid = ValueGrid("Effects")
        self.grid.set_empty_text(WAITING)
        self.grid.cell_selected.connect(self._on_chosen)
        self.grid.hovered.connect(self._on_hovered)
        self.grid.menu_wanted.connect(self._on_menu)
        self.area = QScrollArea()
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside takes the keyboard, and shows it
        self.area.setWidget(self.grid)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.ranks = Plot("Rank by layer", 160)
        self.legend = wrapped(role="dim")
        self.weights = AdversarialAttentionPart()
        self.weights.asked.connect(self._ask)
        self.weights.switched.connect(self._search)
        self.weights.script_wanted.connect(self._show_weights_script)
        self.weights.grid.cell_selected.connect(lambda _row, key: self.dispatch(SelectKey(key)))
        self.words = WordsPage()
        self.words.asked.connect(self._ask)
        parts, body = QWidget(), QWidget()
        column = _column(parts, self.controls.aim_row, self.controls.patch_row, self.controls.lens_row)
        for part in (self.sentence, self.controls.align_row, self.change, self.controls.head_row, self.ranks):
            column.addWidget(part)
        column.addWidget(self.area, 1)
        column.addWidget(self.weights)
        column.addWidget(self.legend)
        self.page_area, self.words_area = scrolling(parts), scrolling(self.words)
        whole = _column(body, self.pages)
        whole.addWidget(self.page_area, 1)
        whole.addWidget(self.words_area, 1)
        self.card = Card("Does it matter?")
        self.card.set_content(body)
        self.fill(self.card)
        self._searches = False  # whether other weights are searched for
        self._revealed = (-1, -1)
        self._drawn: tuple[View, Unit, str] | None = None  # what the cells show, and how
        self.keep("page", self.pages)
        self.keep("picture of words", self.words.pictures)
        self.keep("layer of words", self.words.slider)

    # ----------------------------------------------------------------- what it asks for

    def wants(self, state: State) -> Request | None:
        if state.ran is None:
            return None
        page = self.pages.current
        wanted = None if why_not(page, state) else request_of(page, state)
        if wanted is not None:
            kind = InContextView if page == WORDS else VIEWS[page]
            wanted = still_wanted(wanted, state.results.of(kind))
        if wanted is not None or page != TOKENS or not self._searches or why_no_weights(state):
            return wanted
        searched = weights_request(state)  # once the accounts are there
        return None if searched is None else still_wanted(searched, state.results.of(AdversarialAttentionView))

    def prints(self, state: State) -> Request | None:
        view = self.words.view
        if self.pages.current == WORDS and (view is None or view.request != words_request(state)):
            return None  # it is not known yet how many layers there are
        return printed(self.pages.current, state, self.words.slider.value())

    # ----------------------------------------------------------------- what it shows

    def about(self, state: State) -> About:
        page = self.pages.current
        if page == WORDS:
            return about(page, (self.words.sentence.text().strip(),))
        if page == TOKENS and self.weights.grid.grid is not None:
            return about(page, (self.weights.same.text(), self.weights.changed.text()))
        return about(page, (self.sentence.text(),))

    def render_state(self, state: State, old: State | None) -> None:
        page = self.pages.current
        why = why_not(page, state)
        self.page_area.setVisible(page != WORDS)
        self.words_area.setVisible(page == WORDS)
        if page == WORDS:
            self._render_words(state, why)
            return
        self.controls.show_state(state, page, why)
        self._render_head_row(state)
        has_part = page == TOKENS and (not why or why_no_weights(state) != why)  # what is said is said once
        self.weights.setVisible(has_part)
        if has_part:
            self._render_weights(state)
        view = state.results.of(VIEWS[page])
        wanted = None if state.ran is None else request_of(page, state)
        if why or state.ran is None or view is None or not is_of(view, wanted):
            if why or view is None or (page == PATCH and not state.document.effects.other.strip()):
                self._show_nothing(why or (TYPE if page == PATCH else WAITING))
            return  # else what is there stays until the new answer comes
        self.legend.setText(LEGENDS[page])
        looks, site = state.document.view, state.selection.site
        cell = None if site is None else (site, state.selection.head)
        position = predicting_position(state, state.ran)
        self._say(*sentences_of(view, state.ran, looks.unit, cell, position))
        if (view, looks.unit, looks.colour_map) != self._drawn:  # a selection changes no cell
            self._drawn = (view, looks.unit, looks.colour_map)
            self.grid.set_empty_text("")  # the sentence says why there is nothing
            self.grid.show_grid(grid_of(view, state.ran, looks.unit, sequential(looks.colour_map)))
        self._give_height(page)
        self.controls.show_view(view, position)
        figure = rank_figure(view, position) if isinstance(view, LensView) else None
        self.ranks.setVisible(figure is not None)
        if figure is not None:
            self.ranks.set_figure(figure)
        self.area.show()
        self.legend.setVisible(self.grid.grid is not None)
        self._render_selection(state)

    def _give_height(self, page: int) -> None:
        """Cells that share their page with something else are whole; it is the page that scrolls."""
        bar = self.area.horizontalScrollBar().sizeHint().height()
        whole = page in (LENS, TOKENS) and self.grid.grid is not None
        self.area.setMinimumHeight(self.grid.minimumSizeHint().height() + bar if whole else _LEAST_HEIGHT)

    def _show_nothing(self, why: str) -> None:
        """The sentence stands in the place of the cells, and nowhere else."""
        self._say("", "")
        self.grid.set_empty_text(why)
        self.grid.show_grid(None)
        self._drawn = None
        self.area.setMinimumHeight(_LEAST_HEIGHT)
        for part in (self.legend, self.ranks, self.controls.align_row):
            part.hide()

    def _render_words(self, state: State, why: str) -> None:
        asked, view = state.document.effects, state.results.of(InContextView)
        self.words.show_choices(asked)
        missing = why or missing_word(asked)
        if state.notice is not None and state.notice.lane == InContextRequest.lane:
            self.words.show_view(None, " ", sequential(state.document.view.colour_map))  # the window says why
            return
        wanted = None if state.ran is None else words_request(state)
        if missing or view is None or is_of(view, wanted):
            self.words.show_view(None if missing else view, missing, sequential(state.document.view.colour_map))

    def _render_weights(self, state: State) -> None:
        why = why_no_weights(state)
        view, ran, site = state.results.of(AdversarialAttentionView), state.ran, state.site
        if view is not None and (ran is None or not is_of(view, weights_request(state))):
            view = None
        coming = self._searches and not self._is_refused(state) and (view is None or view.done < 1)
        self.weights.show_choices(state.document.effects, self._searches, coming, why)
        if why or ran is None or site is None:
            return
        if view is None:
            self.weights.show_found(None, "Searching." if coming else "", "", "")
            return
        keys, unit = site_words(ran, site)[1], state.document.view.unit
        grid = weights_grid(view, site.ref, state.selection.head, keys)
        sites = [each.ref for each in ran.sites]
        sentences = weights_sentences(view, keys, unit, sites)
        self.weights.show_found(grid, *sentences, LIMITS, bool(view.found))

    def _render_selection(self, state: State) -> None:
        page, ran = self.pages.current, state.ran
        view = state.results.of(VIEWS[page])
        if isinstance(view, EffectsView):
            self.grid.set_selection(*place_of(view, state.selection.site, state.selection.head))
        elif isinstance(view, AttributionView):
            rows = [site.site for site in view.sites]
            site = state.selection.site
            self.grid.set_selection(rows.index(site) if site in rows else -1, state.selection.head)
        elif ran is not None and self.grid.grid is not None and page == LENS:
            self.grid.set_selection(0, predicting_position(state, ran))
            if self.grid.selection != self._revealed:
                self._revealed = self.grid.selection
                QTimer.singleShot(0, self, self._reveal)  # once the cells are laid out
        else:
            self.grid.set_selection(-1, -1)

    def _reveal(self) -> None:
        """Scroll to the selected position; whoever scrolls on is left alone until the selection moves."""
        if self.grid.grid is not None:
            cell = self.grid.cell_rect(*self._revealed).center().toPoint()
            scroll_to(self.area, cell, 60, 0)

    def _is_refused(self, state: State) -> bool:
        """Whether the window says why nothing can be searched for."""
        return state.notice is not None and state.notice.lane == AdversarialAttentionRequest.lane

    def _render_head_row(self, state: State) -> None:
        site, loaded, view = state.selection.site, state.results.loaded, state.results.of(EffectsView)
        largest = None if view is None or state.ran is None else view.largest
        self.controls.strongest.setEnabled(
            largest is not None and view is not None and is_of(view, request_of(HEADS, state))
        )
        self.controls.without.setEnabled(site is not None and loaded is not None)
        is_off = False
        if site is not None and loaded is not None:
            on = [item.value for item in state.document.interventions if item.on]
            skip = head_skip(on, site, state.selection.head, loaded.info.predicting_stack)
            is_off = skip is not None and skip.part == "head"
        self.controls.without.setChecked(is_off)

    def _say(self, sentence: str, change: str) -> None:
        self.sentence.setText(sentence)
        self.sentence.setVisible(bool(sentence))
        self.change.setText(change)
        self.change.setVisible(bool(change))

    def render_hover(self, pointed: Pointed) -> None:
        view = self.session.state.results.of(EffectsView)
        if self.pages.current == HEADS and view is not None:
            self.grid.set_hover(*place_of(view, pointed.site, pointed.head))

    # ----------------------------------------------------------------- what is pressed

    def _page_changed(self) -> None:
        self._revealed = (-1, -1)
        self._render_again()

    def _render_again(self) -> None:
        self._rendered = None  # what is chosen here is no part of the state
        self.attempt(self._refresh)

    def _ask(self, changes: dict[str, Any]) -> None:
        """Fields of `EffectsChoices` that a person changed."""
        self._revealed = (-1, -1)
        self.dispatch(AskEffects(replace(self.session.state.document.effects, **changes)))

    def _search(self, on: bool) -> None:
        self._searches = on
        if not on:
            self.session.call_off(AdversarialAttentionRequest.lane)
        self._render_again()

    def _show_weights_script(self) -> None:
        request = weights_request(self.session.state)
        if request is not None:
            self.script_wanted.emit(request)

    def _head_of(self, row: int, column: int) -> tuple[SiteRef, int] | None:
        page = self.pages.current
        view = None if page == WORDS else self.session.state.results.of(VIEWS[page])
        if isinstance(view, EffectsView):
            return head_at(view, row, column)
        if isinstance(view, AttributionView) and row < len(view.sites) and column < len(view.sites[row].heads):
            return view.sites[row].site, column
        if isinstance(view, PatchView) and view.request.kind not in BY_POSITION and row < len(view.rows):
            return view.rows[row], column
        return None

    def _on_chosen(self, row: int, column: int) -> None:
        head = self._head_of(row, column)
        if head is not None:
            self.dispatch(SelectHead(*head))
        elif self.pages.current in (LENS, PATCH, TOKENS):
            self.dispatch(SelectQuery(column))

    def _on_hovered(self, row: int, column: int) -> None:
        head = None if row < 0 else self._head_of(row, column)
        self.hover.point(NOTHING if head is None else Pointed(site=head[0], head=head[1]))

    def _on_menu(self, row: int, column: int, where: QPoint) -> None:
        head = self._head_of(row, column)
        if head is not None:
            self.open_head_menu(*head, where)

    def _select_strongest(self) -> None:
        view = self.session.state.results.of(EffectsView)
        largest = None if view is None else view.largest
        if largest is not None:
            self.dispatch(SelectHead(largest[0], largest[1]))

    def _switch(self, off: bool) -> None:
        site = self.session.state.selection.site
        if site is not None:
            self.dispatch(PutIntervention(Ablation("head", site, self.session.state.selection.head, on=not off)))


def _column(parent: QWidget, *parts: QWidget) -> QVBoxLayout:
    column = QVBoxLayout(parent)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(6)
    for part in parts:
        column.addWidget(part)
    return column
