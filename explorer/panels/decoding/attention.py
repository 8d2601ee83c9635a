"""Where one head looked while the text was written."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from explorer.panels.decoding.layout import column, count, plain, say
from explorer.widgets.heat_map import HeatMap
from explorer.widgets.page import wrapped
from models.decode_requests import Beam, DecodeRowsView

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
        self.map.set_selection(len(view.queries) - 1, int(weights[-1].argmax()))
        written = len(view.queries) - view.prompt
        source = (
            f"{count(view.prompt, 'row')} of the prompt and {written} of written tokens, one a step"
            if view.from_steps
            else "All rows from one pass over the text"
        )
        say(self.note, f"The last row is where the head looked to choose this step's token. {source}.")
