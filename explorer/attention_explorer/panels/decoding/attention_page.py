"""Where one head looked while the text was written."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from attention_explorer.panels.decoding.layout import column, count, plain, say
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.page import wrapped
from attention_models.protocol.decoding import Beam, DecodeRowsView

_MAP_HEIGHT = 300


class AttentionPage(QWidget):
    """One head's weights over prompt and written tokens: a row more with each step."""

    def __init__(self) -> None:
        super().__init__()
        self.map = HeatMap()
        self.map.wheel_zooms = False
        self.map.setMinimumHeight(_MAP_HEIGHT)
        self.heading = wrapped(role="title")
        self.note = wrapped(role="dim")
        column(self, self.heading, self.note, self.map)
        self.map.hide()

    def show_rows(self, view: DecodeRowsView | None, name: str, empty: str, beam: Beam | None = None) -> None:
        self.heading.setText(name if beam is None else f"{name}, beam “{plain(beam.text)}”")
        self.map.setVisible(view is not None)
        if view is None:
            self.map.set_values(None, None, (), (), 0, 1)
            say(self.note, empty)
            return
        weights = view.weights
        self.map.set_values(weights, view.masked, view.queries, view.keys, 0, max(float(weights.max()), 1e-6))
        row = view.chose
        self.map.set_selection(row, int(weights[row].argmax()) if row >= 0 else -1)
        say(self.note, f"{_chooser(view)}{_extent(view)}.")


def _chooser(view: DecodeRowsView) -> str:
    """Which row shows how this step's token was chosen."""
    if view.chose < 0:
        return ""
    is_last = view.chose == len(view.queries) - 1
    which = "The last row" if is_last else f"The framed row “{view.queries[view.chose]}”"
    return f"{which} is where the head looked to choose this step's token. "


def _extent(view: DecodeRowsView) -> str:
    """Which rows there are, and where they come from."""
    rows, written = len(view.queries), len(view.queries) - view.prompt
    some = rows < len(view.keys) and view.request.site.stack != "cross"
    last = "The last " if some and view.chose in (-1, rows - 1) else ""
    if view.from_steps:
        return f"{last}{count(view.prompt, 'row')} of the prompt and {written} of written tokens, one a step"
    if some:
        return f"{last}{count(rows, 'row')}{'' if last else ' about it'}, from one pass over the text"
    return "All rows from one pass over the text"
