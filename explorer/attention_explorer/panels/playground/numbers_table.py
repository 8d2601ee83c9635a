"""A table of numbers: as high as its rows, up to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QFrame, QHeaderView, QTableView, QWidget

Index = QModelIndex | QPersistentModelIndex

_MOST_LINES = 16
_GAP = 14  # pixels at the sides of a number
_ARROW = 16  # of the heading that is sorted by
_UNDER_ARROW = "\N{EM SPACE}"  # Qt paints the arrow over what is aligned to the right
_MEASURED = 4  # texts of a column, the longest: the widest is one of them, as digits are equally wide


@dataclass(frozen=True, slots=True)
class Entry:
    """What one cell says. A number is sorted by its `value`, not by how that is written."""

    text: str
    value: float | None = None
    tip: str = ""


class _Entries(QAbstractTableModel):
    def __init__(self, headings: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.headings = tuple(headings)
        self.rows: list[Sequence[Entry]] = []
        self._by: tuple[int, Qt.SortOrder] | None = None

    def show(self, rows: Sequence[Sequence[Entry]]) -> None:
        self.beginResetModel()
        self.rows = [*rows]
        self._put_in_order()
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.headings)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry = self.rows[index.row()][index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return entry.text
            case Qt.ItemDataRole.ToolTipRole:
                return entry.tip or None
            case Qt.ItemDataRole.TextAlignmentRole:
                side = Qt.AlignmentFlag.AlignLeft if entry.value is None else Qt.AlignmentFlag.AlignRight
                return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation == Qt.Orientation.Vertical:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if section else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        is_sorted_by = self._by is not None and self._by[0] == section
        return self.headings[section] + (_UNDER_ARROW if is_sorted_by else "")

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._by = (column, order) if column >= 0 else None
        self.layoutAboutToBeChanged.emit()
        self._put_in_order()
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.headings) - 1)

    def _put_in_order(self) -> None:
        if self._by is None:
            return
        column, order = self._by
        self.rows.sort(
            key=lambda row: (0.0 if (value := row[column].value) is None else value, row[column].text),
            reverse=order == Qt.SortOrder.DescendingOrder,
        )


class NumbersTable(QTableView):
    """The first column holds names; it takes what room is left."""

    def __init__(
        self, name: str, headings: Sequence[str], parent: QWidget | None = None, *, sorts: bool = False
    ) -> None:
        super().__init__(parent)
        self._entries = _Entries(headings, self)
        self.setModel(self._entries)
        self.setAccessibleName(name)
        self.setSelectionMode(QTableView.SelectionMode.NoSelection)
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

    @property
    def texts(self) -> list[list[str]]:
        """What it says, in the order of its rows."""
        return [[entry.text for entry in row] for row in self._entries.rows]

    def show_rows(self, rows: Sequence[Sequence[Entry]]) -> None:
        """Show `rows`, in the order that a person chose by a click on a heading, else in theirs."""
        self._entries.show(rows)
        for column in range(1, self._entries.columnCount()):
            self.setColumnWidth(column, self._width_of(column))
        line = self.fontMetrics().height() + 8
        self.verticalHeader().setDefaultSectionSize(line)
        head = 0 if self.horizontalHeader().isHidden() else self.horizontalHeader().sizeHint().height()
        self.setFixedHeight(head + min(_MOST_LINES, len(rows)) * line)

    def _width_of(self, column: int) -> int:
        metrics = self.fontMetrics()
        longest = sorted((row[column].text for row in self._entries.rows), key=len)[-_MEASURED:]
        width = max((metrics.horizontalAdvance(text) for text in longest), default=0)
        arrow = _ARROW if self.isSortingEnabled() else 0
        return _GAP + max(width, metrics.horizontalAdvance(self._entries.headings[column]) + arrow)
