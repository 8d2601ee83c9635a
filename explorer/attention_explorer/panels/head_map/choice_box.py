"""A drop-down that is as wide as what is chosen, so that the title beside it has room."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox


class ChoiceBox(QComboBox):
    """The open list shows every text whole."""

    def __init__(self) -> None:
        super().__init__()
        self.currentIndexChanged.connect(self.updateGeometry)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def sizeHint(self) -> QSize:
        metrics, hint = self.fontMetrics(), super().sizeHint()
        widest = max((metrics.horizontalAdvance(self.itemText(i)) for i in range(self.count())), default=0)
        return QSize(hint.width() - widest + metrics.horizontalAdvance(self.currentText()), hint.height())

    def offer(self, choices: Sequence[str]) -> None:
        """Grey all choices but these."""
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        for i in range(self.count()):
            model.item(i).setEnabled(self.itemData(i) in choices)

    def showPopup(self) -> None:
        self.view().setMinimumWidth(super().sizeHint().width())
        super().showPopup()
