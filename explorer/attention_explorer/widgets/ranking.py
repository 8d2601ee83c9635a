"""Heads in the order of a score, with bars, and what is known of the score."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.widgets.page import scrolling, wrapped

_SCORE, _HEAD = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
Ranked = tuple[int, int, str, float]
"""A row and a column that name a head, what it is called, and its score."""


class Ranking(QWidget):
    """A click or the arrow keys choose a head."""

    head_chosen = Signal(int, int)  # row, column

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.list = QListWidget()
        self.list.setAccessibleName("Heads, the highest score first")
        self.list.setUniformItemSizes(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._bars = _Bars(self.list)
        self.list.setItemDelegate(self._bars)
        self.list.currentItemChanged.connect(self._on_current)
        self.page = wrapped(role="dim")
        self._area = scrolling(self.page)
        self.list.setMinimumSize(150, 60)
        self.parts = QSplitter(Qt.Orientation.Vertical)
        self.parts.addWidget(self.list)
        self.parts.addWidget(self._area)
        self.parts.setStretchFactor(0, 1)
        self.parts.setSizes([120, 70])
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.parts)
        self._shown: tuple[Ranked, ...] = ()

    def sizeHint(self) -> QSize:
        return QSize(210, 190)

    def set_theme(self, theme: Theme) -> None:
        self._bars.theme = theme
        self.list.viewport().update()

    def show_heads(self, heads: Sequence[Ranked], low: float, high: float, even: float | None) -> None:
        """The highest score first; `even` is marked on every bar."""
        self._bars.low, self._bars.high, self._bars.even = low, high, even
        if tuple(heads) != self._shown:
            self._shown = tuple(heads)
            with QSignalBlocker(self.list):
                self.list.clear()
                for row, column, name, score in heads:
                    item = QListWidgetItem(f"{name}   {score:.3f}")
                    item.setData(_SCORE, score)
                    item.setData(_HEAD, (row, column))
                    self.list.addItem(item)
        self.list.viewport().update()

    def show_page(self, text: str) -> None:
        """What the score is, and what it does not show."""
        self.page.setText(text)
        self._area.setVisible(bool(text))

    def mark(self, row: int, column: int) -> None:
        """Select a head. Emits nothing."""
        place = next((i for i, one in enumerate(self._shown) if one[:2] == (row, column)), -1)
        with QSignalBlocker(self.list):
            self.list.setCurrentRow(place)

    def _on_current(self, item: QListWidgetItem | None, _before: QListWidgetItem | None) -> None:
        if item is not None:
            row, column = item.data(_HEAD)
            self.head_chosen.emit(row, column)


class _Bars(QStyledItemDelegate):
    """Draws how far a score reaches behind its text."""

    theme: Theme = LIGHT
    low, high = 0.0, 1.0
    even: float | None = None

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        box = QRectF(option.rect).adjusted(1, 1, -1, -1)
        is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        accent = QColor(self.theme.query)
        accent.setAlpha(110 if is_chosen else 55)
        start, end = sorted((self._x(0.0, box), self._x(float(index.data(_SCORE)), box)))
        painter.fillRect(QRectF(start, box.top(), max(1.0, end - start), box.height()), accent)
        if is_chosen:
            painter.setPen(QColor(self.theme.query))
            painter.drawRect(box)
        painter.setPen(QColor(self.theme.text))
        name, _, score = str(index.data()).rpartition("   ")
        inner = box.adjusted(6, 0, -6, 0)
        if self.even is not None:
            self._mark_even(painter, self._x(self.even, box), box, inner, (name, score))
            painter.setPen(QColor(self.theme.text))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(inner, Qt.AlignmentFlag.AlignLeft | middle, name)
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | middle, score)
        painter.restore()

    def _mark_even(self, painter: QPainter, x: float, box: QRectF, inner: QRectF, texts: tuple[str, str]) -> None:
        """A line at `x`; where a text stands there only above and below it."""
        metrics = QFontMetricsF(painter.font())
        name, score = (metrics.horizontalAdvance(text) + 3 for text in texts)
        is_free = inner.left() + name < x < inner.right() - score
        around = max(0.0, (box.height() - metrics.height()) / 2 + 1)
        broken = ((box.top(), around), (box.bottom() - around, around))
        for top, height in ((box.top(), box.height()),) if is_free else broken:
            painter.fillRect(QRectF(x, top, 1.5, height), QColor(self.theme.text_dim))

    def _x(self, value: float, box: QRectF) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return box.left() + min(max(share, 0.0), 1.0) * box.width()
