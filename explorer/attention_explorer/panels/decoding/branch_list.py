"""Branches of a text as an outline: one line a run of tokens, deeper where they fork."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.items_widget import RowsWidget

_PAD = 8.0
_INDENT = 16.0
_DEEPEST = 8  # further forks do not move to the right: there would be no room for the words


@dataclass(frozen=True)
class BranchRow:
    text: str
    depth: int
    value: str  # at the right end
    on_path: bool = False  # part of the text in view
    current: bool = False
    tooltip: str = ""


class BranchList(RowsWidget):
    """A click, or Up and Down, chooses a line; Delete and F2 are asked of the chosen one."""

    row_selected = Signal(int)
    delete_asked = Signal()
    name_asked = Signal()

    def __init__(self, name: str = "Branches", parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[BranchRow, ...] = ()

    def set_rows(self, rows: Sequence[BranchRow]) -> None:
        self._rows = tuple(rows)
        self._keep_items()
        self._current = next((i for i, row in enumerate(self._rows) if row.current), -1)
        self.setAccessibleDescription("; ".join(f"{row.text} {row.value}" for row in self._rows))
        self._look_changed()

    @property
    def rows(self) -> tuple[BranchRow, ...]:
        return self._rows

    def row_rect(self, row: int) -> QRectF:
        height = self._row_height()
        return QRectF(0, row * height, self.width(), height)

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 8

    def sizeHint(self) -> QSize:
        return QSize(360, round(max(3, len(self._rows)) * self._row_height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._rows:
            self._draw_empty_text(painter)
        for index in range(len(self._rows)):
            self._draw_row(painter, index)
        self._draw_focus_ring(painter)

    def _draw_row(self, painter: QPainter, index: int) -> None:
        theme, row, rect = self._theme, self._rows[index], self.row_rect(index)
        if index == self._hover or row.current:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface_hover))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 5, 5)
        left = _PAD + min(row.depth, _DEEPEST) * _INDENT
        bar = QRectF(left, rect.top() + 4, 3, rect.height() - 8)
        painter.setPen(QPen(QColor(theme.border), 1))
        for depth in range(min(row.depth, _DEEPEST)):
            x = _PAD + depth * _INDENT + 1.5
            painter.drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.query if row.on_path else theme.border_strong))
        painter.drawRoundedRect(bar, 1.5, 1.5)
        painter.setFont(self.bold_font() if row.current else self.font())
        metrics = QFontMetricsF(painter.font())
        number = metrics.horizontalAdvance(row.value) + _PAD
        words = rect.adjusted(left + _PAD, 0, -number - _PAD, 0)
        painter.setPen(QColor(theme.text if row.on_path else theme.text_dim))
        # the end of a branch tells more than its beginning
        shown = metrics.elidedText(row.text, Qt.TextElideMode.ElideMiddle, words.width())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, shown)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(rect.adjusted(0, 0, -_PAD, 0), flags, row.value)

    def _choose(self, item: int) -> None:
        self.row_selected.emit(item)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        asked = {Qt.Key.Key_Delete: self.delete_asked, Qt.Key.Key_F2: self.name_asked}.get(Qt.Key(event.key()))
        if asked is not None and self._current >= 0:
            asked.emit()
        else:
            super().keyPressEvent(event)
