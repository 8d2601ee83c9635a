"""Plots beside each other where there is room, whose figures are made when they can be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.playground.pairs import Pairs
from attention_explorer.widgets.plot.figure import Figure
from attention_explorer.widgets.plot.plot import Plot

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
