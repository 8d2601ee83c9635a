"""Everything that is shown of two runs: what they say, their maps, how tokens and heads stand for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QSplitter, QVBoxLayout, QWidget

from attention_explorer.look.colour_maps import diverging, sequential
from attention_explorer.look.text_size import wide
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
from attention_explorer.panels.compare.linked_maps import DIFFERENCE, LEAST, A, B, LinkedMaps, MapWords
from attention_explorer.panels.compare.places import NO_TOKEN, Place, differs, padding_of, words_of
from attention_explorer.panels.selected_head import name_of_head
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.widgets.items_widget import RowsWidget
from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.paired_bars import PairedBars, PairedRow
from attention_explorer.widgets.ranking import Ranking
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.token_text import in_lines, isolated, shortened
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.two_runs import Matching, TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import SiteRef

# Which token of one text stands for which of another: A's above, B's below, and a line between those that are one.


_PAD = 6.0
_TOKEN_GAP = 6.0
_BETWEEN = 10.0  # pixels between the two rows
_LETTER = 20.0


@dataclass(frozen=True)
class AlignedWords:
    """One place: what each text has there, "" for nothing, and whether they are the same."""

    a: str
    b: str
    same: bool

    @property
    def tooltip(self) -> str:
        if not self.a or not self.b:
            return f"“{shortened(self.a or self.b)}”: only in {'A' if self.a else 'B'}"
        if self.same:
            return f"“{shortened(self.a)}”: in both"
        return f"“{shortened(self.a)}” of A stands where B has “{shortened(self.b)}”"


class AlignedTokens(RowsWidget):
    """A click, or Left and Right, chooses a place. As wide as its words: it stands in an area that scrolls sideways."""

    axis: ClassVar[Qt.Orientation] = Qt.Orientation.Horizontal

    place_selected = Signal(int)

    def __init__(self) -> None:
        super().__init__("How the tokens are aligned")
        self.setSizePolicy(QSizePolicy.Policy.MinimumExpanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[AlignedWords, ...] = ()
        self._edges: tuple[float, ...] = (0.0,)

    def set_places(self, places: Sequence[AlignedWords]) -> None:
        if tuple(places) == self._rows:
            return
        self._rows = tuple(places)
        self._keep_items()
        self.setAccessibleDescription("; ".join(place.tooltip for place in self._rows if not place.same))
        self._look_changed()

    def set_current(self, place: int) -> None:
        """Frame a place; emits nothing."""
        if place != self._current:
            self._current = place
            self.update()

    def _look_changed(self) -> None:
        metrics = QFontMetricsF(self.font())
        widths = (
            max(metrics.horizontalAdvance(word) for word in (p.a, p.b)) + 2 * _PAD + _TOKEN_GAP for p in self._rows
        )
        self._edges = tuple(accumulate(widths, initial=_LETTER))
        self.setMinimumWidth(round(self._edges[-1]) + 1)
        super()._look_changed()

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 4

    def sizeHint(self) -> QSize:
        return QSize(round(self._edges[-1]) + 1, round(2 * self._row_height() + _BETWEEN + 2))

    def row_rect(self, row: int) -> QRectF:
        left, right = self._edges[row], self._edges[row + 1]
        return QRectF(left, 0, right - left - _TOKEN_GAP, 2 * self._row_height() + _BETWEEN)

    def _choose(self, item: int) -> None:
        self.set_current(item)
        self.place_selected.emit(item)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        height, theme = self._row_height(), self._theme
        painter.setPen(QColor(theme.text_dim))
        for letter, top in (("A", 0.0), ("B", height + _BETWEEN)):
            painter.drawText(QRectF(0, top, _LETTER, height), Qt.AlignmentFlag.AlignVCenter, letter)
        seen = QRectF(event.rect())
        for index, place in enumerate(self._rows):
            rect = self.row_rect(index)
            if rect.right() >= seen.left() and rect.left() <= seen.right():
                self._draw_place(painter, index, place, rect, height)
        self._draw_focus_ring(painter)

    def _draw_place(self, painter: QPainter, index: int, place: AlignedWords, rect: QRectF, height: float) -> None:
        theme, is_current = self._theme, index in (self._current, self._hover)
        above = QRectF(rect.left(), rect.top(), rect.width(), height)
        below = above.translated(0, height + _BETWEEN)
        marked = QColor(theme.warning)
        for word, box in ((place.a, above), (place.b, below)):
            missing = not word
            frame = marked if missing or not place.same else QColor(theme.border_strong if is_current else theme.border)
            pen = QPen(frame, wide(2.0 if is_current else 1.0))
            pen.setStyle(Qt.PenStyle.DashLine if missing else Qt.PenStyle.SolidLine)
            painter.setPen(pen)
            painter.setBrush(QColor(theme.surface if missing else theme.surface_alt))
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 5, 5)
            painter.setPen(QColor(theme.text))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, word)
        if place.a and place.b:
            painter.setPen(
                QPen(QColor(theme.border_strong) if place.same else marked, wide(2.0 if is_current else 1.2))
            )
            x = above.center().x()
            painter.drawLine(QPointF(x, above.bottom() + 1), QPointF(x, below.top() - 1))


LARGE = 1.75
SMALL = 1.15
"""Times the size of other text, and where there is little room."""

_ENDS = {"A": 236, "B": 20, "A − B": -1}
"""Where each letter's colour stands in the palette of differences; -1 for none."""
_GAP = 8.0
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class SideOutput(ThemedWidget):
    """Three lines: the letter and a dim title, what is said and how likely it is, and what else is said."""

    def __init__(self, letter: str) -> None:
        super().__init__(letter)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do here with a keyboard
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.letter = letter
        self._title = self._said = self._share = self._more = ""

    def show_output(self, title: str, said: str, share: str, more: str) -> None:
        """What is shown; all of it is in the tooltip, where there is no room for it."""
        if (title, said, share, more) == (self._title, self._said, self._share, self._more):
            return
        self._title, self._said, self._share, self._more = (isolated(text) for text in (title, said, share, more))
        told = "\n".join(filter(None, (title, f"{said}  {share}".strip(), more)))
        self.setAccessibleDescription(told)
        self.setToolTip(told)
        self.update()

    @property
    def said(self) -> tuple[str, str]:
        """What stands in large type: what is said, and how likely it is."""
        return self._said, self._share

    def sizeHint(self) -> QSize:
        return QSize(200, round(2 * self._line() + self._large_line() + 6))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _large_line(self) -> float:
        return QFontMetricsF(self._large()).height()

    def _large(self, times: float = LARGE) -> QFont:
        font = QFont(self.font())
        if font.pointSizeF() > 0:
            font.setPointSizeF(font.pointSizeF() * times)
        else:
            font.setPixelSize(round(font.pixelSize() * times))
        font.setBold(True)
        return font

    def _fitting(self) -> QFont:
        """As large as what is said has room for: a translation is longer than a word."""
        wanted = QFontMetricsF(self._large()).horizontalAdvance(f"{self._said}  {self._share}")
        return self._large(min(LARGE, max(SMALL, LARGE * self.width() / max(wanted, 1.0))))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, line, large = self._theme, self._line(), self._large_line()
        left = self._draw_badge(painter, line) + _GAP
        self._draw(painter, QRectF(left, 0, self.width() - left, line), self._title, theme.text_dim, self.font())
        middle = QRectF(0, line + 2, self.width(), large)
        room = 0.0
        font = self._fitting()
        if self._share:
            metrics = QFontMetricsF(font)
            room = min(metrics.horizontalAdvance(self._share) + _GAP, middle.width() * 0.6)
        taken = self._draw(painter, middle.adjusted(0, 0, -room, 0), self._said, theme.text, font)
        if self._share:
            plain = QFont(font)
            plain.setBold(False)
            self._draw(painter, middle.adjusted(taken + _GAP, 0, 0, 0), self._share, theme.text, plain)
        below = QRectF(0, middle.bottom() + 1, self.width(), line)
        self._draw(painter, below, self._more, theme.text_dim, self.font())

    def _draw_badge(self, painter: QPainter, line: float) -> float:
        """The letter in its colour of the palette of differences; how wide it is."""
        painter.setFont(self.bold_font())
        width = max(line, QFontMetricsF(self.bold_font()).horizontalAdvance(self.letter) + 10)
        badge, place = QRectF(0, 0, width, line), _ENDS[self.letter]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(*diverging()[place].tolist()) if place >= 0 else QColor(self._theme.surface_hover))
        painter.drawRoundedRect(badge, 5, 5)
        painter.setPen(QColor("#ffffff") if place >= 0 else QColor(self._theme.text))
        painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, self.letter)
        return width

    def _draw(self, painter: QPainter, rect: QRectF, text: str, colour: str, font: QFont) -> float:
        """One line, cut where it does not fit; how wide it is."""
        metrics = QFontMetricsF(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(rect, _LEFT, shown)
        return metrics.horizontalAdvance(shown)


ALL, PAIR, ALONE, NO_MAPS = range(4)
"""What is shown: all three, A and B, the difference, or what both say and no map."""
_LETTERS = 23
"""That a map and its labels have room for where three stand beside each other."""


class SidesGrid(QWidget):
    """Lays out what it is given, and knows nothing of what is shown in it. The maps that are seen are equally wide."""

    def __init__(self, outputs: tuple[SideOutput, ...], linked: LinkedMaps) -> None:
        """`outputs` are of A, B and the difference: what stands above each map."""
        super().__init__()
        self._outputs, self._linked = outputs, linked
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(3)
        self._shown = ALL
        self._placed: tuple[int, bool] | None = None
        self._lay_out()

    def minimumSizeHint(self) -> QSize:
        """Where three maps stand beside each other they keep nobody from making the panel narrow."""
        bar = self._linked.bars[0].minimumSizeHint().width()
        width = 2 * LEAST[0] + bar + 2 * self._grid.horizontalSpacing()
        return QSize(width, self._grid.minimumSize().height())

    def sizeHint(self) -> QSize:
        """No more than it needs: an area that scrolls would else give it what its maps like best."""
        return self.minimumSizeHint()

    def show_maps(self, which: int) -> None:
        """`ALL`, `PAIR`, `ALONE` or `NO_MAPS`."""
        self._shown = which
        self._lay_out()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._lay_out()

    def _is_narrow(self) -> bool:
        letters = 3 * _LETTERS * self.fontMetrics().averageCharWidth()
        return self.width() < letters + sum(bar.sizeHint().width() for bar in self._linked.bars)

    def _lay_out(self) -> None:
        narrow = self._shown == ALL and self._is_narrow()
        if (self._shown, narrow) == self._placed:
            return
        self._placed = (self._shown, narrow)
        maps, bars = self._linked.maps, self._linked.bars
        for widget in (*self._outputs, *maps, *bars):
            self._grid.removeWidget(widget)
            widget.setParent(self)
        if self._shown == NO_MAPS:
            self._grid.addWidget(self._outputs[A], 0, 0)
            self._grid.addWidget(self._outputs[B], 1, 0)
        pair, alone = self._shown in (ALL, PAIR), self._shown in (ALL, ALONE)
        if pair:
            self._place(A, 0, 0, 1)
            self._place(B, 0, 1, 2)
            self._grid.addWidget(bars[0], 1, 2)
        if alone and narrow:
            self._place(DIFFERENCE, 2, 0, 3, 2)
            self._grid.addWidget(bars[1], 3, 2)
        elif alone:
            self._place(DIFFERENCE, 0, 3, 2)
            self._grid.addWidget(bars[1], 1, 4)
        for side, seen in ((A, pair), (B, pair), (DIFFERENCE, alone)):
            self._outputs[side].setVisible(seen or (self._shown == NO_MAPS and side != DIFFERENCE))
            maps[side].setVisible(seen)
        for bar, seen in zip(bars, (pair, alone), strict=True):
            bar.setVisible(seen)
        left = pair or self._shown == NO_MAPS
        for column, stretch in enumerate((left, pair, False, alone and not narrow, False)):
            self._grid.setColumnStretch(column, int(stretch))
        self._grid.setRowStretch(1, int(pair or (alone and not narrow)))
        self._grid.setRowStretch(3, int(narrow))
        self._grid.setRowStretch(4, int(self._shown == NO_MAPS))
        self.updateGeometry()

    def _place(self, side: int, row: int, column: int, over: int, map_over: int = 1) -> None:
        """What is said at `row`, over so many columns, and the map below it."""
        self._grid.addWidget(self._outputs[side], row, column, 1, over)
        self._grid.addWidget(self._linked.maps[side], row + 1, column, 1, map_over)


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
