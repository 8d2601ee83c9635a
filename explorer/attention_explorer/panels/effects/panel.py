"""Does it matter? Heads ablated, layers read early, a logit as a sum, activations patched, tokens weighed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from attention_explorer.colour_maps import sequential
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.effects.about import about
from attention_explorer.panels.effects.adversarial_attention_part import AdversarialAttentionPart
from attention_explorer.panels.effects.controls import EffectsControls
from attention_explorer.panels.effects.lens_shown import rank_figure
from attention_explorer.panels.effects.pages import LEGENDS, grid_of, head_at, place_of, sentences_of
from attention_explorer.panels.effects.printed import printed
from attention_explorer.panels.effects.questions import (
    HEADS,
    LENS,
    PATCH,
    TOKENS,
    TYPE,
    VIEWS,
    WAITING,
    WORDS,
    View,
    is_of,
    missing_word,
    request_of,
    still_wanted,
    weights_request,
    why_no_weights,
    why_not,
    words_request,
)
from attention_explorer.panels.effects.value_grid import ValueGrid
from attention_explorer.panels.effects.weights_shown import LIMITS, weights_grid, weights_sentences
from attention_explorer.panels.effects.words_page import WordsPage
from attention_explorer.panels.selected_head import predicting_position, site_words
from attention_explorer.session.hidden import WEIGHTS
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import AskEffects, PutIntervention, SelectHead, SelectKey, SelectQuery
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.in_sight import scroll_to
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.segments import Segments
from attention_models.protocol.ablation import Ablation, head_skip
from attention_models.protocol.adversarial_attention import AdversarialAttentionRequest, AdversarialAttentionView
from attention_models.protocol.attribution import AttributionView
from attention_models.protocol.effects import EffectsView
from attention_models.protocol.explanation import ExplanationView
from attention_models.protocol.in_context import InContextRequest, InContextView
from attention_models.protocol.information import Unit
from attention_models.protocol.lens import LensView
from attention_models.protocol.patching import BY_POSITION, PatchView
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo, SiteRef

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
