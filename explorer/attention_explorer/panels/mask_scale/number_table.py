"""Lines of a name and its number, before and after."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from attention_explorer.panels.mask_scale.labels import plain


class NumberTable(QWidget):
    """Lines of a name, a value before and a value after; the column before goes where nothing was changed."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(0, 1)
        self._headings = [plain("dim", wraps=False) for _ in range(2)]
        for column, text in enumerate(("before", "after")):
            self._headings[column].setText(text)
            self._grid.addWidget(self._headings[column], 0, column + 1, Qt.AlignmentFlag.AlignRight)
        self.rows: list[tuple[QLabel, QLabel, QLabel]] = []
        for line in range(3):
            name, before, after = plain(""), plain("dim", wraps=False), plain("title", wraps=False)
            for column, label in enumerate((name, before, after)):
                side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag(0)
                self._grid.addWidget(label, line + 1, column, side | Qt.AlignmentFlag.AlignVCenter if column else side)
            self.rows.append((name, before, after))
        self._compares = True

    def set_compares(self, compares: bool) -> None:
        self._compares = compares
        for label in (*self._headings, *(before for _, before, _ in self.rows)):
            label.setVisible(compares)

    def set_row(self, index: int, name: str, before: str, after: str) -> None:
        for label, text in zip(self.rows[index], (name, before, after), strict=True):
            label.setText(text)
        for label in self.rows[index]:
            label.setVisible(self._compares or label is not self.rows[index][1])

    def hide_row(self, index: int) -> None:
        for label in self.rows[index]:
            label.hide()
