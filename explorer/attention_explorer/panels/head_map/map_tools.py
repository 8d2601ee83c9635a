"""What stands above a map too large to be seen at once: its overview, finding a token, and what a square stands for."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QWidget

from attention_explorer.panels.head_map.find_bar import FindBar
from attention_explorer.panels.head_map.mini_map import MiniMap
from attention_explorer.widgets.elided_label import ElidedLabel

_POOLINGS = {
    "max": ("largest", "Squares show the largest of their weights: nothing strong is lost"),
    "mean": ("mean", "Squares show the mean of their weights"),
}


class MapTools(QWidget):
    """Knows nothing of the map: `overview` and `search` say what a person asks for."""

    pooling_chosen = Signal(str)  # "max" or "mean"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.overview = MiniMap()
        self.search = FindBar()
        self.detail = ElidedLabel()
        self.detail.setProperty("role", "dim")
        self.pooling = QComboBox()
        self.pooling.setAccessibleName("What a square shows")
        self.pooling.setToolTip("What a square of many weights shows; the thumbnails of all heads are pooled alike")
        for how, (word, meaning) in _POOLINGS.items():
            self.pooling.addItem(word, how)
            self.pooling.setItemData(self.pooling.count() - 1, meaning, Qt.ItemDataRole.ToolTipRole)
        self.pooling.activated.connect(lambda i: self.pooling_chosen.emit(self.pooling.itemData(i)))
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(4)
        grid.addWidget(self.overview, 0, 0, 2, 1)
        grid.addWidget(self.search, 0, 1)
        below = QHBoxLayout()
        below.setSpacing(8)
        below.addWidget(self.search.position)
        below.addWidget(self.pooling)
        below.addWidget(self.detail, 1)
        grid.addLayout(below, 1, 1)
        grid.setColumnStretch(1, 1)

    def show_detail(self, pooling: str, cell: int) -> None:
        """Say what one square of the map is: of `cell` x `cell` weights the largest, or their mean."""
        self.pooling.setCurrentIndex(self.pooling.findData(pooling))
        self.pooling.setEnabled(cell > 1)
        self.detail.setText("each weight as it is" if cell == 1 else f"of {cell:,} × {cell:,} weights a square")
        word = _POOLINGS[pooling][0]
        more = f"Each square is the {word} of {cell:,} × {cell:,} weights. Zoom in for more detail."
        self.detail.setToolTip("Every weight is drawn, none is pooled." if cell == 1 else more)
