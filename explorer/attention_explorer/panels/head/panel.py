"""The selected head's weights as a map: which token attends to which, and how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QHideEvent, QKeySequence, QResizeEvent, QShortcut, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from attention_explorer.look.colour_maps import sequential
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.first_token import attention_sink
from attention_explorer.panels.head.about import about
from attention_explorer.panels.head.find_bar import TokenSearch
from attention_explorer.panels.head.map_tools import MapTools
from attention_explorer.panels.head.shown_map import (
    SCALES,
    Source,
    WordCells,
    is_faint,
    is_of_pieces,
    offered,
    shown_map,
    shown_scaling,
    source_of,
    table_for,
)
from attention_explorer.panels.selected_head import (
    NO_HEADS,
    head_name,
    padding_of,
    selected_cell_request,
    selected_head_request,
    site_texts,
    site_words,
    token_word,
    wanted_comparison,
    wanted_head,
    wanted_scores,
    why_first,
)
from attention_explorer.session.hidden import WEIGHTS, Hide
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import AskHeads, PaintCells, SelectCell, SelectKey, SelectQuery, SetView
from attention_explorer.session.session import Session
from attention_explorer.session.state import State, site_of
from attention_explorer.session.view_options import SCORES, Block, Normalisation
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.choices_kept import Choice
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.heat_map.bands import Band, Bands, caption
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.padding_overlay import shares
from attention_explorer.widgets.token_text import in_lines, isolated
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.head import HeadView, RowView, ScoresView, TilesRequest, TilesView
from attention_models.protocol.request import Request
from attention_models.protocol.roles import HeadQuestion
from attention_models.protocol.running import Ran
from attention_models.protocol.values import (
    LARGEST_WHOLE,
    TILE,
    CheckpointInfo,
    Pooling,
    Site,
    SiteRef,
    Tile,
    Token,
    site_tokens,
    top_level,
)
from attention_models.protocol.word_spans import MERGED, Words
from attention_models.protocol.word_spans import site_words as words_of_site


class ChoiceBox(QComboBox):
    """The open list shows every text whole."""

    def __init__(self) -> None:
        super().__init__()
        self.currentIndexChanged.connect(self.updateGeometry)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def sizeHint(self) -> QSize:
        metrics, hint = self.fontMetrics(), super().sizeHint()
        widest = max((metrics.horizontalAdvance(self.itemText(i)) for i in range(self.count())), default=0)
        return QSize(hint.width() - widest + metrics.horizontalAdvance(self.currentText()), hint.height())

    def offer(self, choices: Sequence[str]) -> None:
        """Grey all choices but these."""
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        for i in range(self.count()):
            model.item(i).setEnabled(self.itemData(i) in choices)

    def showPopup(self) -> None:
        self.view().setMinimumWidth(super().sizeHint().width())
        super().showPopup()


# The blocks of a head's map where two texts were read together: A to A, A to B, B to A and B to B.


NAMES = "AB"
"""What the first text is called on a map, and what the second."""

_CHOICES: tuple[Block, ...] = ("all", "aa", "ab", "ba", "bb")
_TIP = "Show one block alone: which text attends (A is the first), and to which"


def bands_of(ran: Ran, site: Site, words: tuple[Words, Words] | None = None) -> Bands:
    """The texts along both axes of the maps of `site`; none along an axis of a single text.

    Of a map of words, `words` are those of the queries and of the keys.
    """
    queries, keys = site_tokens(ran, site)
    rows, columns = _bands(queries, site.queries), _bands(keys, site.keys)
    if words is not None:
        rows, columns = (_in_words(bands, of) for bands, of in zip((rows, columns), words, strict=True))
    return Bands(rows, columns)


def _bands(tokens: tuple[Token, ...], count: int) -> tuple[Band, ...]:
    second = [i for i, token in enumerate(tokens) if token.segment == 1]
    if not second or len(tokens) != count:
        return ()
    return Band(NAMES[0], range(second[0])), Band(NAMES[1], range(second[0], second[-1] + 1))


def _in_words(bands: tuple[Band, ...], words: Words) -> tuple[Band, ...]:
    return tuple(
        Band(band.name, range(words.word(band.cells.start), words.word(band.cells.stop - 1) + 1)) for band in bands
    )


def cells_of(bands: Bands, block: Block, queries: int, keys: int) -> tuple[range, range] | None:
    """The (queries, keys) of a block; None for the whole map. An axis of a single text is shown whole."""
    if block == "all" or not (bands.rows or bands.columns):
        return None
    row, column = ("ab".index(letter) for letter in block)
    return (
        bands.rows[row].cells if bands.rows else range(queries),
        bands.columns[column].cells if bands.columns else range(keys),
    )


class BlockBox(ChoiceBox):
    """Chooses the block that is shown; hidden while there are none."""

    chosen = Signal(str)  # a `Block`

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Block of the map")
        self.setToolTip(_TIP)
        self._bands: Bands | None = None
        self.activated.connect(lambda i: self.chosen.emit(self.itemData(i)))
        self.hide()

    def show_blocks(self, bands: Bands, block: Block) -> None:
        """Offer the blocks of these texts, with `block` as the one that is shown."""
        if bands != self._bands:
            self._bands = bands
            self.clear()
            for choice in _CHOICES:
                text = _name(bands, choice)
                if self.findText(text) < 0:  # an axis of a single text has no choice
                    self.addItem(text, choice)
                    self.setItemData(self.count() - 1, _meaning(bands, choice), Qt.ItemDataRole.ToolTipRole)
        self.setVisible(bool(bands.rows or bands.columns))
        self.setCurrentIndex(self.findText(_name(bands, block)))


def _name(bands: Bands, block: Block) -> str:
    if block == "all":
        return "All blocks"
    row, column = (NAMES["ab".index(letter)] for letter in block)
    return caption(row if bands.rows else "", column if bands.columns else "")


def _meaning(bands: Bands, block: Block) -> str:
    if block == "all":
        return "The whole map"
    words = {"a": "first text", "b": "second text"}
    looks = f"the {words[block[0]]}" if bands.rows else "the other side"
    return f"From {looks} to the {words[block[1]]}" if bands.columns else f"From {looks}"


# Which map of a long text is shown, what is drawn until its tiles are here, and what they tell of sinks.


class MapName(NamedTuple):
    """Which map of a long text: of a run, a head, and how its weights are pooled."""

    run: int
    site: SiteRef
    head: int
    pooling: Pooling
    scale_rows: bool

    @classmethod
    def asked_by(cls, request: TilesRequest) -> MapName:
        """Whose tiles a request asks for."""
        return cls(request.run, request.site, request.head, request.pooling, request.scale_rows)


class RowSinks:
    """What the sinks take of the rows of one run, as far as tiles have told."""

    def __init__(self) -> None:
        self._shares: dict[tuple[int, SiteRef, int], dict[int, float]] = {}  # by run, site and head

    def keep(self, name: MapName, tile: Tile, sinks: np.ndarray) -> None:
        """`sinks` are (rows of the tile,), NaN where not known."""
        self._shares = {head: rows for head, rows in self._shares.items() if head[0] == name.run}
        kept = self._shares.setdefault((name.run, name.site, name.head), {})
        for row, share in enumerate(sinks.tolist(), start=tile.row * TILE):
            if not np.isnan(share):
                kept[row] = share

    def share(self, name: MapName, query: int) -> float | None:
        """None without a sink, and where no tile of the row has come."""
        return self._shares.get((name.run, name.site, name.head), {}).get(query)


def name_of(state: State) -> MapName | None:
    """The map of the selected head, as it is to be shown."""
    ran, site = state.ran, state.site
    if ran is None or site is None:
        return None
    return MapName(ran.run, site.ref, state.selection.head, state.document.view.pooling, _scales_rows(state))


def _scales_rows(state: State) -> bool:
    return state.document.view.normalisation == "row"


def thumbnail(state: State, ran: Ran, site: Site) -> np.ndarray | None:
    """The head's picture among all heads, (down, across), once it is whole and pooled as the map is."""
    view = state.results.of(AtlasView)
    if view is None or _scales_rows(state):
        return None
    if (view.request.run, view.request.pooling) != (ran.run, state.document.view.pooling):
        return None
    cell = -(-max(site.queries, site.keys) // view.request.size)
    size = (-(-site.queries // cell), -(-site.keys // cell))
    return _cut_out(view, ran.sites.index(site), state.selection.head, size)


@lru_cache(maxsize=2)  # asked for at each change of the state
def _cut_out(view: AtlasView, site: int, head: int, size: tuple[int, int]) -> np.ndarray | None:
    picture = view.images[site, head, : size[0], : size[1]]
    if np.isnan(picture).any():
        return None
    masked = view.masked[site, head if view.masked.shape[1] > 1 else 0, : size[0], : size[1]]
    marked: np.ndarray = np.where(masked, np.float32(np.nan), picture)  # as in a tile
    return marked


# What can be asked of all heads about a cell of this one's map: a menu, and the keys for the same.


KEYS = {"cell": "W", "row": "R", "column": "C"}
"""In the map: which heads attend so here, from here, to here."""

Ask = Callable[[str], None]


def bind_keys(where: QWidget, ask: Ask) -> None:
    """Let the keys of `KEYS` call `ask` while the map has the keyboard."""
    for kind, key in KEYS.items():
        shortcut = QShortcut(QKeySequence(key), where)
        shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
        shortcut.activated.connect(lambda kind=kind: ask(kind))


def ask_menu(parent: QWidget, query: str, key: str, ask: Ask) -> QMenu:
    """A menu about the cell of two tokens; what is chosen of it is asked."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    texts = {
        "cell": f"Which heads attend from “{query}” to “{key}”?",
        "row": f"Which heads attend from “{query}” as this one does?",
        "column": f"Which heads attend to “{key}”?",
    }
    for kind, text in texts.items():
        action = menu.addAction(f"{isolated(text).replace('&', '&&')}\t{KEYS[kind]}")
        action.triggered.connect(lambda _=False, kind=kind: ask(kind))
    menu.addSeparator()
    paint = menu.addAction("Paint a pattern that heads may follow…")
    paint.triggered.connect(lambda: ask("painted"))
    return menu


@dataclass(frozen=True, slots=True)
class Part:
    """How far a map is zoomed, how many rows and columns lie before the first that shows, and how many there are."""

    zoom: float
    down: float
    right: float
    rows: int
    columns: int

    @property
    def text(self) -> str:
        return " ".join(f"{value:.6g}" for value in astuple(self))

    @classmethod
    def of(cls, text: object) -> Part | None:
        """The part that a text says; None where it says none."""
        try:
            zoom, down, right, rows, columns = (float(value) for value in str(text).split())
        except ValueError:
            return None
        if not all(math.isfinite(value) and value >= 0 for value in (zoom, down, right, rows, columns)):
            return None
        return cls(zoom, down, right, int(rows), int(columns))


_SCOPES = {"head": "in this head", "layer": "in every head of this layer", "everywhere": "in every head"}
_WORDS_TIP = f"Words instead of the pieces that the model reads ({MERGED}), as in the literature"
_NO_WORDS = f"Words are shown for texts of up to {LARGEST_WHOLE:,} tokens: a longer one's map is pooled from pieces."
_NO_WORD_CHANGE = "Changes and scores are shown for the pieces that the model reads, not for words."
_LETTERS_OF_BLOCKS = 16
_LETTERS_WITH_WORDS = 58  # a panel is wide that has room for its title, the switch of words and the scaling
HEADS = "heads"
"""The name of the panel that answers what all heads are asked."""
_MOST_TILES = 32  # asked for at once
_BRIGHTER = "Nearly all is faint · Show each row by its largest"
_WAITING = "The weights of the selected head appear here when the model has run."


class HeadMapPanel(Panel):
    api_version = 1
    name = "map"
    title = "Head"
    keeps_answers = True
    hint = "One head's attention weights: rows are the tokens that look, columns the tokens that are looked at."
    shows = WEIGHTS | {"gradient", "score"}
    reads = (
        "document.view",
        "painted_cells",
        "question",
        "up_to_date",
        "selection",
        "selection.chosen",
        "site",
        AtlasView,
        CompareView,
        HeadView,
        RowView,
        ScoresView,
        TilesView,
    )

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return bool(info.stacks)  # a model without attention has no heads

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.map = HeatMap()
        self.map.set_empty_text(_WAITING)
        self.map.cell_selected.connect(self._on_selected)
        self.map.note_of = self._note_of
        self.map.more_of_key = self._more_of_key
        self.map.hovered.connect(self._on_hovered)
        self.map.stroke_painted.connect(self._on_stroke)
        self.map.brush_dropped.connect(lambda: self.dispatch(SetView("painting", "off")))
        bind_keys(self.map, self._ask)
        self.bar = ColourBar()
        self.bar.hide()  # a range without values would be made up
        self.map.map_span_changed.connect(self.bar.set_span)
        self.map.view_changed.connect(self._on_view_changed)
        self.tools = MapTools()
        self.tools.search.chosen.connect(self.go_to)
        self.tools.overview.moved.connect(self.map.centre_on)
        self.tools.pooling_chosen.connect(lambda how: self.dispatch(SetView("pooling", how)))
        self.tools.hide()
        self.find_key = QShortcut(QKeySequence.StandardKey.Find, self, self.tools.search.field.setFocus)
        self.find_key.setEnabled(False)
        self.asking_ends = QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self._end_asking)
        self.asking_ends.setContext(Qt.ShortcutContext.ApplicationShortcut)  # wherever the keyboard is by then
        self.asking_ends.setEnabled(False)
        self.scale = ChoiceBox()
        self.scale.setAccessibleName("Scaling of the colours")
        for i, (choice, (label, meaning, _)) in enumerate(SCALES.items()):
            self.scale.addItem(label, choice)
            self.scale.setItemData(i, meaning, Qt.ItemDataRole.ToolTipRole)
        self.words = QPushButton("Words")
        self.words.setCheckable(True)
        self.words.clicked.connect(lambda on: self.dispatch(SetView("words", on)))
        self.scale.activated.connect(lambda i: self.dispatch(SetView("normalisation", self.scale.itemData(i))))
        self.brighter = QPushButton(_BRIGHTER)
        self.brighter.setToolTip(
            "A few weights, often those of the first rows, are so large that all others look alike."
        )
        self.brighter.clicked.connect(lambda: self.dispatch(SetView("normalisation", "row")))
        self.brighter.hide()
        body = QWidget()
        row = QHBoxLayout(body)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.map, 1)
        row.addWidget(self.bar)
        self.card = Card(self.title)
        self.card.add_control(self.words)
        self.blocks = BlockBox()
        self.blocks.chosen.connect(lambda block: self.dispatch(SetView("block", block)))
        self.card.add_control(self.blocks)
        self.card.add_control(self.scale)
        whole = QWidget()
        parts = QVBoxLayout(whole)
        parts.setContentsMargins(0, 0, 0, 0)
        parts.setSpacing(6)
        parts.addWidget(self.tools)
        parts.addWidget(body, 1)
        parts.addWidget(self.brighter, 0, Qt.AlignmentFlag.AlignLeft)
        self.card.set_content(whole)
        self.card.set_path(self.show_path("head"))
        self.fill(self.card)
        self.keep("part", Choice(self._part, self._go_to_part, lambda text: not text or Part.of(text) is not None))
        self._coming: Part | None = None  # to show of the map that is on its way
        self._shown: tuple[Source | None, Normalisation] = (None, "none")
        self._cells: WordCells | None = None  # while the map is one of words
        self._table = sequential()
        self._values: np.ndarray | None = None  # (queries, keys) as coloured; None of a long text
        self._judged: tuple[np.ndarray | None, bool] = (None, False)  # values, and whether they are faint
        self._map_name: MapName | None = None  # of a long text, while its map is shown
        self._taken: TilesView | None = None
        self._renders = False
        self._bands = Bands()  # of what is shown
        self._padding: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())  # queries and keys that fill up a text
        self._sinks: np.ndarray | None = None  # (queries,) what the sink takes of each row
        self._row_sinks = RowSinks()  # of a long text

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not event.spontaneous():  # the window is not merely minimised
            self._end_asking()

    def _end_asking(self) -> None:
        """A pattern is painted in this panel alone, and for a question: nothing of it is left for the next click."""
        if self.session.state.document.view.painting == "ask":
            self.dispatch(SetView("painting", "off"))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_controls()

    def _fit_controls(self) -> None:
        """In a narrow panel the title, blocks and scaling have the room; the View menu has words too."""
        letters = _LETTERS_WITH_WORDS + (_LETTERS_OF_BLOCKS if not self.blocks.isHidden() else 0)
        self.words.setVisible(self.width() >= letters * self.fontMetrics().averageCharWidth())

    def go_to(self, side: str, position: int) -> None:
        """Select a query or a key by its position, and bring it into the middle of a long text's map."""
        before = self.session.state.selection
        self.dispatch(SelectQuery(position) if side == "query" else SelectKey(position))
        selection = self.session.state.selection
        if self.map.is_tiled and (selection != before or (selection.query, selection.key) == self.map.selection):
            self.map.go_to_cell(selection.query, selection.key)

    def place_of(self, part: str, site: SiteRef | None, head: int, query: int, key: int) -> Place | None:
        if part == "readout":
            return self.map, self.map.readout_rect().toAlignedRect()
        cell = self._shown_cell(query, key)
        return (self.map, self.map.cell_rect(*cell).toAlignedRect()) if part == "cell" and min(cell) >= 0 else None

    def answering(self, hidden: frozenset[Hide]) -> Sequence[Place]:
        """All of it for what all cells say; of a cell or a row the line that says it: cells are covered one by one."""
        of_colours: set[Hide] = {"score"} if shown_scaling(self.session.state) in SCORES else set()
        if hidden & ({"map", "mask", "gradient"} | of_colours):
            return super().answering(hidden)
        return [(self.map, self.map.readout_rect().toAlignedRect())] if hidden & WEIGHTS else ()

    def first_focus(self) -> QWidget | None:
        return self.map

    def about(self, state: State) -> About:
        return about(state, shown_scaling(state))

    def wants(self, state: State) -> Request | None:
        if state.site is not None and state.site.is_long:
            return self._wanted_tiles(state)
        wanted = wanted_head(state)
        if wanted is not None:
            return wanted
        how = shown_scaling(state)
        return wanted_comparison(state) if how == "difference" else wanted_scores(state) if how in SCORES else None

    def prints(self, state: State) -> Request | None:
        return selected_head_request(state) or selected_cell_request(state)

    def render_state(self, state: State, old: State | None) -> None:
        options, selection = state.document.view, state.selection
        is_long = state.site is not None and state.site.is_long
        how = shown_scaling(state)
        choices, tip = offered(state)
        self.scale.setCurrentIndex(self.scale.findData(how))
        self.scale.offer(choices)
        self.scale.setToolTip(tip)
        self.words.setChecked(options.words)
        self.words.setEnabled(not is_long)
        self.words.setToolTip(_NO_WORDS if is_long else _NO_WORD_CHANGE if is_of_pieces(how) else _WORDS_TIP)
        self._renders = True
        self._take_tiles(state)
        if is_long:
            self._render_tiles(state)
        else:
            self._render_weights(state)
        self._render_blocks(state)
        self._renders = False
        self._show_coming(state)
        self.tools.setVisible(self.map.is_tiled)
        self._offer_brighter(how == "none")
        self.find_key.setEnabled(self.map.is_tiled)
        self.map.set_selection(*self._shown_cell(selection.query, selection.key))
        self.card.set_title(head_name(state) if state.site is not None else self.title, why_first(state))
        word = token_word(state, selection.query)
        self.map.set_brush(options.painting)
        self.asking_ends.setEnabled(options.painting == "ask")
        painted = state.painted_cells
        if options.painting == "ask":
            painted = tuple((*cell, True) for cell in _asked_cells(state))
        self.map.set_painted(painted if self._cells is None else self._cells.painted(painted))
        if options.painting == "ask":
            self.card.set_subtitle("drag over the cells that a head may attend to: All heads ranks them")
        elif options.painting != "off":
            self.card.set_subtitle(f"drag to {options.painting} cells {_SCOPES[options.edit_scope]}")
        else:
            self.card.set_subtitle(f"where “{word}” looks" if word and state.site is not None else "")

    def _render_blocks(self, state: State) -> None:
        block = state.document.view.block
        rows, columns = self.map.view.rows.count, self.map.view.columns.count
        self.map.set_bands(self._bands)
        self._padding = padding_of(state.ran, state.site)
        self.map.set_faded(*(self._padding if self._cells is None else self._cells.words_of(*self._padding)))
        shape = (rows, columns) if self.map.is_tiled else (0, 0)
        self.tools.overview.set_faded(*(shares(part, count) for part, count in zip(self._padding, shape, strict=True)))
        self.map.show_block(cells_of(self._bands, block, rows, columns))
        self.blocks.show_blocks(self._bands, block)
        self._fit_controls()

    def _offer_brighter(self, as_they_are: bool) -> None:
        """Say what to do about a dark map of the weights as they are."""
        values = self.map.overview() if self.map.is_tiled else self._values
        if as_they_are and values is not self._judged[0]:
            self._judged = values, is_faint(values)
        self.brighter.setVisible(as_they_are and values is not None and self._judged[1])

    def _render_weights(self, state: State) -> None:
        no_heads = state.ran is not None and not state.ran.sites
        self.map.set_empty_text(NO_HEADS if no_heads else _WAITING)
        ran, how = state.ran, shown_scaling(state)
        view, table = source_of(state, how), table_for(how, state.document.view.colour_map)
        if (view, how) == self._shown and table is self._table:
            return
        site = None if view is None or ran is None else site_of(ran, view.request.site)
        if view is not None and (ran is None or view.request.run != ran.run or site is None):
            return  # the last picture stays until the new one is here
        if view is None and how in SCORES and state.results.of(HeadView) is not None:
            return  # it is on its way
        self._shown, self._table, self._map_name = (view, how), table, None
        self._cells = self._sinks = None
        if view is None or ran is None or site is None:
            self._values = None
            self.map.set_values(None, None, (), (), 0.0, 1.0)
            self._bands = Bands()
            self.bar.hide()
            return
        shown = shown_map(view, how, ran, site)
        self._values, self._cells, self._sinks = shown.values, shown.cells, shown.sinks
        self.map.key_note = MERGED if shown.cells is not None else ""
        self.map.value_name = shown.value_name
        self.map.set_colour_map(table)
        self.map.set_values(shown.values, shown.masked, shown.rows, shown.columns, shown.low, shown.high)
        self._bands = bands_of(ran, site, words_of_site(ran, site) if shown.cells is not None else None)
        self.bar.show()
        self.bar.set_colour_map(table)
        self.bar.set_range(shown.low, shown.high)
        self.bar.set_label(shown.label)

    def render_hover(self, pointed: Pointed) -> None:
        query, key = self._shown_cell(pointed.query, pointed.key)
        self.map.set_hover(query, key)
        if self.map.is_tiled:
            known = self.map.value_at(pointed.query, pointed.key)
            self.bar.set_marker(None if known is None or np.isnan(known[0]) else known[0])
            return
        values = self._values
        inside = values is not None and 0 <= query < values.shape[0] and 0 <= key < values.shape[1]
        self.bar.set_marker(float(values[query, key]) if inside and values is not None else None)

    # of a long text

    def _take_tiles(self, state: State) -> None:
        """Hand what has come to the map, which keeps it."""
        view = state.results.of(TilesView)
        if view is None or view is self._taken:
            return
        self._taken = view
        name = MapName.asked_by(view.request)
        for (tile, values), sinks in zip(view.tiles, view.sinks, strict=True):
            self.map.add_tile(name, tile, values)
            if sinks is not None:
                self._row_sinks.keep(name, tile, sinks)

    def _wanted_tiles(self, state: State) -> TilesRequest | None:
        name, site = name_of(state), state.site
        if name is None or site is None:
            return None
        if self.map.is_tiled and name == self._map_name:
            missing = self.map.missing()
        else:  # its overview first: until it is here the last map stays
            top = Tile(top_level(site.queries, site.keys), 0, 0)
            missing = [] if self.map.cache.has(name, top) else [top]
        if not missing:
            return None
        tiles = tuple(missing[:_MOST_TILES])
        run, ref, head, pooling, scale_rows = name
        return TilesRequest(run=run, site=ref, head=head, tiles=tiles, pooling=pooling, scale_rows=scale_rows)

    def _render_tiles(self, state: State) -> None:
        name, ran, site = name_of(state), state.ran, state.site
        if name is None or ran is None or site is None:
            return
        top = Tile(top_level(site.queries, site.keys), 0, 0)
        picture = thumbnail(state, ran, site)
        if name != self._map_name:
            shows_something = self.map.is_tiled or self._values is not None
            if shows_something and picture is None and not self.map.cache.has(name, top):
                return  # the last picture stays until there is one of the new head
            self._map_name, self._shown, self._values = name, (None, "none"), None
            self._cells, self.map.key_note, self._sinks = None, "", None
            rows, columns = site_words(ran, site)
            self.map.value_name = "weight / max" if name.scale_rows else ""
            self.map.set_map(name, rows, columns, name.pooling)
            self._bands = bands_of(ran, site)
            self.map.cache.keep_only(lambda kept: isinstance(kept, MapName) and kept.run == name.run)
            self.tools.search.set_tokens(*map(TokenSearch, (rows, columns), site_texts(ran, site)))
        self.map.set_backdrop(picture)
        table = sequential(state.document.view.colour_map)
        if table is not self._table:
            self._table = table
            self.map.set_colour_map(table)
            self.bar.set_colour_map(table)
        self.tools.search.set_place(state.selection.query, state.selection.key)
        self._show_part()

    def _on_view_changed(self) -> None:
        if self.map.is_tiled and self.isVisible() and not self._renders:
            self._show_part()
            self._refresh()  # the view may lack tiles now

    def _show_part(self) -> None:
        """What follows the zoom: the overview's frame, the range of the colours, and what a square stands for."""
        name = self._map_name
        if name is None or not self.map.is_tiled:
            return
        self.tools.overview.set_picture(self.map.overview(), self.map.high, self._table)
        self.tools.overview.set_part(self.map.part())
        self.tools.show_detail(name.pooling, 1 << self.map.level)
        self.bar.show()
        self.bar.set_colour_map(self._table)
        self.bar.set_range(0.0, self.map.high)
        self.bar.set_label(SCALES["row" if name.scale_rows else "none"][2])

    # the part that shows, as session files keep it

    def _part(self) -> str:
        part = self._coming or Part(*self.map.view.place, self.map.view.rows.count, self.map.view.columns.count)
        return part.text if part.zoom > 1 else ""

    def _go_to_part(self, text: object) -> None:
        self._coming = Part.of(text)
        if self._coming is None:
            self.map.reset_view()
        else:
            self._show_coming(self.session.state)

    def _show_coming(self, state: State) -> None:
        """Show the part that was asked for, once the map that it is of is here."""
        part, source, ran = self._coming, self._shown[0], state.ran
        if part is None or ran is None or not state.up_to_date:
            return
        name = self._map_name
        if ran.run == (name.run if name is not None else source.request.run if source is not None else None):
            self._coming = None
            if (part.rows, part.columns) == (self.map.view.rows.count, self.map.view.columns.count):
                self.map.set_view(self.map.view.at(part.zoom, part.down, part.right))

    # of words

    def _shown_cell(self, query: int, key: int) -> tuple[int, int]:
        """The cell of the map that holds a query and a key."""
        return (query, key) if self._cells is None else self._cells.cell_of(query, key)

    def _on_selected(self, query: int, key: int) -> None:
        cell = (query, key) if self._cells is None else self._cells.strongest(query, key)
        self.dispatch(SelectCell(*cell))

    def _note_of(self, query: int, key: int) -> str:
        note = "" if self._cells is None else self._cells.note(query, key)
        if self._cells is not None:
            query, key = self._cells.strongest(query, key)
        if query in self._padding[0] or key in self._padding[1]:
            note += ", of padding"
        place = attention_sink(self.session.state, query) if not self.map.value_name else None
        if place is not None and key == place.key:
            note += place.note
        share = self._sink_of(query)
        return note if share is None else f"{note}, beside a sink of {value_text(share)}"

    def _sink_of(self, query: int) -> float | None:
        """What the sink takes of a row; None without one, and where a long text's row has not been looked at."""
        if self._sinks is not None:
            return float(self._sinks[query])
        name = self._map_name
        return None if name is None else self._row_sinks.share(name, query)

    def _more_of_key(self, key: int) -> str:
        """Why a head rests on the first token, where the selected row does."""
        place = attention_sink(self.session.state)
        if place is None or key != (place.key if self._cells is None else self._cells.keys.word(place.key)):
            return ""
        return in_lines(place.sentence)

    def _on_stroke(self, cells: tuple[tuple[int, int], ...]) -> None:
        if self._cells is not None:
            cells = self._cells.pieces(cells)
        if self.session.state.document.view.painting == "ask":
            before = _asked_cells(self.session.state)
            site = self.session.state.selection.site
            every = tuple(dict.fromkeys((*before, *cells)))
            self.dispatch(AskHeads(HeadQuestion("painted", site, cells=every)))
            return
        self.dispatch(PaintCells(cells, allow=self.session.state.document.view.painting == "allow"))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        where = self.map.mapFrom(self, event.pos())
        cell = self.map.view.cell_at(where.x(), where.y())
        state, site = self.session.state, self.session.state.site
        if state.ran is None or site is None or cell == (-1, -1):
            event.ignore()
            return
        self._on_selected(*cell)
        selection = self.session.state.selection
        queries, keys = site_words(state.ran, site)
        menu = ask_menu(self, queries[selection.query], keys[selection.key], self._ask)
        menu.addSeparator()
        self.add_head_actions(menu, site.ref, selection.head)
        menu.popup(event.globalPos())

    def _ask(self, kind: str) -> None:
        """Ask all heads about the selected cell, its row or its column, or let a pattern be painted."""
        selection = self.session.state.selection
        if selection.site is None or self.session.state.ran is None:
            return
        if kind == "painted":
            self.dispatch(SetView("painting", "ask"))
            return
        asked = HeadQuestion(kind, selection.site, selection.head, selection.query, selection.key)
        self.dispatch(AskHeads(asked))
        had_keyboard = self.map.hasFocus()
        self.front_wanted.emit(HEADS)
        if had_keyboard and self.map.isVisible():
            self.map.setFocus()  # one asks about cell after cell

    def _on_hovered(self, query: int, key: int) -> None:
        if query >= 0 and self._cells is not None:
            query, key = self._cells.strongest(query, key)
        self.hover.point(Pointed(query=query, key=key) if query >= 0 else NOTHING)


def _asked_cells(state: State) -> tuple[tuple[int, int], ...]:
    """The cells that were painted to be asked about."""
    question = state.question
    return question.cells if question is not None and question.kind == "painted" else ()
