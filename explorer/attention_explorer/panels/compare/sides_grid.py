"""A, B and their difference beside each other; where the panel is narrow the difference stands below."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from attention_explorer.panels.compare.linked_maps import DIFFERENCE, LEAST, A, B, LinkedMaps
from attention_explorer.panels.compare.side_output import SideOutput

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
