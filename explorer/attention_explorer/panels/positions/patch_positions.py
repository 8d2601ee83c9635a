"""The page of a vision model's learned positions: what they are, and the grid of maps with its colours."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from attention_explorer.colour_maps import ColourTable
from attention_explorer.panels.positions.patch_similarity import PatchSimilarity
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.page import scrolling, wrapped
from attention_models.protocol.positions import PatchPositionsView


class PatchPositions(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.grid = PatchSimilarity()
        self.bar = ColourBar("cosine")
        self.words = wrapped(role="dim")
        self._shown: tuple[PatchPositionsView | None, ColourTable | None] = (None, None)
        row = QHBoxLayout()
        row.addWidget(self.grid, 1)
        row.addWidget(self.bar)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 2, 6, 4)
        column.addLayout(row)
        column.addWidget(self.words)
        column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scrolling(page))

    def show_view(self, view: PatchPositionsView | None, table: ColourTable) -> None:
        """Show a comparison in the colours of `table`, from the least alike to the same; None while it is awaited."""
        if view is self._shown[0] and table is self._shown[1]:
            return
        self._shown = (view, table)
        self.words.setText("" if view is None else view.words)
        alike = None if view is None else view.alike
        self.grid.setVisible(alike is not None)
        self.bar.setVisible(alike is not None)
        if alike is not None:
            low = float(np.min(alike))
            self.grid.set_values(alike, low, 1.0, table)
            self.bar.set_colour_map(table)
            self.bar.set_range(low, 1.0)
