"""What is covered in a window until an answer is revealed, in whichever panels it could be read."""

from __future__ import annotations

from PySide6.QtCore import QObject, QRect, QTimer, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from explorer.panels.base import Place
from explorer.session.lessons import Hide
from explorer.session.state import Selection
from explorer.theme import Theme
from explorer.window.contents import Contents
from explorer.window.lesson.cell_cover import CellCover, KeyCover, RowCover
from explorer.window.lesson.cover import Cover

_FOLLOW = 100
"""ms between two looks at where a covered part is: a map may be zoomed, a panel made smaller."""

_READABLE: dict[Hide, frozenset[str]] = {
    "weight": frozenset({"map"}),
    "row": frozenset({"map"}),
    "next": frozenset({"heads", "map", "lookup", "positions", "masks", "variance"}),
    "map": frozenset(),
    "mask": frozenset({"map", "next", "lookup", "variance"}),
    "role": frozenset({"map"}),
}
"""Panels that do not say what is hidden, or of which a part is covered."""


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
        self._covers: list[Cover] = []
        self._cells: CellCover | None = None  # that over cells of the map which are guessed
        self._selection = Selection()  # what is asked about, wherever else is clicked meanwhile
        self._timer = QTimer(self)
        self._timer.setInterval(_FOLLOW)
        self._timer.timeout.connect(self._follow)

    @property
    def is_on(self) -> bool:
        return bool(self._covers)

    @property
    def guessed(self) -> QWidget | None:
        """What covers cells that are guessed by mouse or keyboard; None where none can be seen."""
        cells = self._cells
        return None if cells is None or not isValid(cells) or cells.geometry().isEmpty() else cells

    def hide(self, what: Hide, asks_cells: bool = False) -> None:
        """Cover it, in whichever panel it would be read. Of a mask the cells of its row can be clicked if asked for."""
        self.lift()
        if not what:
            return
        self._selection = self._contents.session.state.selection
        for panel in self._contents.panels:
            if panel.name not in _READABLE[what]:
                self._covers.append(Cover(panel))
        if what != "next":
            self._covers.append(Cover(self._contents.input.strip))
        of_cells = what in ("weight", "row", "mask")
        readout = self._place("readout") if of_cells else None
        if readout is not None:
            self._covers.append(Cover(readout[0], lambda: (self._place("readout") or readout)[1]))
        found = self._map_place(what) if of_cells else None
        if found is not None:
            self._covers.append(self._over_cells(what, found, asks_cells))
        for cover in self._covers:
            cover.set_theme(self._contents.theme)
        self._timer.start()

    def _over_cells(self, what: Hide, found: Place, asks_cells: bool) -> Cover:
        def where() -> QRect:
            return (self._map_place(what) or found)[1]

        if not asks_cells and what != "row":
            return Cover(found[0], where)
        if asks_cells:
            self._cells = of_mask = RowCover(found[0], where, self._row)
            of_mask.changed.connect(self.taken)
        else:
            self._cells = of_row = KeyCover(found[0], where, self._row)
            of_row.chosen.connect(self.chosen)
        self._cells.entered.connect(self.entered)
        return self._cells

    def lift(self) -> None:
        """Uncover all."""
        self._timer.stop()
        for cover in self._living:
            cover.hide()
            cover.deleteLater()
        self._covers, self._cells = [], None

    @property
    def _living(self) -> list[Cover]:
        """A panel that fails is deleted, and the cover over it."""
        return [cover for cover in self._covers if isValid(cover)]

    def set_theme(self, theme: Theme) -> None:
        for cover in self._living:
            cover.set_theme(theme)

    def _follow(self) -> None:
        for cover in self._living:
            cover.follow()

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
        panel, site = self._contents.made_panels.get("map"), self._contents.session.state.site
        return None if panel is None or site is None else panel.place_of(part, site.ref, 0, query, key)

    def _row(self) -> list[QRect]:
        """The cells of the selected row."""
        site = self._contents.session.state.site
        places = [self._cell(key) for key in range(0 if site is None else site.keys)]
        return [QRect() if place is None else place[1] for place in places]
