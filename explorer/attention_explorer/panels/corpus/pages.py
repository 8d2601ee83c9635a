"""The pages of the Corpus panel: given values, they draw them and tell what a person does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.colour_maps import ColourTable
from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.panels.corpus.figures import MeanMap
from attention_explorer.panels.corpus.token_rows import TokenRow, TokenRows
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.ranking import Ranked, Ranking
from attention_explorer.widgets.token_text import in_lines, shortened
from attention_models.protocol.corpus import Hit

# The places where a head does most what is asked: each with the text before it, the two words, and the weight.


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


_WIDE_LETTERS = 80  # from which on the ranking has room beside the places
_RANKING_LETTERS = 26
_NARROWEST = 150  # pixels
_BEFORE_TOKEN = 0.7  # of the width: room for what comes before the token whose rows are compared
_HITS = "Where it does: query → key, weight. A click opens the text."
_NO_HITS = "No text read so far has a place where this head does it."


class OnePage(QStackedWidget):
    """Takes the room there is, and asks for no more than the page that is shown needs."""

    def hasHeightForWidth(self) -> bool:
        return False  # that of its pages is what they would like to have

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        shown = self.currentWidget()
        return QSize() if shown is None else shown.minimumSizeHint()


class MapPage(QWidget):
    """Mean weights between places of the texts."""

    def __init__(self) -> None:
        super().__init__()
        self.map = HeatMap()
        self.map.absent_name = "in no text"
        self.map.wheel_zooms = False  # a low window scrolls the panel
        self.map.note_of = self._note_of
        self.map.cell_selected.connect(self.map.set_selection)
        self.bar = ColourBar("mean weight")
        self.map.map_span_changed.connect(self.bar.set_span)
        self.shown: MeanMap | None = None
        _beside(self, self.map, self.bar)

    def show_map(self, found: MeanMap | None, empty: str, table: ColourTable) -> None:
        """None shows the `empty` text."""
        self.shown = found
        self.map.set_empty_text(empty)
        self.map.set_colour_map(table)
        self.bar.setVisible(found is not None)
        if found is None:
            self.map.set_values(None, None, (), (), 0.0, 1.0)
            return
        rows, columns = ([str(place) for place in range(count)] for count in found.values.shape)
        self.map.set_values(found.values, found.masked, rows, columns, 0.0, found.high)
        self.bar.set_colour_map(table)
        self.bar.set_range(0.0, found.high)

    def _note_of(self, query: int, key: int) -> str:
        return "" if self.shown is None else self.shown.note(query, key)


class PlacesPage(QWidget):
    """The heads in the order of their scores, and the places of one of them."""

    def __init__(self, question: QWidget) -> None:
        super().__init__()
        self.ranking, self.hits = Ranking(), HitList()
        self.title, self.nothing = wrapped(role="dim"), wrapped(role="dim")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        listed = QWidget()
        _below(listed, self.title, self.hits)
        self.parts = QSplitter(Qt.Orientation.Horizontal)
        self.parts.addWidget(self.ranking)
        self.parts.addWidget(listed)
        self.parts.setChildrenCollapsible(False)
        self.parts.setStretchFactor(0, 2)
        self.parts.setStretchFactor(1, 3)
        self.either = QStackedWidget()
        self.either.addWidget(self.nothing)
        self.either.addWidget(self.parts)
        self.ranking.show_page("")
        _below(self, question, self.either)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        letter = self.fontMetrics().averageCharWidth()
        wide = self.width() >= _WIDE_LETTERS * letter
        orientation = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if orientation != self.parts.orientation():
            self.parts.setOrientation(orientation)
            self.parts.setSizes([200, 300])  # in parts of what there is
        self.ranking.list.setMinimumWidth(_RANKING_LETTERS * letter if wide else _NARROWEST)
        self._fit_title()

    def say(self, why: str) -> None:
        """Why there is nothing to list."""
        self.nothing.setText(why)
        self.either.setCurrentIndex(0)

    def show_heads(self, heads: Sequence[Ranked], even: float | None, chosen: tuple[int, int]) -> None:
        """The highest score first; `chosen` is the layer and head whose places are listed."""
        self.either.setCurrentIndex(1)
        self.ranking.show_heads(heads, 0.0, max(score for *_, score in heads) or 1.0, even)
        self.ranking.mark(*chosen)

    def show_hits(self, hits: Sequence[Hit], tooltip: str) -> None:
        self.hits.show_hits(hits)
        self.title.setText(_HITS if hits else _NO_HITS)
        self.title.setToolTip(tooltip)
        self._fit_title()

    def _fit_title(self) -> None:
        """Where there is little room the list says itself what it is."""
        self.title.setVisible(self.parts.orientation() == Qt.Orientation.Horizontal or not self.hits.hits)


class RowsPage(QWidget):
    """What one token attends to, text by text."""

    def __init__(self, question: QWidget) -> None:
        super().__init__()
        self.rows = TokenRows()
        self.area = QScrollArea()
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside takes the keyboard, and shows it
        self.area.setWidget(self.rows)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.horizontalScrollBar().valueChanged.connect(self.rows.update)  # its labels keep to the left
        self.bar = ColourBar()
        shown = QWidget()
        _beside(shown, self.area, self.bar)
        _below(self, question, shown)

    def show_rows(self, rows: Sequence[TokenRow], word: str, empty: str, table: ColourTable) -> None:
        """Without rows the `empty` text is shown."""
        before = self.rows.place_of_token()
        high = max((float(np.nanmax(row.weights, initial=0.0)) for row in rows), default=1.0) or 1.0
        self.rows.set_empty_text(empty)
        self.rows.show_rows(rows, word, high, table)
        self.bar.setVisible(bool(rows))
        self.bar.set_colour_map(table)
        self.bar.set_range(0.0, high)
        if self.rows.place_of_token() != before:
            QTimer.singleShot(0, self, self._show_token)  # once the rows are laid out

    def _show_token(self) -> None:
        """Scroll to where the token stands in every row."""
        room = self.area.viewport().width()
        self.area.horizontalScrollBar().setValue(round(self.rows.place_of_token() - _BEFORE_TOKEN * room))


class OpenedLine(QWidget):
    """Which place is in the input, and the way back."""

    def __init__(self) -> None:
        super().__init__()
        self.text = QLabel()
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.back = QPushButton("Back")
        self.back.setToolTip("Put back what was in the input before a place was opened")
        self.look = QPushButton("Show in Head")
        self.look.setToolTip("Bring the Head panel to the front, where the cell is selected")
        flow = FlowLayout(self, gap=8)
        for widget in (self.text, self.back, self.look):
            flow.addWidget(widget)
        self.hide()


def _beside(place: QWidget, widget: QWidget, bar: QWidget) -> None:
    """Give `widget` the room of `place`, with a bar at its right."""
    row = QHBoxLayout(place)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(8)
    row.addWidget(widget, 1)
    row.addWidget(bar)


def _below(place: QWidget, line: QWidget, widget: QWidget) -> None:
    """Give `widget` the room of `place`, with a line above it."""
    column = QVBoxLayout(place)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(6)
    column.addWidget(line)
    column.addWidget(widget, 1)
