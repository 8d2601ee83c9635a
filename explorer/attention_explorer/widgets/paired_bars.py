"""Labelled pairs of bars: a share before and after a change, or in two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.themed import ThemedWidget

_WIDEST_LABEL = 130.0
_PAD = 8.0
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignAbsolute


@dataclass(frozen=True)
class PairedRow:
    """A pair. The values lie between 0 and 1; their texts stand at the right, under the column headings."""

    label: str
    before: float
    after: float
    before_text: str
    after_text: str


class PairedBars(ThemedWidget):
    """For each row a thin pale bar (before) above a strong one (after), with both numbers in columns at the right.

    Where `set_rows` is told that nothing changed there is one bar and one column. `headings` stand above the columns.
    """

    def __init__(
        self, name: str, parent: QWidget | None = None, headings: tuple[str, str] = ("before", "after")
    ) -> None:
        super().__init__(name, parent)
        self._headings = headings
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do here with a keyboard
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[PairedRow, ...] = ()
        self._compares = True

    def set_rows(self, rows: Sequence[PairedRow], compares: bool = True) -> None:
        """Show `rows`; without `compares` the values before are left out, being the same."""
        self._rows, self._compares = tuple(rows), compares
        texts = (f"{r.label.strip()} {r.before_text} to {r.after_text}" for r in self._rows)
        plain = (f"{r.label.strip()} {r.after_text}" for r in self._rows)
        self.setAccessibleDescription(", ".join(texts if compares else plain))
        self._look_changed()

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _row_height(self) -> float:
        return self._line() + 8

    def _top(self, row: int) -> float:
        """Where a row begins, below the headings."""
        return (self._line() + 4 if self._compares else 0) + row * self._row_height()

    def down_to(self, row: int) -> int:
        """The pixels from the top to the foot of a row, or of the last one that there is."""
        return round(self._top(min(row + 1, len(self._rows))))

    def sizeHint(self) -> QSize:
        return QSize(320, round(self._top(max(1, len(self._rows)))))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.sizeHint().height())

    def bar_rects(self, row: int) -> tuple[QRectF, QRectF]:
        """Where the bars of a row lie: before (empty where nothing is compared) and after."""
        metrics = QFontMetricsF(self.bold_font())
        label = min(max((metrics.horizontalAdvance(r.label) for r in self._rows), default=0.0), _WIDEST_LABEL)
        start = label + 2 * _PAD
        full = max(8.0, self.width() - start - (2 if self._compares else 1) * self._column() - _PAD)
        top = self._top(row)
        chosen = self._rows[row]
        before, after = (max(2.0, full * min(1.0, max(0.0, v))) for v in (chosen.before, chosen.after))
        if not self._compares:
            return QRectF(), QRectF(start, top + 4, after, self._row_height() - 8)
        thin = (self._row_height() - 6) * 0.36
        strong = self._row_height() - 8 - thin
        return QRectF(start, top + 3, before, thin), QRectF(start, top + 4 + thin, after, strong)

    def _column(self) -> float:
        metrics = QFontMetricsF(self.bold_font())
        texts = [t for r in self._rows for t in (r.before_text, r.after_text)]
        if self._compares:
            texts += self._headings
        return max((metrics.horizontalAdvance(t) for t in texts), default=0.0) + _PAD

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._rows:
            self._draw_empty_text(painter)
            return
        theme, column, line = self._theme, self._column(), self._line()
        if self._compares:
            painter.setPen(QColor(theme.text_dim))
            painter.drawText(QRectF(self.width() - 2 * column, 0, column, line), _RIGHT, self._headings[0])
            painter.drawText(QRectF(self.width() - column, 0, column, line), _RIGHT, self._headings[1])
        for index, row in enumerate(self._rows):
            before, after = self.bar_rects(index)
            top, height = self._top(index), self._row_height()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.border_strong))
            if self._compares:
                painter.drawRoundedRect(before, 2, 2)
            painter.setBrush(QColor(theme.bar))
            painter.drawRoundedRect(after, 2, 2)
            painter.setFont(self.font())
            painter.setPen(QColor(theme.text))
            label = QRectF(0, top, after.left() - _PAD, height)
            shown = QFontMetricsF(self.font()).elidedText(row.label, Qt.TextElideMode.ElideRight, label.width())
            painter.drawText(label, _RIGHT, shown)
            if self._compares:
                painter.setPen(QColor(theme.text_dim))
                painter.drawText(QRectF(self.width() - 2 * column, top, column, height), _RIGHT, row.before_text)
            painter.setFont(self.bold_font())
            painter.setPen(QColor(theme.text))
            painter.drawText(QRectF(self.width() - column, top, column, height), _RIGHT, row.after_text)
