"""Where order comes from: the textbook's sinusoids, the open model's own positions, and what it makes of them."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from attention_explorer.colour_maps import sequential
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.positions.about import of_model, of_none, of_order, of_patches, of_waves
from attention_explorer.panels.positions.order_view import EXAMPLE, OrderView
from attention_explorer.panels.positions.patch_positions import PatchPositions
from attention_explorer.panels.positions.scheme_view import SchemeView
from attention_explorer.panels.positions.sinusoid_view import SinusoidView
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import PutIntervention, SelectQuery, SetText
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.choices_kept import number_choice
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.segments import Segments
from attention_models.protocol.interventions import Positions
from attention_models.protocol.order import ShuffleRequest, ShuffleView
from attention_models.protocol.positions import (
    PatchPositionsRequest,
    PatchPositionsView,
    PositionScheme,
    PositionsRequest,
    PositionsView,
)
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo, SeenPicture

_SINUSOIDS, _MODEL, _ORDER, _NOTHING, _PATCHES = range(5)
_NO_ATTENTION = (
    "The open model attends to nothing, so there is nothing that has to be told positions: it reads its text one token "
    "after the other, and the order is in its states."
)
_AS_TRAINED = Positions("shift", 0)


class PositionsPanel(Panel):
    api_version = 1
    name = "positions"
    title = "Positions"
    hint = "How a model knows the order of words, or the places of patches: waves, tables, rotations, biases, and none."
    shows = frozenset({"position", "vector", "width", "size"})
    reads = (
        "document.interventions",
        "document.view",
        "selection",
        "site",
        PositionsView,
        ShuffleView,
        PatchPositionsView,
    )

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return not info.textbook

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.chooser = Segments(
            [
                ("Sinusoids", "The waves of the textbook, without any model"),
                ("This model", "How the open model tells positions apart"),
                ("Order", "Shuffle the words: does their order matter?"),
            ],
            "What about positions",
            wraps=True,
        )
        self.sinusoids, self.scheme, self.order = SinusoidView(), SchemeView(), OrderView()
        self.pages = QStackedWidget()
        self.nothing = wrapped(_NO_ATTENTION, "dim")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.patches = PatchPositions()
        self.patches.grid.patch_selected.connect(self._on_patch)
        self.patches.grid.hovered.connect(self._on_patch_hovered)
        for page in (self.sinusoids, self.scheme, self.order, self.nothing, self.patches):
            self.pages.addWidget(page)
        body = QWidget()
        inner = QVBoxLayout(body)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.addWidget(self.chooser)
        inner.addWidget(self.pages, 1)
        self.card = Card(self.title)
        self.card.set_content(body)
        self.fill(self.card)
        self._seed = 0
        self._page = _SINUSOIDS
        self.chooser.chosen.connect(self.show_page)
        self.keep("page", number_choice(lambda: self._page, self.show_page, range(3)))
        self.keep("order", number_choice(lambda: self._seed, self._reorder, range(1_000_000)))
        waves = self.sinusoids
        for name, widget in (
            ("positions", waves.positions),
            ("width", waves.width_box),
            ("base", waves.base),
            ("compared", waves.kind),
        ):
            self.keep(name, widget)
        self.order.shuffle_asked.connect(lambda: self._reorder(self._seed + 1))
        self.order.swap_asked.connect(lambda: self._reorder(0))
        self.order.example_asked.connect(self._on_example)
        self.order.off_toggled.connect(lambda on: self._put(Positions("off") if on else _AS_TRAINED))
        self.order.shift_chosen.connect(lambda by: self._put(Positions("shift", by)))

    def figures(self) -> Iterable[QWidget]:
        return (self.scheme, self.order, self.patches)  # the sinusoids are of no model

    def wants(self, state: State) -> Request | None:
        ran, site, page = state.ran, state.site, self._page
        if ran is None or site is None:
            return None
        if ran.seen is not None:
            return PatchPositionsRequest(run=ran.run)
        if page == _MODEL:
            selection = state.selection
            return PositionsRequest(
                run=ran.run, site=site.ref, head=selection.head, query=selection.query, key=selection.key
            )
        if page == _ORDER:
            return ShuffleRequest(run=ran.run, seed=self._seed)
        return None

    def prints(self, state: State) -> Request | None:
        wanted = self.wants(state)
        return wanted if isinstance(wanted, PositionsRequest) else None

    def render_state(self, state: State, old: State | None) -> None:
        self._turn(state)
        if state.ran is not None and state.ran.seen is not None:
            loaded = state.results.loaded
            self.card.set_subtitle(f"{loaded.info.name}: of the patches" if loaded is not None else "")
            self._render_patches(state, state.ran.seen)
            return
        positions, shuffle = state.results.of(PositionsView), state.results.of(ShuffleView)
        if old is None or positions is not old.results.of(PositionsView):
            self.scheme.show_view(positions)
        if old is None or shuffle is not old.results.of(ShuffleView):
            self.order.show_view(shuffle)
        scheme = self._scheme(state)
        loaded = state.results.loaded
        named = "" if scheme is None or loaded is None else f"{loaded.info.name}: {scheme.name}"
        self.card.set_subtitle(named)
        self._render_edits(state, scheme)

    def about(self, state: State) -> About:
        page, results = self.pages.currentIndex(), state.results
        if page == _PATCHES and state.ran is not None and state.ran.seen is not None:
            return of_patches(state, results.of(PatchPositionsView), state.ran.seen)
        if page == _MODEL:
            return of_model(state, results.of(PositionsView))
        if page == _ORDER:
            return of_order(state, results.of(ShuffleView))
        if page == _NOTHING:
            return of_none(_NO_ATTENTION)
        waves = self.sinusoids
        return of_waves(waves.position, waves.width_shown, waves.wavelengths)

    def show_page(self, index: int) -> None:
        """Sinusoids, this model, or order."""
        self.chooser.choose(index)
        self._page = index
        self._turn(self.session.state)
        if self.isVisible():
            self._refresh()

    def _render_patches(self, state: State, seen: SeenPicture) -> None:
        self.patches.show_view(state.results.of(PatchPositionsView), sequential(state.document.view.colour_map))
        selection = state.selection
        self.patches.grid.set_selection(selection.query - seen.first, selection.key - seen.first)

    def _on_patch(self, patch: int) -> None:
        ran = self.session.state.ran
        if ran is not None and ran.seen is not None:
            self.dispatch(SelectQuery(ran.seen.first + patch))

    def _on_patch_hovered(self, patch: int, other: int) -> None:
        ran = self.session.state.ran
        if ran is not None and ran.seen is not None:
            first = ran.seen.first
            self.hover.point(NOTHING if patch < 0 else Pointed(query=first + patch, key=first + other))

    def _turn(self, state: State) -> None:
        looks = state.ran is not None and state.ran.seen is not None
        self.chooser.setVisible(not looks)
        if looks:
            self.pages.setCurrentIndex(_PATCHES)
            return
        nothing = state.ran is not None and not state.ran.sites and self._page != _SINUSOIDS
        self.pages.setCurrentIndex(_NOTHING if nothing else self._page)

    def _render_edits(self, state: State, scheme: PositionScheme | None) -> None:
        values = [listed.value for listed in state.document.interventions if listed.on]
        mode = next((value for value in values if isinstance(value, Positions)), _AS_TRAINED)
        tokens = 0 if state.ran is None else len(state.ran.tokens)
        if scheme is None:
            self.order.show_edits(mode.mode == "off", mode.by, tokens, "", "Run a text first.", None)
            return
        size = None if scheme.table is None else len(scheme.table)
        self.order.show_edits(mode.mode == "off", mode.by, tokens, scheme.off_note, scheme.shift_note, size)

    @staticmethod
    def _scheme(state: State) -> PositionScheme | None:
        for view in (state.results.of(ShuffleView), state.results.of(PositionsView)):
            if view is not None:
                return view.scheme
        return None

    def _reorder(self, seed: int) -> None:
        self._seed = seed
        if self.isVisible():
            self._refresh()

    def _on_example(self) -> None:
        self._seed = 0
        self.dispatch(SetText(EXAMPLE))
        self._refresh()

    def _put(self, value: Positions) -> None:
        self.dispatch(PutIntervention(value))
