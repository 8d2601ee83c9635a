"""Plots beside each other where there is room, whose figures are made when they can be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from explorer.panels.playground.pairs import Pairs
from explorer.widgets.plot.figure import Figure
from explorer.widgets.plot.plot import Plot

_TWO_COLUMNS = 760  # pixels
_GAP = 10

Figures = Callable[[], Iterable[Figure]]


class PlotGrid(Pairs):
    def __init__(self, plots: Sequence[Plot], parent: QWidget | None = None) -> None:
        super().__init__(plots, _TWO_COLUMNS, _GAP, parent)
        self._plots = tuple(plots)
        self._coming: Figures | None = None

    def show_figures(self, figures: Figures) -> None:
        """Show those that `figures` gives, one in each plot; it is not called while nobody can see them."""
        self._coming = figures
        if self.isVisible():
            self._draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._draw()

    def _draw(self) -> None:
        if self._coming is None:
            return
        for plot, figure in zip(self._plots, self._coming(), strict=True):
            plot.set_figure(figure)
        self._coming = None
