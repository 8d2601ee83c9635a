"""The pages of the Corpus panel: given values, they draw them and tell what a person does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.colour_maps import ColourTable
from attention_explorer.panels.corpus.figures import MeanMap
from attention_explorer.panels.corpus.hit_list import HitList
from attention_explorer.panels.corpus.token_rows import TokenRow, TokenRows
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.flow_layout import FlowLayout
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.ranking import Ranked, Ranking
from attention_models.protocol.corpus import Hit

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
