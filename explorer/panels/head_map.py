"""The selected head's weights as a map: who looks at whom, and how much."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QVBoxLayout, QWidget

from explorer.panels.base import NO_HEADS, Panel, head_name, site_words, token_word, wanted_comparison, wanted_head
from explorer.session.hover import NOTHING, Hover, Pointed
from explorer.session.intents import PaintCells, SelectCell, SetView
from explorer.session.session import Session
from explorer.session.state import Normalisation, State, site_of
from explorer.theme import diverging, sequential
from explorer.widgets.card import Card
from explorer.widgets.colour_bar import ColourBar
from explorer.widgets.heat_map_brush import PaintableHeatMap
from models.requests import Request
from models.results import CompareView, HeadView

_SCALES: dict[Normalisation, tuple[str, str, str]] = {  # as listed, in full, and beside the colours
    "none": ("Weights", "Weights as they are", "weight"),
    "row": ("Rows / max", "Each row by its largest", "weight / max"),
    "column": ("Columns / max", "Each column by its largest", "weight / max"),
    "difference": ("Change", "Change by interventions", "change"),
}
_SCOPES = {"head": "in this head", "layer": "in every head of this layer", "everywhere": "in every head"}
_WAITING = "The weights of the selected head appear here when the model has run."


class _ScaleBox(QComboBox):
    """As wide as what is chosen, so that the title beside it has room; the open list shows every text whole."""

    def __init__(self) -> None:
        super().__init__()
        self.currentIndexChanged.connect(self.updateGeometry)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def sizeHint(self) -> QSize:
        metrics, hint = self.fontMetrics(), super().sizeHint()
        widest = max((metrics.horizontalAdvance(self.itemText(i)) for i in range(self.count())), default=0)
        return QSize(hint.width() - widest + metrics.horizontalAdvance(self.currentText()), hint.height())

    def showPopup(self) -> None:
        self.view().setMinimumWidth(super().sizeHint().width())
        super().showPopup()


class HeadMapPanel(Panel):
    name = "map"
    title = "Head"
    hint = "One head's attention weights: rows are the tokens that look, columns the tokens that are looked at."

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.map = PaintableHeatMap()
        self.map.set_empty_text(_WAITING)
        self.map.cell_selected.connect(lambda query, key: self.dispatch(SelectCell(query, key)))
        self.map.hovered.connect(self._on_hovered)
        self.map.stroke_painted.connect(self._on_stroke)
        self.map.brush_dropped.connect(lambda: self.dispatch(SetView("painting", "off")))
        self.bar = ColourBar()
        self.bar.hide()  # a range without values would be made up
        self.map.map_span_changed.connect(self.bar.set_span)
        self.scale = _ScaleBox()
        self.scale.setAccessibleName("Scaling of the colours")
        self.scale.setToolTip(
            "What the colours show: the weights, each row or column divided by its largest, or what changed"
        )
        for i, (choice, (label, meaning, _)) in enumerate(_SCALES.items()):
            self.scale.addItem(label, choice)
            self.scale.setItemData(i, meaning, Qt.ItemDataRole.ToolTipRole)
        self.scale.activated.connect(lambda i: self.dispatch(SetView("normalisation", self.scale.itemData(i))))
        body = QWidget()
        row = QHBoxLayout(body)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.map, 1)
        row.addWidget(self.bar)
        self.card = Card(self.title)
        self.card.add_control(self.scale)
        self.card.set_content(body)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.card)
        self._shown: tuple[HeadView | CompareView | None, Normalisation] = (None, "none")
        self._table = sequential()
        self._values: np.ndarray | None = None  # (queries, keys) as coloured

    def wants(self, state: State) -> Request | None:
        wanted = wanted_head(state)
        return wanted_comparison(state) if wanted is None and _shows_change(state) else wanted

    def render_state(self, state: State, old: State | None) -> None:
        options, selection = state.document.view, state.selection
        self.scale.setCurrentIndex(self.scale.findData(options.normalisation))
        self._render_weights(state)
        self.map.set_selection(selection.query, selection.key)
        self.card.set_title(head_name(state) if state.site is not None else self.title)
        word = token_word(state, selection.query)
        self.map.set_brush(options.painting)
        self.map.set_painted(state.painted_cells)
        if options.painting != "off":
            self.card.set_subtitle(f"drag to {options.painting} cells {_SCOPES[options.edit_scope]}")
        else:
            self.card.set_subtitle(f"where “{word}” looks" if word and state.site is not None else "")

    def _render_weights(self, state: State) -> None:
        no_heads = state.ran is not None and not state.ran.sites
        self.map.set_empty_text(NO_HEADS if no_heads else _WAITING)
        results, ran, how = state.results, state.ran, state.document.view.normalisation
        view: HeadView | CompareView | None = results.comparison if _shows_change(state) else results.head
        table = diverging() if _shows_change(state) else sequential(state.document.view.colour_map)
        if (view, how) == self._shown and table is self._table:
            return
        if view is None or ran is None:
            self._shown, self._table, self._values = (view, how), table, None
            self.map.set_values(None, None, (), (), 0.0, 1.0)
            self.bar.hide()
            return
        site = site_of(ran, view.site)
        if view.run != ran.run or site is None:
            return  # the last picture stays until the new one is here
        self._shown, self._table = (view, how), table
        if isinstance(view, CompareView):
            self._values, masked, high = view.difference, None, view.largest_difference or 1.0
        else:
            self._values, masked = normalised(view.weights, how), view.masked
            high = float(self._values.max(initial=0.0)) or 1.0
        low = -high if isinstance(view, CompareView) else 0.0
        rows, columns = site_words(ran, site)
        self.map.value_name = "changed by" if isinstance(view, CompareView) else ""
        self.map.set_colour_map(table)
        self.map.set_values(self._values, masked, rows, columns, low, high)
        self.bar.show()
        self.bar.set_colour_map(table)
        self.bar.set_range(low, high)
        self.bar.set_label(_SCALES[how][2])

    def render_hover(self, pointed: Pointed) -> None:
        self.map.set_hover(pointed.query, pointed.key)
        values = self._values
        inside = values is not None and 0 <= pointed.query < values.shape[0] and 0 <= pointed.key < values.shape[1]
        self.bar.set_marker(float(values[pointed.query, pointed.key]) if inside and values is not None else None)

    def _on_stroke(self, cells: tuple[tuple[int, int], ...]) -> None:
        self.dispatch(PaintCells(cells, allow=self.session.state.document.view.painting == "allow"))

    def _on_hovered(self, query: int, key: int) -> None:
        self.hover.point(Pointed(query=query, key=key) if query >= 0 else NOTHING)


def normalised(weights: np.ndarray, how: Normalisation) -> np.ndarray:
    """(queries, keys) weights divided by the largest of their row or column; a row or column of zeros stays so."""
    if how in ("none", "difference"):
        return weights
    largest = weights.max(axis=1 if how == "row" else 0, keepdims=True)
    scaled: np.ndarray = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0)
    return scaled


def _shows_change(state: State) -> bool:
    return state.document.view.normalisation == "difference"
