"""Everything that is shown of two runs: what they say, their maps, how tokens and heads stand for each other."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QLabel, QSplitter, QVBoxLayout, QWidget

from attention_explorer.colour_maps import sequential
from attention_explorer.panels.compare.aligned_tokens import AlignedTokens, AlignedWords
from attention_explorer.panels.compare.compare_sentences import (
    LEGEND,
    MEASURE,
    TYPING,
    aligned,
    change_name,
    head_words,
    largest,
    matched,
    more_said,
    remarks,
    said,
    share,
    title_of,
)
from attention_explorer.panels.compare.linked_maps import DIFFERENCE, A, LinkedMaps, MapWords
from attention_explorer.panels.compare.places import NO_TOKEN, Place, differs, padding_of, words_of
from attention_explorer.panels.compare.side_output import SideOutput
from attention_explorer.panels.compare.sides_grid import NO_MAPS, SidesGrid
from attention_explorer.panels.selected_head import name_of_head
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.widgets.flow_layout import FlowLayout
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.paired_bars import PairedBars, PairedRow
from attention_explorer.widgets.ranking import Ranking
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import in_lines
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.two_runs import Matching, TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import SiteRef

MATCHINGS: tuple[tuple[Matching, str, str], ...] = (
    ("index", "same number", "A head of A is held against the head of B of the same layer and number"),
    ("similarity", "most alike", "A head of A is held against that head of B whose weights are most like its own"),
)
_SHOWN = (
    ("All", "Both maps and their difference"),
    ("A and B", "Both maps, larger"),
    ("A − B", "The difference alone"),
)
_MOST_HEADS = 2000  # of B that are listed one by one
_FOLLOWS = "the one that stands for A's"


class TwoRunsPage(QWidget):
    """Shows an answer, and says what a person points at and chooses: places on the maps, heads."""

    place_selected = Signal(int, int)
    """A query's and a key's place."""
    place_hovered = Signal(int, int)
    part_changed = Signal()
    """As of `LinkedMaps`."""
    head_chosen = Signal(int, int)
    """The number of a site of A, and a head of it: shown in both."""
    matching_chosen = Signal()
    head_of_b_chosen = Signal(object)
    """A (site, head) of B; None for the one that stands for A's."""

    def __init__(self) -> None:
        super().__init__()
        self.linked = LinkedMaps(self)
        self.linked.place_selected.connect(self.place_selected)
        self.linked.place_hovered.connect(self._on_hovered)
        self.linked.part_changed.connect(self.part_changed)
        self.outputs = (SideOutput("A"), SideOutput("B"), SideOutput("A − B"))
        self.sides = SidesGrid(self.outputs, self.linked)
        self.shown = Segments(_SHOWN, "Which maps are shown")
        self.shown.chosen.connect(lambda _which: self._show_maps())
        self.strip = AlignedTokens()
        self.strip.place_selected.connect(self._on_column)
        self.strip.hovered.connect(lambda key: self.linked.set_hover(-1, key))
        self.remarks, self.legend = wrapped(), wrapped(LEGEND, "dim")
        self.heads_title = QLabel("Changed most")
        self.heads_title.setProperty("role", "title")
        self.matching = Segments([(label, tip) for _, label, tip in MATCHINGS], "Which head of B stands for one of A")
        self.matching.chosen.connect(self._on_matching)
        self.wished = 0
        """The way to match heads that a person chose, by its place in `MATCHINGS`; what is in force may be another."""
        self.head_of_b = WholeListBox()
        self.head_of_b.setAccessibleName("The head of B")
        self.head_of_b.setMinimumContentsLength(16)
        self.head_of_b.activated.connect(lambda index: self.head_of_b_chosen.emit(self.head_of_b.itemData(index)))
        self.ranking = Ranking()
        self.ranking.list.setAccessibleName("Heads that changed most")
        self.ranking.head_chosen.connect(self.head_chosen)
        for told in (self.heads_title, self.ranking.list):
            told.setToolTip(in_lines(MEASURE))
        self.said_bars = PairedBars("What both say", headings=("A", "B"))
        self._view: TwoRunsView | None = None
        self._is_typing = False
        self._drawn: tuple[object, ...] = ()
        self._lay_out()

    def _lay_out(self) -> None:
        self.strip_area = scrolling(self.strip)
        self.strip_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.strip_area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.strip_area.horizontalScrollBar().rangeChanged.connect(lambda _low, _high: self._fit_strip())
        self.head_row = QWidget()
        row = FlowLayout(self.head_row, gap=6, line_gap=4)
        for box in (self.heads_title, self.matching, QLabel("head of B"), self.head_of_b):
            row.addWidget(box)
        words = QWidget()
        lines = QVBoxLayout(words)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addWidget(self.said_bars)
        lines.addWidget(self.legend)
        lines.addStretch(1)
        below = _Below(Qt.Orientation.Horizontal)
        below.setChildrenCollapsible(False)
        below.addWidget(self.ranking)
        below.addWidget(scrolling(words))
        below.setSizes([100, 100])
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for part, takes in ((self.remarks, 0), (self.strip_area, 0), (self.sides, 5), (self.head_row, 0), (below, 2)):
            column.addWidget(part, takes)

    # what it shows

    def show_view(self, view: TwoRunsView, options: ViewOptions, own_head: bool) -> None:
        """`own_head`: the head of B was chosen by hand."""
        drawn = (view, options.unit, options.colour_map, own_head)
        if drawn == self._drawn:
            return
        self._view, self._drawn = view, drawn
        for output, side in zip(self.outputs, (view.a, view.b), strict=False):
            title = f"{title_of(side)} · {head_words(side)}"
            output.show_output(title, said(side), share(side), more_said(side, options.unit))
        number, where = largest(view)
        self.outputs[DIFFERENCE].show_output("", number, "", where)
        self._show_remarks()
        self._show_alignment(view)
        self._show_weights(view, options.colour_map)
        self._show_heads_of_b(view, own_head)
        self._show_changes(view)
        self.said_bars.set_rows([_bars(one.label, one.probability_a, one.probability_b) for one in view.said])
        self.said_bars.setVisible(bool(view.said))

    def set_typing(self, typing: bool) -> None:
        """Another text for B is being typed: what is said of the two states is not of that one."""
        self._is_typing = typing
        self._show_remarks()

    def _show_remarks(self) -> None:
        said_of = "" if self._view is None else remarks(self._view)
        self.remarks.setText(TYPING if self._is_typing else said_of)
        self.remarks.setVisible(bool(self.remarks.text()))

    def wish(self, matching: int) -> None:
        """Match heads that way where it can be had."""
        self.wished = matching
        self.matching.choose(matching)

    def _on_matching(self, index: int) -> None:
        self.wished = index
        self.matching_chosen.emit()

    def set_place(self, place: Place) -> None:
        """Frame a place on all maps and in the strip."""
        self.linked.set_selection(*place)
        self.strip.set_current(place[1])

    def set_hover(self, place: Place) -> None:
        """Point at a place on all maps and in the strip. Emits nothing."""
        self.linked.set_hover(*place)
        self.strip.set_hover(place[1])

    def _show_alignment(self, view: TwoRunsView) -> None:
        axis = view.keys
        shows = axis is not None and (differs(axis) or differs(view.queries))
        self.strip_area.setVisible(shows)
        self.legend.setText(f"{LEGEND} {aligned(view)}" if shows else LEGEND)
        if axis is None or not shows:
            return
        words, blank = words_of(view, "keys"), {NO_TOKEN: ""}
        pairs = zip(words.a, words.b, axis.places, strict=True)
        self.strip.set_places([AlignedWords(blank.get(a, a), blank.get(b, b), place.same) for a, b, place in pairs])
        self._fit_strip()

    def _fit_strip(self) -> None:
        """As high as the strip, and its scroll bar where there is one."""
        wanted, bar = self.strip.sizeHint(), self.strip_area.horizontalScrollBar()
        scrolls = wanted.width() > self.strip_area.viewport().width()
        self.strip_area.setFixedHeight(wanted.height() + (bar.sizeHint().height() if scrolls else 0))

    def _show_weights(self, view: TwoRunsView, colour_map: str) -> None:
        maps = view.maps
        self.shown.setEnabled(maps is not None)
        self.legend.setVisible(maps is not None)
        self._show_maps()
        if maps is None:
            self.linked.clear()
            return
        rows, columns = words_of(view, "queries"), words_of(view, "keys")
        words = (MapWords(rows.a, columns.a), MapWords(rows.b, columns.b), MapWords(rows.both, columns.both))
        self.linked.show_maps(maps, words, replace(base(view.request), position=None), sequential(colour_map))
        for one, faded in zip(self.linked.maps, padding_of(view), strict=True):
            one.set_faded(*faded)

    def _show_maps(self) -> None:
        has_none = self._view is None or self._view.maps is None
        self.sides.show_maps(NO_MAPS if has_none else self.shown.current)

    def _show_heads_of_b(self, view: TwoRunsView, own_head: bool) -> None:
        box, side = self.head_of_b, view.b
        entries: list[tuple[str, tuple[SiteRef, int] | None]] = [(_FOLLOWS if own_head else head_words(side), None)]
        if sum(site.heads for site in side.sites) <= _MOST_HEADS:
            refs = [site.ref for site in side.sites]
            every = [(site.ref, head) for site in side.sites for head in range(site.heads)]
            entries += [(name_of_head(ref, head, refs), (ref, head)) for ref, head in every]
        if [box.itemText(i) for i in range(box.count())] != [text for text, _ in entries]:
            box.clear()
            for text, data in entries:
                box.addItem(text, data)
        own = (side.site, side.head) if own_head else None
        box.setCurrentIndex(next((i for i, (_, data) in enumerate(entries) if data == own), 0))
        found = "" if view.a.site is None or view.a.head is None else matched(view, view.a.site, view.a.head)
        box.setToolTip(found or "The one that stands for A's, or any other (Alt+Shift and an arrow key)")

    def _show_changes(self, view: TwoRunsView) -> None:
        changes, several = view.changed_most, not view.same_run
        self.head_row.setVisible(bool(view.a.sites and view.b.sites))
        for part in (self.heads_title, self.matching):
            part.setVisible(several)
        by_index = self.matching.button(0)
        by_index.setEnabled(not view.why_not_by_index)
        by_index.setToolTip(in_lines(view.why_not_by_index) or MATCHINGS[0][2])
        self.matching.choose(1 if view.why_not_by_index else self.wished)
        self.ranking.setVisible(bool(view.changes) and several)
        rows = {site.ref: row for row, site in enumerate(view.a.sites)}
        heads = [(rows[one.site], one.head, change_name(one, view), one.change) for one in changes]
        self.ranking.show_heads(heads, 0.0, max([one.change for one in changes], default=0.0) or 1.0, None)
        self.ranking.show_page("")
        shown = -1 if view.a.site is None else rows.get(view.a.site, -1)
        self.ranking.mark(shown, -1 if view.a.head is None else view.a.head)
        self.heads_title.setText("Changed most" if view.done >= 1 else f"Changed most · {view.done:.0%} computed")

    # what a person does

    def _on_hovered(self, query: int, key: int) -> None:
        self.strip.set_hover(key)
        self.place_hovered.emit(query, key)

    def _on_column(self, key: int) -> None:
        query = max(self.linked.maps[A].selection[0], 0)
        self.linked.set_selection(query, key)
        self.place_selected.emit(query, key)


class _Below(QSplitter):
    """Takes no more height than it needs, for the maps to have it."""

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()


def base(request: TwoRunsRequest) -> TwoRunsRequest:
    """What is compared, whatever part of it was asked for."""
    return replace(request, have=0.0, tile=None)


def _bars(label: str, a: float, b: float) -> PairedRow:
    texts = ["—" if value != value else percent_text(value) for value in (a, b)]
    return PairedRow(label, 0.0 if a != a else a, 0.0 if b != b else b, *texts)
