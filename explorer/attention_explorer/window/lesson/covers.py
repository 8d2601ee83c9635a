"""What is covered in a window until an answer is revealed, in whichever panels it could be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFocusEvent, QFont, QFontInfo, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from attention_explorer.look.text_size import is_read_from_afar
from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.panels.base import Panel, Place
from attention_explorer.session.hidden import Hide
from attention_explorer.session.state import Selection
from attention_explorer.widgets.padding_overlay import draw_hatching
from attention_explorer.window.contents import Contents


class Cover(QWidget):
    """Over all of a widget, or a rectangle of it; the mouse does not reach what is below."""

    def __init__(self, over: QWidget, where: Callable[[], QRect] | None = None) -> None:
        super().__init__(over)
        self.over = over
        self._where = where
        self._theme = LIGHT
        self.setAccessibleName("Covered until Reveal")
        self.setCursor(Qt.CursorShape.ArrowCursor)
        over.installEventFilter(self)
        self.follow()
        self.show()
        self.raise_()

    def follow(self) -> None:
        """Lie where it is to lie now."""
        area = self.over.rect() if self._where is None else self._where() & self.over.rect()
        if area != self.geometry():
            self.setGeometry(area)
        self.raise_()

    def lie_over(self, where: QRect | None) -> None:
        """Lie over this rectangle; None for all of the widget, however large that becomes."""
        self._where = None if where is None else lambda: where
        self.follow()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self.follow()
        return False

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Taken, and nothing done."""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.draw_ground(painter)
        font = QFont(self.font())
        pixels = max(9, min(64, int(min(self.height(), self.width()) * 0.7)))
        if is_read_from_afar() and pixels < QFontInfo(font).pixelSize():
            return  # the hatching says it
        font.setPixelSize(pixels)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor(self._theme.text))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "?")

    def draw_ground(self, painter: QPainter) -> None:
        """What says that something is hidden here."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), QColor(self._theme.surface))
        draw_hatching(painter, self._theme, self.rect().toRectF(), 9.0)
        painter.setPen(QPen(QColor(self._theme.query), 2))
        painter.drawRect(self.rect().adjusted(1, 1, -1, -1))


# Over cells of a head's map that are guessed: one is chosen by mouse or arrow keys, and said to the class.


_KEYS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End)


class CellCover(Cover):
    """Knows the cells of a row: one of them is where the keyboard is. Enter guesses."""

    entered = Signal()
    """Enter was pressed: what is chosen is the guess."""

    def __init__(self, over: QWidget, where: Callable[[], QRect], cells: Callable[[], Sequence[QRect]]) -> None:
        """`cells` are those of the row, in the coordinates of `over`."""
        self._cells = cells
        self.at = -1
        """The key whose cell the keyboard is at; -1 before one is."""
        super().__init__(over, where)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def move_to(self, key: int) -> None:
        """Have the keyboard at a cell."""
        if key != self.at:
            self.at = key
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        key = self.key_at(event.position().toPoint())
        if key is not None:
            self.move_to(key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        count, key = len(self._cells()), Qt.Key(event.key())
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        elif key in _KEYS and count:
            to = {_KEYS[0]: max(0, self.at - 1), _KEYS[1]: self.at + 1, _KEYS[2]: 0, _KEYS[3]: count - 1}
            self.move_to(min(to[key], count - 1))
        else:
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def key_at(self, where: QPoint) -> int | None:
        """The key whose cell is at a point of the cover."""
        found = (key for key, cell in enumerate(self.row()) if cell.contains(where))
        return next(found, None)

    def row(self) -> list[QRect]:
        """The cells of the row, in coordinates of the cover."""
        return [cell.translated(-self.pos()) for cell in self._cells()]

    def draw_focus(self, painter: QPainter) -> None:
        """The keyboard's cell in the accent of keys; all of the row before there is one."""
        row = self.row()
        if not row or not self.hasFocus():
            return
        area = row[self.at] if 0 <= self.at < len(row) else row[0] | row[-1]
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for colour, wide in ((self._theme.surface, 6), (self._theme.key, 3)):
            painter.setPen(QPen(QColor(colour), wide, j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(area.adjusted(2, 2, -3, -3))


class KeyCover(CellCover):
    """Over one row of cells: that which is chosen is the guess."""

    chosen = Signal(int)
    """Its key."""

    def __init__(self, over: QWidget, where: Callable[[], QRect], cells: Callable[[], Sequence[QRect]]) -> None:
        super().__init__(over, where, cells)
        self.setAccessibleDescription("Left and Right choose a token, Enter guesses it.")

    def move_to(self, key: int) -> None:
        moved = key != self.at
        super().move_to(key)
        if moved:
            self.chosen.emit(key)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter, row = QPainter(self), self.row()
        if 0 <= self.at < len(row):
            painter.fillRect(row[self.at].adjusted(1, 1, -1, -1), QColor(self._theme.key))
        self.draw_focus(painter)


class RowCover(CellCover):
    """Over all cells. A click takes a cell of the row, or gives it back; a drag does it to all that it passes over.

    By keyboard Space takes the cell or gives it back, and Shift with an arrow does to the next what was done last.
    """

    changed = Signal(object)
    """The keys that are taken: a frozenset."""

    def __init__(self, over: QWidget, where: Callable[[], QRect], cells: Callable[[], Sequence[QRect]]) -> None:
        self.taken: frozenset[int] = frozenset()
        self._takes = True  # what a drag does
        super().__init__(over, where, cells)
        self.setAccessibleDescription(
            "Left and Right choose a cell, Space takes it or gives it back, with Shift the next too; Enter guesses."
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        key = self.key_at(event.position().toPoint())
        if key is not None:
            self._toggle(key)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        key = self.key_at(event.position().toPoint())
        if key is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._set(key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space:
            if self.at >= 0:
                self._toggle(self.at)
            return
        before = self.at
        super().keyPressEvent(event)
        if self.at != before and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            for key in range(min(before + 1, self.at), max(before - 1, self.at) + 1):
                self._set(key)

    def _toggle(self, key: int) -> None:
        self._takes = key not in self.taken
        self._set(key)

    def _set(self, key: int) -> None:
        taken = self.taken | {key} if self._takes else self.taken - {key}
        if taken != self.taken:
            self.taken = taken
            self.update()
            self.changed.emit(taken)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.draw_ground(painter)
        for key, cell in enumerate(self.row()):
            inner = cell.adjusted(1, 1, -1, -1)
            is_taken = key in self.taken
            painter.fillRect(inner, QColor(self._theme.query if is_taken else self._theme.surface))
            painter.setPen(QPen(QColor(self._theme.query), 1))
            painter.drawRect(inner)
        self.draw_focus(painter)


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
