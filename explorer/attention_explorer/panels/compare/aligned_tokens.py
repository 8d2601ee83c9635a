"""Which token of one text stands for which of another: A's above, B's below, and a line between those that are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy

from attention_explorer.text_size import wide
from attention_explorer.widgets.items_widget import RowsWidget
from attention_explorer.widgets.token_text import shortened

_PAD = 6.0
_GAP = 6.0
_BETWEEN = 10.0  # pixels between the two rows
_LETTER = 20.0


@dataclass(frozen=True)
class AlignedWords:
    """One place: what each text has there, "" for nothing, and whether they are the same."""

    a: str
    b: str
    same: bool

    @property
    def tooltip(self) -> str:
        if not self.a or not self.b:
            return f"“{shortened(self.a or self.b)}”: only in {'A' if self.a else 'B'}"
        if self.same:
            return f"“{shortened(self.a)}”: in both"
        return f"“{shortened(self.a)}” of A stands where B has “{shortened(self.b)}”"


class AlignedTokens(RowsWidget):
    """A click, or Left and Right, chooses a place. As wide as its words: it stands in an area that scrolls sideways."""

    axis: ClassVar[Qt.Orientation] = Qt.Orientation.Horizontal

    place_selected = Signal(int)

    def __init__(self) -> None:
        super().__init__("How the tokens are aligned")
        self.setSizePolicy(QSizePolicy.Policy.MinimumExpanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[AlignedWords, ...] = ()
        self._edges: tuple[float, ...] = (0.0,)

    def set_places(self, places: Sequence[AlignedWords]) -> None:
        if tuple(places) == self._rows:
            return
        self._rows = tuple(places)
        self._keep_items()
        self.setAccessibleDescription("; ".join(place.tooltip for place in self._rows if not place.same))
        self._look_changed()

    def set_current(self, place: int) -> None:
        """Frame a place; emits nothing."""
        if place != self._current:
            self._current = place
            self.update()

    def _look_changed(self) -> None:
        metrics = QFontMetricsF(self.font())
        widths = (max(metrics.horizontalAdvance(word) for word in (p.a, p.b)) + 2 * _PAD + _GAP for p in self._rows)
        self._edges = tuple(accumulate(widths, initial=_LETTER))
        self.setMinimumWidth(round(self._edges[-1]) + 1)
        super()._look_changed()

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 4

    def sizeHint(self) -> QSize:
        return QSize(round(self._edges[-1]) + 1, round(2 * self._row_height() + _BETWEEN + 2))

    def row_rect(self, row: int) -> QRectF:
        left, right = self._edges[row], self._edges[row + 1]
        return QRectF(left, 0, right - left - _GAP, 2 * self._row_height() + _BETWEEN)

    def _choose(self, item: int) -> None:
        self.set_current(item)
        self.place_selected.emit(item)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        height, theme = self._row_height(), self._theme
        painter.setPen(QColor(theme.text_dim))
        for letter, top in (("A", 0.0), ("B", height + _BETWEEN)):
            painter.drawText(QRectF(0, top, _LETTER, height), Qt.AlignmentFlag.AlignVCenter, letter)
        seen = QRectF(event.rect())
        for index, place in enumerate(self._rows):
            rect = self.row_rect(index)
            if rect.right() >= seen.left() and rect.left() <= seen.right():
                self._draw_place(painter, index, place, rect, height)
        self._draw_focus_ring(painter)

    def _draw_place(self, painter: QPainter, index: int, place: AlignedWords, rect: QRectF, height: float) -> None:
        theme, is_current = self._theme, index in (self._current, self._hover)
        above = QRectF(rect.left(), rect.top(), rect.width(), height)
        below = above.translated(0, height + _BETWEEN)
        marked = QColor(theme.warning)
        for word, box in ((place.a, above), (place.b, below)):
            missing = not word
            frame = marked if missing or not place.same else QColor(theme.border_strong if is_current else theme.border)
            pen = QPen(frame, wide(2.0 if is_current else 1.0))
            pen.setStyle(Qt.PenStyle.DashLine if missing else Qt.PenStyle.SolidLine)
            painter.setPen(pen)
            painter.setBrush(QColor(theme.surface if missing else theme.surface_alt))
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 5, 5)
            painter.setPen(QColor(theme.text))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, word)
        if place.a and place.b:
            painter.setPen(
                QPen(QColor(theme.border_strong) if place.same else marked, wide(2.0 if is_current else 1.2))
            )
            x = above.center().x()
            painter.drawLine(QPointF(x, above.bottom() + 1), QPointF(x, below.top() - 1))
