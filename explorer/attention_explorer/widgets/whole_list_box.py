"""A drop-down that may be narrow, whose open list shows every entry whole."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QStyle

_MARGINS = 36  # around an entry, with the frame of the list


class WholeListBox(QComboBox):
    """Is as wide as its `minimumContentsLength` asks for, whatever its entries are."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)

    def showPopup(self) -> None:
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        self.view().setMinimumWidth(self.view().sizeHintForColumn(0) + bar + _MARGINS)
        super().showPopup()
