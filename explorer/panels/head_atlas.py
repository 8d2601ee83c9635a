"""All heads of the model at once, as thumbnails: layers down, heads across."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from explorer.panels.base import Panel
from explorer.session.hover import NOTHING, Hover, Pointed
from explorer.session.intents import SelectHead
from explorer.session.session import Session
from explorer.session.state import State
from explorer.theme import sequential
from explorer.widgets.card import Card
from explorer.widgets.head_atlas import HeadAtlas
from models.requests import AtlasRequest, Request, Site

THUMBNAIL = 48  # weights a side; longer texts are pooled to it


class HeadAtlasPanel(Panel):
    name = "heads"
    title = "All heads"
    hint = "Every attention head of the model; click one to look into it."

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.atlas = HeadAtlas()
        self.atlas.set_empty_text("The heads appear here when the model has run.")
        self.atlas.head_selected.connect(self._on_selected)
        self.atlas.hovered.connect(self._on_hovered)
        scroll = QScrollArea()
        scroll.setWidget(self.atlas)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        self.card = Card(self.title)
        self.card.set_content(scroll)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.card)
        self._sites: tuple[Site, ...] = ()

    def wants(self, state: State) -> Request | None:
        ran, view, pooling = state.ran, state.results.atlas, state.document.view.pooling
        if ran is None or (view is not None and (view.run, view.pooling) == (ran.run, pooling)):
            return None
        return AtlasRequest(run=ran.run, size=THUMBNAIL, pooling=pooling)

    def render_state(self, state: State, old: State | None) -> None:
        view, options = state.results.atlas, state.document.view
        if old is None or options.colour_map != old.document.view.colour_map:
            self.atlas.set_colour_map(sequential(options.colour_map))
        if old is None or view is not old.results.atlas or options.mean_column != old.document.view.mean_column:
            self._render_images(state)
        row = self._row_of(state)
        self.atlas.set_selection(row, state.selection.head if row >= 0 else -1)

    def _render_images(self, state: State) -> None:
        view, ran = state.results.atlas, state.ran
        if view is None or ran is None:
            self.atlas.set_images(None, (), (), 1.0)
            self.atlas.set_mean_column(None)
            self.card.set_subtitle("layers down, heads across")
            return
        if view.images.shape[0] != len(ran.sites):
            return  # of the model before; the new one's is on its way
        self._sites = ran.sites
        rows = [_row_label(site, ran.sites) for site in ran.sites]
        columns = [str(head) for head in range(view.images.shape[1])]
        highest = float(np.nanmax(view.images)) if view.images.size else 1.0
        self.atlas.set_images(view.images, rows, columns, highest if highest > 0 else 1.0)
        self.atlas.set_mean_column(view.mean if state.document.view.mean_column else None)
        pooled = "" if view.cell == 1 else f" · each pixel the {_POOLED[view.pooling]} of {view.cell} × {view.cell}"
        self.card.set_subtitle(f"layers down, heads across{pooled}")

    def _row_of(self, state: State) -> int:
        ref = state.selection.site
        return next((row for row, site in enumerate(self._sites) if site.ref == ref), -1)

    def render_hover(self, pointed: Pointed) -> None:
        row = next((row for row, site in enumerate(self._sites) if site.ref == pointed.site), -1)
        self.atlas.set_hover(row, pointed.head if row >= 0 else -1)

    def _on_selected(self, row: int, head: int) -> None:
        if row < len(self._sites) and head < self._sites[row].heads:
            self.dispatch(SelectHead(self._sites[row].ref, head))

    def _on_hovered(self, row: int, head: int) -> None:
        inside = 0 <= row < len(self._sites)
        self.hover.point(Pointed(site=self._sites[row].ref, head=head) if inside else NOTHING)


_POOLED = {"max": "largest", "mean": "mean"}


def _row_label(site: Site, sites: tuple[Site, ...]) -> str:
    several = len({s.stack for s in sites}) > 1
    return f"{site.stack[0]}{site.layer}" if several else str(site.layer)
