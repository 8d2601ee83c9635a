"""Plots beside each other where there is room, else under each other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from explorer.widgets.plot.plot import Plot

_TWO_COLUMNS = 760  # pixels from which on plots stand in pairs


class PlotGrid(QWidget):
    def __init__(self, plots: Sequence[Plot], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plots = tuple(plots)
        self._columns = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(10)
        self._arrange(1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(2 if self.width() >= _TWO_COLUMNS else 1)

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for number, plot in enumerate(self._plots):
            self._grid.removeWidget(plot)
            self._grid.addWidget(plot, number // columns, number % columns, Qt.AlignmentFlag(0))
