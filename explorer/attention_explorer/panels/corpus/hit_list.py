"""The places where a head does most what is asked: each with the text before it, the two words, and the weight."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from attention_explorer.theme import LIGHT, Theme
from attention_explorer.widgets.token_text import in_lines, shortened
from attention_models.protocol.corpus import Hit

_HIT = Qt.ItemDataRole.UserRole
_ARROW = " → "


class HitList(QListWidget):
    """A click or Return opens one."""

    opened = Signal(object)
    """A `Hit`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Where the selected head does it most")
        self.setUniformItemSizes(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumSize(150, 60)
        self._lines = _Lines(self)
        self.setItemDelegate(self._lines)
        self._shown: tuple[Hit, ...] = ()
        self.itemClicked.connect(lambda item: self.opened.emit(item.data(_HIT)))

    def set_theme(self, theme: Theme) -> None:
        self._lines.theme = theme
        self.viewport().update()

    @property
    def hits(self) -> tuple[Hit, ...]:
        return self._shown

    @property
    def current_hit(self) -> Hit | None:
        """The one that the keyboard is on, else the first."""
        current = self.currentRow()
        return self._shown[max(current, 0)] if self._shown else None

    def show_hits(self, hits: Sequence[Hit]) -> None:
        """The highest score first. The one that the keyboard is on stays while it is among them."""
        if tuple(hits) == self._shown:
            return
        current = self.currentRow()
        before = self._shown[current] if 0 <= current < len(self._shown) else None
        self._shown = tuple(hits)
        self.clear()
        for hit in self._shown:
            item = QListWidgetItem(sentence(hit))
            item.setData(_HIT, hit)
            item.setToolTip(in_lines(f"Line {hit.line:,}: {hit.text}"))
            self.addItem(item)
        if before in self._shown:
            self.setCurrentRow(self._shown.index(before))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self.currentItem()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and item is not None:
            self.opened.emit(item.data(_HIT))
        else:
            super().keyPressEvent(event)


def sentence(hit: Hit) -> str:
    """As a screen reader says it."""
    return f"{hit.before} {hit.query_word}{_ARROW}{hit.key_word}   {numbers(hit)}"


def numbers(hit: Hit) -> str:
    """The weight, and the score of the row where other keys count too: "0.412 of 0.873"."""
    weight, score = f"{hit.weight:.3f}", f"{hit.score:.3f}"
    return weight if weight == score else f"{weight} of {score}"


class _Lines(QStyledItemDelegate):
    theme: Theme = LIGHT

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        hit: Hit = index.data(_HIT)
        box = QRectF(option.rect).adjusted(1, 1, -1, -1)
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            accent = QColor(self.theme.query)
            accent.setAlpha(55)
            painter.fillRect(box, accent)
            painter.setPen(QColor(self.theme.query))
            painter.drawRect(box)
        inner = box.adjusted(6, 0, -6, 0)
        plain, bold = painter.font(), QFont(painter.font())
        bold.setBold(True)
        metrics, wide = QFontMetricsF(plain), QFontMetricsF(bold)
        said = numbers(hit)
        number = metrics.horizontalAdvance(said) + 10
        painter.setPen(QColor(self.theme.text))
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, said)
        room = inner.width() - number
        words = [(shortened(hit.query_word), bold, self.theme.query), (_ARROW, plain, self.theme.text_dim)]
        words.append((shortened(hit.key_word), bold, self.theme.key))
        taken = sum((wide if font is bold else metrics).horizontalAdvance(text) for text, font, _ in words)
        ahead = metrics.elidedText(f"{hit.before} ", Qt.TextElideMode.ElideLeft, max(0.0, room - taken))
        parts = [(ahead, plain, self.theme.text_dim), *words]
        x = inner.left()
        for text, font, colour in parts:
            measured = wide if font is bold else metrics
            shown = measured.elidedText(text, Qt.TextElideMode.ElideRight, max(0.0, inner.left() + room - x))
            width = measured.horizontalAdvance(shown)
            painter.setFont(font)
            painter.setPen(QColor(colour))
            rect = QRectF(x, inner.top(), width + 2, inner.height())
            painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
            x += width
        painter.restore()
