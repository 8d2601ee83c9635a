"""The selected head's map as interventions changed it: the change, or the weights before and after."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from attention_explorer.colour_maps import ColourTable, diverging, sequential
from attention_explorer.panels.mask_scale.labels import plain
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.segments import Segments
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.values import Tile, top_level

CHANGE, BEFORE, AFTER = range(3)

_HEIGHT = 320
_CHOICES = (
    ("Change", "What was added to each weight, or taken from it"),
    ("Before", "The weights of the model as it is"),
    ("After", "The weights with the interventions that are on"),
)
_SQUARE = {CHANGE: "the largest change", BEFORE: "the largest", AFTER: "the largest"}


class ChangeMap(QWidget):
    """Three maps in one place, of which a person chooses. That of a long text is a picture of squares of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.choice = Segments(_CHOICES, "What the map shows", wraps=True)
        self.choice.chosen.connect(lambda _: self._show())
        self.map = HeatMap()
        self.map.setAccessibleName("Map of changes")
        self.map.wheel_zooms = False
        self.map.is_brief = True  # the note says it
        self.map.setMinimumWidth(160)  # a panel beside large text is narrow, and never scrolls sideways
        self.bar = ColourBar("change")
        self.map.map_span_changed.connect(self.bar.set_span)
        self.note = plain()
        self.map_row = QWidget()
        self.map_row.setFixedHeight(_HEIGHT)
        row = QHBoxLayout(self.map_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.map, 1)
        row.addWidget(self.bar)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for part in (self.choice, self.map_row, self.note):
            column.addWidget(part)
        self._view: CompareView | None = None
        self._words: tuple[list[str], list[str]] = ([], [])
        self._weights = sequential()  # how weights are coloured elsewhere

    def show_view(self, view: CompareView, words: tuple[list[str], list[str]], weights: ColourTable) -> None:
        """Show a comparison. `words` name its queries and keys, `weights` is the colour map of weights."""
        if view is self._view and weights is self._weights:
            return
        self._view, self._words, self._weights = view, words, weights
        self._show()

    def show_hover(self, query: int, key: int) -> None:
        self.map.set_hover(query, key)
        self.bar.set_marker(self._value_at(query, key))

    def _show(self) -> None:
        view, which = self._view, self.choice.current
        if view is None:
            return
        values, masked = self._picture(view, which)
        table = diverging() if which == CHANGE else self._weights
        # the two maps of weights are coloured alike, so that they may be compared
        shown = (view.difference,) if which == CHANGE else (view.before, view.after)
        high = max(float(np.nanmax(np.abs(part), initial=0.0)) for part in shown) or 1.0
        low = -high if which == CHANGE else 0.0
        self.map.value_name = "changed by" if which == CHANGE else ""
        self.map.set_colour_map(table)
        if view.cell == 1:
            self.map.set_values(values, masked, *self._words, low, high)
        else:
            self._show_squares(view, values if masked is None else np.where(masked, np.float32(np.nan), values), high)
        self.bar.set_label("change" if which == CHANGE else "weight")
        self.bar.set_colour_map(table)
        self.bar.set_range(low, high)
        coming = f" {view.done:.0%} of it is computed." if np.isnan(values).any() else ""
        self.note.setText(f"A square is {_SQUARE[which]} of {view.cell} × {view.cell} weights.{coming}")
        self.note.setVisible(view.cell > 1)

    def _show_squares(self, view: CompareView, picture: np.ndarray, high: float) -> None:
        """A long text's map, which is one tile."""
        name = (view.request.run, view.request.site, view.request.head, self.choice.current)
        queries, keys = (len(words) for words in self._words)
        self.map.cache.keep_only(lambda kept: kept == name)  # whatever is shown is here whole
        self.map.set_map(name, *self._words, signed=self.choice.current == CHANGE, high=high)
        self.map.add_tile(name, Tile(top_level(queries, keys), 0, 0), picture)

    def _picture(self, view: CompareView, which: int) -> tuple[np.ndarray, np.ndarray | None]:
        if which == CHANGE:
            return view.difference, view.masked_throughout
        return (view.before, view.masked_before) if which == BEFORE else (view.after, view.masked_after)

    def _value_at(self, query: int, key: int) -> float | None:
        """What the map shows of a cell; None where it shows nothing."""
        view = self._view
        if view is None:
            return None
        values, masked = self._picture(view, self.choice.current)
        row, column = query // view.cell, key // view.cell
        if not (0 <= query < len(self._words[0]) and 0 <= key < len(self._words[1])):
            return None
        value = float(values[row, column])
        return None if np.isnan(value) or (masked is not None and masked[row, column]) else value
