"""Labelled bars in one group or several: probabilities of tokens or of classes, say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.items_widget import RowsWidget
from attention_explorer.widgets.token_text import isolated

_WIDEST_LABEL = 150.0
_NARROWEST_GROUP = 300.0  # pixels below which groups stand under each other
_GROUP_GAP = 24.0
_PAD = 8.0
_LEAST_BAR = 36.0  # of the full length: the details give way to it


@dataclass(frozen=True)
class BarRow:
    """One bar. `value` is between 0 and 1; `text` stands after the bar, `detail` dim at the right end."""

    label: str
    value: float
    text: str
    detail: str = ""
    emphasis: bool = False
    tooltip: str = ""
    before: float | None = None  # what `value` was before something was changed: an outline
    acts: bool = True  # whether choosing it does anything


@dataclass(frozen=True)
class BarGroup:
    """Rows under a heading."""

    heading: str
    rows: tuple[BarRow, ...]


@dataclass(frozen=True)
class _Columns:
    """The widths that the rows of one group share."""

    label: float
    text: float
    detail: float


def groups_beside(width: float) -> int:
    """How many groups have room beside each other."""
    return int((width + _GROUP_GAP) / (_NARROWEST_GROUP + _GROUP_GAP))


class BarList(RowsWidget):
    """Bars in one group or several; groups stand beside each other where there is room.

    Put it in a QScrollArea where its height may lack: a row that does not fit wholly is not drawn. Rows are counted
    through all groups. A click or Enter activates a row, Up and Down move between rows.
    """

    keys_choose = False
    row_activated = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Bars", parent)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._groups: tuple[BarGroup, ...] = ()
        self._rows: tuple[BarRow, ...] = ()
        self._rects: list[QRectF] = []
        self._headings: list[QRectF] = []

    def set_rows(self, rows: Sequence[BarRow], title: str = "") -> None:
        """Show one group of rows, under a title if there is one."""
        self.set_groups([BarGroup(title, tuple(rows))] if rows else [])

    def set_groups(self, groups: Sequence[BarGroup]) -> None:
        """Show several groups, each under its heading."""
        self._groups = tuple(groups)
        self._rows = tuple(row for group in self._groups for row in group.rows)
        self._keep_items()
        summary = (f"{row.label.strip()} {row.text}" for group in self._groups for row in group.rows[:10])
        self.setAccessibleDescription(", ".join(summary))
        self._look_changed()

    def row_rect(self, row: int) -> QRectF:
        """Where a row lies; an empty rectangle when there is no such row."""
        return self._rects[row] if 0 <= row < len(self._rects) else QRectF()

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(420, self.heightForWidth(max(self.width(), 420)))

    def minimumSizeHint(self) -> QSize:
        return QSize(220, round(4 * self._row_height()))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return math.ceil(max(self._place(width)[2], 3 * self._row_height()))

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 7

    def _place(self, width: float) -> tuple[list[QRectF], list[QRectF], float]:
        """Rectangles of the headings and of the rows, and the height of all."""
        beside = max(1, min(len(self._groups), groups_beside(width)))
        group_width = (width - (beside - 1) * _GROUP_GAP) / beside
        height = self._row_height()
        headings: list[QRectF] = []
        rows: list[QRectF] = []
        top = bottom = 0.0
        for index, group in enumerate(self._groups):
            if index and index % beside == 0:
                top = bottom + _PAD
            x, y = (index % beside) * (group_width + _GROUP_GAP), top
            headings.append(QRectF(x, y, group_width, height if group.heading else 0))
            y += headings[-1].height()
            for _ in group.rows:
                rows.append(QRectF(x, y, group_width, height))
                y += height
            bottom = max(bottom, y)
        return headings, rows, bottom

    def _look_changed(self) -> None:
        self._headings, self._rects, _ = self._place(self.width())
        super()._look_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._headings, self._rects, _ = self._place(self.width())

    def _columns(self, group: BarGroup) -> _Columns:
        plain, bold = QFontMetricsF(self.font()), QFontMetricsF(self.bold_font())
        label = max((bold.horizontalAdvance(row.label) for row in group.rows), default=0.0)
        text = max((bold.horizontalAdvance(row.text) for row in group.rows), default=0.0)
        detail = max((plain.horizontalAdvance(row.detail) for row in group.rows), default=0.0)
        return _Columns(min(label, _WIDEST_LABEL), text, detail)

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._rows:
            self._draw_empty_text(painter)
        index = 0
        for group, heading in zip(self._groups, self._headings, strict=True):
            if group.heading:
                painter.setFont(self.font())
                painter.setPen(QColor(self._theme.text_dim))
                rect = heading.adjusted(_PAD, 0, 0, 0)
                shown = QFontMetricsF(self.font()).elidedText(
                    isolated(group.heading), Qt.TextElideMode.ElideRight, rect.width()
                )
                painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, shown)
            columns = self._columns(group)
            for row in group.rows:
                rect = self._rects[index]
                if rect.bottom() <= self.height() and rect.intersects(QRectF(event.rect())):  # whole rows only
                    self._draw_row(painter, row, rect, columns, lit=self._is_lit(index))
                index += 1
        self._draw_focus_ring(painter)

    def _is_lit(self, index: int) -> bool:
        """Where the keyboard is, and where the pointer is on a row that it can choose."""
        return index == self._current or (index == self._hover and self.acts(index))

    def _draw_row(self, painter: QPainter, row: BarRow, rect: QRectF, columns: _Columns, lit: bool) -> None:
        theme = self._theme
        if lit:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface_hover))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 5, 5)
        font = self.bold_font() if row.emphasis else self.font()
        metrics = QFontMetricsF(font)
        middle, right = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute
        painter.setFont(font)
        painter.setPen(QColor(theme.text))
        label = metrics.elidedText(row.label, Qt.TextElideMode.ElideRight, columns.label + 1)
        label_rect = QRectF(rect.left() + _PAD, rect.top(), columns.label + 1, rect.height())
        painter.drawText(label_rect, middle | right, label)
        start = label_rect.right() + _PAD
        room = max(8.0, rect.right() - start - columns.text - 2 * _PAD)
        detail = min(columns.detail + _PAD, max(0.0, room - _LEAST_BAR)) if columns.detail else 0.0
        full = room - detail
        length = max(2.0, full * min(1.0, max(0.0, row.value)))
        bar = QRectF(start, rect.top() + 4, length, rect.height() - 8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.query if row.emphasis else theme.bar))
        painter.drawRoundedRect(bar, min(3.0, length / 2), 3)
        if row.before is not None:
            was = max(2.0, full * min(1.0, max(0.0, row.before)))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 1))
            painter.drawRoundedRect(QRectF(start, rect.top() + 4, was, rect.height() - 8), min(3.0, was / 2), 3)
            bar.setRight(max(bar.right(), start + was))
        painter.setPen(QColor(theme.text if row.emphasis else theme.text_dim))
        text_rect = QRectF(bar.right() + _PAD, rect.top(), columns.text + 2, rect.height())
        painter.drawText(text_rect, middle, row.text)
        painter.setFont(self.font())
        painter.setPen(QColor(theme.text_dim))
        free = QRectF(rect.right() - detail, rect.top(), max(0.0, detail - _PAD), rect.height())
        shown = QFontMetricsF(self.font()).elidedText(row.detail, Qt.TextElideMode.ElideRight, free.width() + 1)
        painter.drawText(free, middle | right, shown)

    # pointer and keyboard

    def acts(self, item: int) -> bool:
        return self._rows[item].acts

    def _choose(self, item: int) -> None:
        self.row_activated.emit(item)
