"""Where order comes from: the textbook's sinusoids, the open model's own positions, and what it makes of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from attention_explorer.look.colour_maps import ColourTable, sequential
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.positions.order_map import Measured, OrderMap, distance_text
from attention_explorer.panels.positions.patch_similarity import PatchSimilarity
from attention_explorer.panels.positions.scheme_view import SchemeView
from attention_explorer.panels.positions.sections import Page, flow, heading, sentence
from attention_explorer.panels.positions.sinusoid_view import SinusoidView
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import PutIntervention, SelectQuery, SetText
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.choices_kept import number_choice
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.number_field import WholeBox
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.segments import Segments
from attention_models.protocol.interventions import Positions
from attention_models.protocol.positions import (
    PatchPositionsRequest,
    PatchPositionsView,
    PositionScheme,
    PositionsRequest,
    PositionsView,
    ShuffleRequest,
    ShuffleView,
)
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo, SeenPicture

# Does order matter? The same words in another order, with positions and without, and what the model makes of it.


EXAMPLE = "dog bites man"
_FARTHEST = 10_000  # of a shift in models whose positions have no end
ROUNDING = 1e-3  # logits of ten or more, in float32, agree to about 1e-5; what order does is a thousand times that

_INTRO = (
    "The words change places, and each token's output is compared with what the same token gave before. "
    "A model that sees a set of words, not a sequence, would give the very same."
)


class OrderView(Page):
    """Emits what the person wants; `show_view` and `show_edits` tell it what is."""

    shuffle_asked = Signal()
    swap_asked = Signal()
    example_asked = Signal()
    off_toggled = Signal(bool)
    shift_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Does order matter?", parent)
        self.shuffle = QPushButton("Shuffle again")
        self.shuffle.setToolTip("Another order of the words")
        self.shuffle.clicked.connect(self.shuffle_asked)
        self.swap = QPushButton("Swap ends")
        self.swap.setToolTip("The first word and the last change places")
        self.swap.clicked.connect(self.swap_asked)
        self.example = QPushButton("Dog bites man")
        self.example.setToolTip(f"Put “{EXAMPLE}” into the input, and read it as “man bites dog”")
        self.example.clicked.connect(self.example_asked)
        self.verdict = sentence(role="title")
        self.because = sentence()
        self.map = OrderMap()
        self.map.set_empty_text("The words and how far their outputs move appear here when the model has run.")
        self.unit = sentence()

        self.off = QCheckBox("Positions off")
        self.off.setToolTip("Run the model without positions, in every panel")
        self.off.toggled.connect(self.off_toggled)
        self.shift = WholeBox()
        self.shift.setAccessibleName("Count positions from")
        self.shift.setToolTip("Give the first token this position instead of 0, in every panel")
        self.shift.setKeyboardTracking(False)  # while typing 120 nobody wants to see 1 and 12
        self.shift.valueChanged.connect(self.shift_chosen)
        self.shift_label = QLabel("Count from")
        self.shift_label.setBuddy(self.shift)
        self.edit_note = sentence()

        self.add(heading("Does order matter?"), sentence(_INTRO), flow(self.shuffle, self.swap, self.example))
        self.add(self.verdict, self.because, self.map, self.unit)
        self.add(heading("Change this model's run"), flow(self.off, self.shift_label, self.shift), self.edit_note)
        self.end()
        self.show_view(None)

    def show_view(self, view: ShuffleView | None) -> None:
        """Show what came out; None before anything has run."""
        for widget in (self.verdict, self.because, self.unit):
            widget.setVisible(view is not None)
        for button in (self.shuffle, self.swap):
            button.setEnabled(view is not None and not view.note)
        if view is None:
            self.map.set_order((), (), (), ())
            return
        columns = [Measured("on", view.on.distances)]
        if view.off is not None:
            columns.append(Measured("off", view.off.distances))
        if view.off_open is not None:
            columns.append(Measured("off, open", view.off_open.distances))
        self.map.set_order(view.words, view.order, view.fixed, () if view.note else columns)
        verdict, because = told(view)
        self.verdict.setText(verdict)
        self.because.setText(because)
        self.because.setVisible(bool(because))
        self.unit.setText("" if view.note else _legend(view))

    def show_edits(self, off: bool, shift: int, tokens: int, off_note: str, shift_note: str, size: int | None) -> None:
        """What is in force now, and what the model can do. `size` is how many positions its table has."""
        with QSignalBlocker(self.off), QSignalBlocker(self.shift):
            self.off.setChecked(off)
            self.off.setEnabled(off or not off_note)  # what is on can always be taken back
            most = _FARTHEST if size is None else max(0, size - tokens)
            self.shift.setRange(0, max(most, shift))
            self.shift.setValue(shift)
        for widget in (self.shift, self.shift_label):
            widget.setEnabled((shift > 0 or not shift_note) and not off)
        notes = [note for note in dict.fromkeys((off_note, shift_note)) if note]
        if not notes and size is not None:
            notes = [f"With {tokens} tokens the first can be given any position from 0 to {max(0, size - tokens):,}."]
        elif not notes:
            notes = ["Rotations know distances only: a shift should change nothing but rounding."]
        self.edit_note.setText(" ".join(notes))


def _legend(view: ShuffleView) -> str:
    opened = ", and with its causal mask open as well" if view.off_open is not None else ""
    off = f", with positions off{opened}" if view.off is not None else ""
    return f"Bars: largest absolute difference of a token's {view.measured}, with positions on{off}."


def told(view: ShuffleView) -> tuple[str, str]:
    """The finding in a sentence, and why."""
    if view.note:
        return view.note, ""
    on = distance_text(view.on.largest)
    if view.off is None:
        return f"Outputs move by up to {on}.", view.scheme.off_note
    off = view.off.largest
    if off < ROUNDING:
        return (
            f"Without positions the outputs permute with the words: largest difference {distance_text(off)}.",
            f"With positions they differ by up to {on}. Attention by itself sees a set of words: the positions are all "
            "that tells this model their order.",
        )
    if view.off_open is not None:
        opened = distance_text(view.off_open.largest)
        return (
            f"Even without positions order shows: outputs move by up to {distance_text(off)}.",
            f"With positions it is {on}. A causal mask lets the first token see one, the second two: order leaks in "
            f"by how much each may see. With the mask opened too, the largest difference is {opened}"
            + (": the outputs permute with the words." if view.off_open.largest < ROUNDING else "."),
        )
    return f"Without positions outputs still move by up to {distance_text(off)}.", f"With positions by up to {on}."


# What the (i) of positions says, of the page that is shown. Pure.


_WHAT = "Attention by itself sees a set of tokens and not their order: something has to tell it where each one stands."
_TRY_WAVES = "Try: drag the line over the waves: near positions have like numbers, far ones do not."
_TRY_MODEL = "Try: select another token above, and see what its position does here."
_TRY_ORDER = (
    "Try: press Dog bites man, then Positions off: is the answer still another one when the words change places?"
)
_TRY_PATCH = "Try: click a patch in the middle and one at an edge, and see which patches the model takes to be near."


def of_waves(position: int, width: int, wavelengths: tuple[float, float]) -> About:
    """Of the sinusoids: the cursor's position, the vectors' width, the first and the last wavelength."""
    first, last = wavelengths
    return About(
        (
            _WHAT,
            (
                f"Here it is a vector of waves, {width} numbers a position: pairs of a sine and a cosine, from "
                f"{first:.2f} positions a round to {last:,.0f}."
            ),
            (
                f"The cursor is at position {position}: the fast waves tell it from its neighbours, the slow "
                "ones from what is far away."
            ),
        ),
        _TRY_WAVES,
    )


def of_model(state: State, view: PositionsView | None) -> About:
    ran = state.ran
    if ran is None or view is None or view.request.run != ran.run:
        return About((_WHAT, "How the open model does it is shown here when it has run."), _TRY_MODEL)
    return About.of((_WHAT, f"{view.scheme.title.rstrip('.')}. {view.scheme.words}", _numbers(view)), _TRY_MODEL)


def _numbers(view: PositionsView) -> str:
    scheme, place = view.scheme, view.request.query
    if view.rotation is not None:
        product = value_text(view.rotation.product)
        return (
            f"“{view.query_word}” and “{view.key_word}” are {abs(view.rotation.distance)} tokens apart: as they "
            f"are turned there, q · k is {product}."
        )
    if scheme.shares is not None and scheme.table is not None:
        shares = ", ".join(f"{100 * share:.0f} %" for share in scheme.shares)
        return (
            f"“{view.query_word}” stands at position {place} of {len(scheme.table):,} that there are: three "
            f"principal components hold {shares} of what tells them apart."
        )
    if scheme.bias is not None:
        return (
            f"“{view.query_word}” and “{view.key_word}” are {abs(view.request.key - place)} tokens apart, and "
            "the bias for that is added to their score."
        )
    return ""


def of_order(state: State, view: ShuffleView | None) -> About:
    ran = state.ran
    if ran is None or view is None or view.request.run != ran.run:
        return About(
            (_WHAT, "The model runs on the same words in another order, and what became of each is compared."),
            _TRY_ORDER,
        )
    if view.note:
        return About((_WHAT, view.note), _TRY_ORDER)
    verdict, because = told(view)
    moved = f"The same {len(view.words)} tokens are run in another order, and the {view.measured} of each compared."
    return About.of((_WHAT, moved, verdict, because), _TRY_ORDER)


def of_patches(state: State, view: PatchPositionsView | None, seen: SeenPicture) -> About:
    """Of a vision model, with the two selected patches."""
    ran = state.ran
    if ran is None or view is None or view.request.run != ran.run:
        return About(
            (_WHAT, "How alike the places of its patches are to the model is shown when it has run."), _TRY_PATCH
        )
    if view.alike is None:
        return About((_WHAT, view.words), _TRY_PATCH)
    size = (
        f"{seen.rows} × {seen.columns} patches have a learned vector each: a small map is one patch compared "
        "with all, by cosine."
    )
    least = f"The least alike two of them have {value_text(float(view.alike.min()))}, and each with itself 1."
    query, key = seen.patch(state.selection.query), seen.patch(state.selection.key)
    pair = ""
    if query is not None and key is not None:
        alike = value_text(float(view.alike[*query, *key]))
        pair = (
            f"The patch in row {query[0]}, column {query[1]} and that in row {key[0]}, column {key[1]} have a "
            f"cosine of {alike}: 1 is the same direction, 0 none in common."
        )
    return About.of((_WHAT, size, least, pair), _TRY_PATCH)


def of_none(text: str) -> About:
    return About((_WHAT, text), _TRY_WAVES)


# The page of a vision model's learned positions: what they are, and the grid of maps with its colours.


class PatchPositions(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.grid = PatchSimilarity()
        self.bar = ColourBar("cosine")
        self.words = wrapped(role="dim")
        self._shown: tuple[PatchPositionsView | None, ColourTable | None] = (None, None)
        row = QHBoxLayout()
        row.addWidget(self.grid, 1)
        row.addWidget(self.bar)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 2, 6, 4)
        column.addLayout(row)
        column.addWidget(self.words)
        column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scrolling(page))

    def show_view(self, view: PatchPositionsView | None, table: ColourTable) -> None:
        """Show a comparison in the colours of `table`, from the least alike to the same; None while it is awaited."""
        if view is self._shown[0] and table is self._shown[1]:
            return
        self._shown = (view, table)
        self.words.setText("" if view is None else view.words)
        alike = None if view is None else view.alike
        self.grid.setVisible(alike is not None)
        self.bar.setVisible(alike is not None)
        if alike is not None:
            low = float(np.min(alike))
            self.grid.set_values(alike, low, 1.0, table)
            self.bar.set_colour_map(table)
            self.bar.set_range(low, 1.0)


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
