"""What is covered in a window until an answer is revealed, in whichever panels it could be read."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QRect, QTimer, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from attention_explorer.panels.base import Panel, Place
from attention_explorer.session.hidden import Hide
from attention_explorer.session.state import Selection
from attention_explorer.theme import Theme
from attention_explorer.window.contents import Contents
from attention_explorer.window.lesson.cell_cover import CellCover, KeyCover, RowCover
from attention_explorer.window.lesson.cover import Cover

_FOLLOW = 100
"""ms between two looks at where a covered part is: a map may be zoomed, a panel made smaller."""

_MAP = "map"
_OF_CELLS: tuple[Hide, ...] = ("mask", "row", "weight")
"""What is covered cell by cell on the map, the widest first."""


class Covers(QObject):
    """All that is covered in one window."""

    chosen = Signal(int)
    """The key of the cell that was chosen in a covered row."""
    taken = Signal(object)
    """The keys that are taken in a covered mask: a frozenset."""
    entered = Signal()
    """Enter was pressed upon what was chosen or taken."""

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self._contents = contents
        self._hidden: frozenset[Hide] = frozenset()
        self._asks_cells = False
        self._covers: list[Cover] = []  # in the order of `_places`
        self._cells: Cover | None = None  # that over cells of the map
        self._selection = Selection()  # what is asked about, wherever else is clicked meanwhile
        self._timer = QTimer(self)
        self._timer.setInterval(_FOLLOW)
        self._timer.timeout.connect(self._follow)

    @property
    def is_on(self) -> bool:
        return bool(self._hidden)

    @property
    def guessed(self) -> QWidget | None:
        """What covers cells that are guessed by mouse or keyboard; None where none can be seen."""
        cells = self._cells
        if not isinstance(cells, CellCover) or not isValid(cells) or cells.geometry().isEmpty():
            return None
        return cells

    def hide(self, hidden: frozenset[Hide], asks_cells: bool = False, clicks: bool = False) -> None:
        """Cover what shows it, in whichever panel it could be read.

        Of a mask the cells of its row are taken by clicks where it `asks_cells`, of a row one is where it is answered
        by `clicks`.
        """
        self.lift()
        if not hidden:
            return
        self._hidden, self._asks_cells = hidden, asks_cells
        self._selection = self._contents.session.state.selection
        for panel in (self._contents.input, *self._contents.panels):  # also those that were not made yet
            panel.hide_answers(hidden)
        self._contents.session.changed.connect(self._follow)
        self._cells = self._over_cells(clicks)
        self._follow()
        self._timer.start()

    def lift(self) -> None:
        """Uncover all."""
        self._timer.stop()
        if self._hidden:
            self._contents.session.changed.disconnect(self._follow)
            self._hidden = frozenset()
            for panel in self._panels():
                panel.hide_answers(self._hidden)
        self._drop(self._covers)
        if self._cells is not None:
            self._drop([self._cells])
        self._cells = None

    @property
    def _living(self) -> list[Cover]:
        """A panel that fails is deleted, and the cover over it."""
        return [cover for cover in self._covers if isValid(cover)]

    def set_theme(self, theme: Theme) -> None:
        for cover in (*self._covers, self._cells):
            if cover is not None and isValid(cover):
                cover.set_theme(theme)

    def _panels(self) -> tuple[Panel, ...]:
        return self._contents.input, *self._contents.made_panels.values()

    def _places(self) -> list[Place]:
        """Where what is hidden can be read now, but for cells of the map that are guessed one by one."""
        found: list[Place] = []
        for panel in self._panels():
            hidden = self._hidden
            if panel.name == _MAP and self._asks_cells:  # the cells are there to be clicked
                hidden = hidden - {"mask"} | {"weight"}
            found += panel.attempt(partial(panel.answering, hidden)) or ()
        if self._hidden & {"size", "position"}:
            facts = self._contents.top_bar.facts
            found.append((facts, facts.rect()))
        return found

    def _follow(self) -> None:
        """Lie where it is to lie now: a page may be turned, a map zoomed."""
        places = self._places()
        if [cover.over for cover in self._living] != [widget for widget, _ in places]:
            self._drop(self._covers)
            for widget, _ in places:
                self._covers.append(Cover(widget))
                self._covers[-1].set_theme(self._contents.theme)
        for cover, (widget, where) in zip(self._covers, places, strict=True):
            cover.lie_over(None if where == widget.rect() else where)
        if self._cells is not None and isValid(self._cells):
            self._cells.follow()

    @staticmethod
    def _drop(covers: list[Cover]) -> None:
        for cover in covers:
            if isValid(cover):
                cover.hide()
                cover.deleteLater()
        covers.clear()

    def _over_cells(self, clicks: bool) -> Cover | None:
        """What lies over the asked cells of the map; None where all of it is covered, or none of its cells is asked."""
        what = next((what for what in _OF_CELLS if what in self._hidden), None)
        if self._hidden & {"map", "gradient"} or what is None or (what == "mask" and not self._asks_cells):
            return None
        place = self._map_place(what)
        if place is None:
            return None
        found: Place = place

        def where() -> QRect:
            return (self._map_place(what) or found)[1]

        cover: Cover
        if what == "mask":
            cover = of_mask = RowCover(found[0], where, self._row)
            of_mask.changed.connect(self.taken)
            of_mask.entered.connect(self.entered)
        elif what == "row" and clicks:
            cover = of_row = KeyCover(found[0], where, self._row)
            of_row.chosen.connect(self.chosen)
            of_row.entered.connect(self.entered)
        else:
            cover = Cover(found[0], where)
        cover.set_theme(self._contents.theme)
        return cover

    def _map_place(self, what: Hide) -> Place | None:
        """The selected cell of the map, its row, or all cells."""
        state = self._contents.session.state
        if what == "weight":
            return self._cell(self._selection.key)
        if state.site is None:
            return None
        rows = (0, state.site.queries - 1) if what == "mask" else (None, None)
        first, last = self._cell(0, rows[0]), self._cell(state.site.keys - 1, rows[1])
        return None if first is None or last is None else (first[0], first[1] | last[1])

    def _cell(self, key: int, query: int | None = None) -> Place | None:
        """Where the map has that key of a row: of the selected one where none is named."""
        return self._place("cell", self._selection.query if query is None else query, key)

    def _place(self, part: str, query: int = 0, key: int = 0) -> Place | None:
        """Where the map has it."""
        panel, site = self._contents.made_panels.get(_MAP), self._contents.session.state.site
        return None if panel is None or site is None else panel.place_of(part, site.ref, 0, query, key)

    def _row(self) -> list[QRect]:
        """The cells of the selected row."""
        site = self._contents.session.state.site
        places = [self._cell(key) for key in range(0 if site is None else site.keys)]
        return [QRect() if place is None else place[1] for place in places]
