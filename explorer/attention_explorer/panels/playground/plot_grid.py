"""Plots beside each other where there is room, whose figures are made when they can be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QTimer
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from attention_explorer.widgets.plot.figure import Figure
from attention_explorer.widgets.plot.plot import Plot

# Widgets beside each other in pairs, equally wide, where there is room; else under each other.


class Pairs(QWidget):
    def __init__(self, widgets: Sequence[QWidget], least: int, gap: int, parent: QWidget | None = None) -> None:
        """`least` is the width in pixels from which on there are pairs."""
        super().__init__(parent)
        self._widgets, self._least = tuple(widgets), least
        self._columns = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(gap)
        self._arrange(1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(2 if self.width() >= self._least else 1)

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for number, widget in enumerate(self._widgets):
            self._grid.removeWidget(widget)
            self._grid.addWidget(widget, number // columns, number % columns)
        for column in range(2):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)


_TWO_COLUMNS = 760  # pixels
_GAP = 10

Figures = Callable[[], Iterable[Figure]]


class PlotGrid(Pairs):
    """Where the curves go on, one plot is drawn a turn of the event loop: five at once would keep keys waiting."""

    def __init__(self, plots: Sequence[Plot], parent: QWidget | None = None) -> None:
        super().__init__(plots, _TWO_COLUMNS, _GAP, parent)
        self._plots = tuple(plots)
        self._coming: Figures | None = None
        self._due: dict[Plot, Figure] = {}  # in the order in which they are drawn
        self._turn = QTimer(self)  # without an interval it fires once in each turn
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._draw_next)

    def show_figures(self, figures: Figures, go_on: bool = False) -> None:
        """Show those that `figures` gives, one in each plot; it is not called while nobody can see them.

        `go_on` says that they are those on screen with more points: these stay for a moment. Others go at once.
        """
        self._coming = figures
        if self.isVisible():
            self._take()
            if go_on:
                self._draw_next()
            else:
                self._draw_all()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._take()
        self._draw_all()

    def _take(self) -> None:
        if self._coming is None:
            return
        figures = dict(zip(self._plots, self._coming(), strict=True))
        self._coming = None
        # A plot that waits for its turn keeps its place, so that none waits for ever.
        self._due = {plot: figures[plot] for plot in (*self._due, *self._plots)}

    def _draw_all(self) -> None:
        while self._due:
            self._draw_next()

    def _draw_next(self) -> None:
        plot = next(iter(self._due), None)
        if plot is None:
            return
        figure = self._due.pop(plot)
        if self._due:
            self._turn.start()
        plot.set_figure(figure)
