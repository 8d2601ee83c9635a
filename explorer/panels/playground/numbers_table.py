"""A table of numbers: as high as its rows, up to a bound."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

_MOST_LINES = 16
_GAP = 14  # pixels at the sides of a number
_ARROW = 16  # of the heading that is sorted by


class NumberItem(QTableWidgetItem):
    """Sorted by its value, not by how that is written."""

    def __init__(self, text: str, value: float | None = None, tip: str = "") -> None:
        super().__init__(text)
        self.setToolTip(tip)
        self._value = value
        self.setFlags(Qt.ItemFlag.ItemIsEnabled)
        side = Qt.AlignmentFlag.AlignLeft if value is None else Qt.AlignmentFlag.AlignRight
        self.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def __lt__(self, other: QTableWidgetItem) -> bool:
        if isinstance(other, NumberItem) and self._value is not None and other._value is not None:
            return self._value < other._value
        return self.text() < other.text()


class NumbersTable(QTableWidget):
    """The first column holds names; it takes what room is left."""

    def __init__(
        self, name: str, headings: Sequence[str], parent: QWidget | None = None, *, sorts: bool = False
    ) -> None:
        super().__init__(0, len(headings), parent)
        self.setAccessibleName(name)
        self.setHorizontalHeaderLabels(list(headings))
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QTableWidget.SelectionMode.NoSelection)
        self.setShowGrid(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSortingEnabled(sorts)
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setMinimumSectionSize(40)
        head.setVisible(any(headings))

    def show_rows(self, rows: Sequence[Sequence[NumberItem]]) -> None:
        """Show `rows`, in the order that a person chose by a click on a heading, else in theirs."""
        sorts = self.isSortingEnabled()
        self.setSortingEnabled(False)  # else rows would move while they are filled
        self.setRowCount(len(rows))
        for number, row in enumerate(rows):
            for column, item in enumerate(row):
                self.setItem(number, column, item)
        self.setSortingEnabled(sorts)
        for column in range(1, self.columnCount()):
            self.setColumnWidth(column, self._width_of(column))
        line = self.fontMetrics().height() + 8
        self.verticalHeader().setDefaultSectionSize(line)
        head = 0 if self.horizontalHeader().isHidden() else self.horizontalHeader().sizeHint().height()
        self.setFixedHeight(head + min(_MOST_LINES, len(rows)) * line)

    def _width_of(self, column: int) -> int:
        heading, metrics = self.horizontalHeaderItem(column), self.fontMetrics()
        texts = [item.text() for row in range(self.rowCount()) if (item := self.item(row, column)) is not None]
        width = max((metrics.horizontalAdvance(text) for text in texts), default=0)
        arrow = _ARROW if self.isSortingEnabled() else 0
        return _GAP + max(width, metrics.horizontalAdvance(heading.text() if heading else "") + arrow)
