"""All heads of the model at once, as thumbnails: layers down, heads across."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from explorer.colour_maps import sequential
from explorer.panels.about import About
from explorer.panels.base import Panel, Place
from explorer.panels.head_atlas.about import about
from explorer.panels.head_atlas.atlas import HeadAtlas
from explorer.panels.selected_head import NO_HEADS, padding_of
from explorer.session.hover import NOTHING, Hover, Pointed
from explorer.session.intents import SelectHead
from explorer.session.session import Session
from explorer.session.state import State
from explorer.widgets.card import Card
from explorer.widgets.segments import Segments
from explorer.widgets.veil import shares
from models.protocol.atlas import THUMBNAIL, AtlasRequest, AtlasView
from models.protocol.request import Request
from models.protocol.values import Site, SiteRef

STACKS = ("encoder", "decoder", "cross")
_CHOICES = (
    ("Encoder", "Heads that look within the source"),
    ("Decoder", "Heads that look within the target"),
    ("Cross", "Heads that look from the target at the source"),
)


_WAITING = "The heads appear here when the model has run."


class HeadAtlasPanel(Panel):
    api_version = 1
    name = "heads"
    title = "All heads"
    hint = "Every attention head of the model; click one to look into it."

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.atlas = HeadAtlas()
        self.atlas.set_empty_text(_WAITING)
        self.atlas.head_selected.connect(self._on_selected)
        self.atlas.hovered.connect(self._on_hovered)
        self.atlas.menu_wanted.connect(self._on_menu)
        self.area = QScrollArea()
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside takes the keyboard, and shows it
        self.area.setWidget(self.atlas)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.stacks = Segments(_CHOICES, "Stack")
        self.stacks.chosen.connect(lambda index: self.show_stack(STACKS[index]))
        self.stacks.hide()
        body = QWidget()
        inner = QVBoxLayout(body)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.addWidget(self.stacks)
        inner.addWidget(self.area, 1)
        self.card = Card(self.title)
        self.card.set_content(body)
        self.fill(self.card)
        self._sites: tuple[Site, ...] = ()  # of the stack shown
        self._stack = ""
        self._revealed = (-1, -1, "")  # row, head and stack that were scrolled to

    def place_of(self, part: str, site: SiteRef | None, head: int, query: int, key: int) -> Place | None:
        row = next((row for row, shown in enumerate(self._sites) if shown.ref == site), -1)
        if part != "head" or row < 0:
            return None
        return self.atlas, self.atlas.head_rect(row, head).toAlignedRect()

    def show_stack(self, stack: str) -> None:
        """Show the heads of one stack. The selection stays, and brings its own stack back when it next moves."""
        self._stack = stack
        self._render_images(self.session.state)
        self._render_selection(self.session.state)

    def wants(self, state: State) -> Request | None:
        ran, view, pooling = state.ran, state.results.of(AtlasView), state.document.view.pooling
        if ran is None:
            return None
        is_this = view is not None and (view.request.run, view.request.pooling) == (ran.run, pooling)
        have = view.done if view is not None and is_this else 0.0
        return None if have == 1 else AtlasRequest(run=ran.run, size=THUMBNAIL, pooling=pooling, have=have)

    def about(self, state: State) -> About:
        return about(state, self._stack)

    def render_state(self, state: State, old: State | None) -> None:
        view, options = state.results.of(AtlasView), state.document.view
        if old is None or options.colour_map != old.document.view.colour_map:
            self.atlas.set_colour_map(sequential(options.colour_map))
        chosen = state.selection.site
        follows = chosen is not None and (old is None or chosen != old.selection.site) and chosen.stack != self._stack
        if chosen is not None and follows:
            self._stack = chosen.stack
        redraws = old is None or view is not old.results.of(AtlasView)
        if redraws or follows or (old is not None and options.mean_column != old.document.view.mean_column):
            self._render_images(state)
        self._render_selection(state)

    def _render_selection(self, state: State) -> None:
        row = self._row_of(state)
        head = state.selection.head if row >= 0 else -1
        self.atlas.set_selection(row, head)
        if row >= 0 and (row, head, self._stack) != self._revealed:
            self._revealed = (row, head, self._stack)
            QTimer.singleShot(0, self, self._reveal)  # once the heads are laid out

    def _reveal(self) -> None:
        """Scroll to the selected head; whoever scrolls on is left alone until the selection moves."""
        row, head, _ = self._revealed
        if row < len(self._sites):
            rect = self.atlas.head_rect(row, head).toAlignedRect()
            # the labels of the columns and the caption lie over the edges
            margin = rect.height() + 2 * self.fontMetrics().height()
            self.area.ensureVisible(rect.center().x(), rect.center().y(), rect.width(), margin)

    def _render_images(self, state: State) -> None:
        no_heads = state.ran is not None and not state.ran.sites
        self.atlas.set_empty_text(NO_HEADS if no_heads else _WAITING)
        view, ran = state.results.of(AtlasView), state.ran
        if view is None or ran is None:
            self.atlas.set_images(None, (), (), 1.0)
            self.atlas.set_mean_column(None)
            self.card.set_subtitle("layers down, heads across")
            self.stacks.hide()
            return
        if view.images.shape[0] != len(ran.sites):
            return  # of the model before; the new one's is on its way
        shown = self._choose_stack(ran.sites)
        self._sites = tuple(ran.sites[i] for i in shown)
        images, mean = view.images[shown], view.mean[shown]
        if view.done == 1:
            images, mean = without_margin(images, mean)
        rows = [str(site.layer) for site in self._sites]
        columns = [str(head) for head in range(images.shape[1])]
        highest = 1.0 if np.isnan(images).all() else float(np.nanmax(images))
        self.atlas.set_images(images, rows, columns, highest if highest > 0 else 1.0)
        self.atlas.set_mean_column(mean if state.document.view.mean_column else None)
        padding = padding_of(ran, self._sites[0]) if self._sites else ((), ())
        self.atlas.set_faded(
            *(shares(part, side * view.cell) for part, side in zip(padding, images.shape[2:], strict=True))
        )
        # what changes comes first: the card may have room for little
        coming = "" if view.done == 1 else f"{view.done:.0%} drawn · "
        pooled = "" if view.cell == 1 else f"{_POOLED[view.request.pooling]} of {view.cell} × {view.cell} a pixel · "
        self.card.set_subtitle(f"{coming}{pooled}layers down, heads across")

    def _choose_stack(self, sites: tuple[Site, ...]) -> list[int]:
        """The places of the sites to show; sets the chooser, which a model with one stack does without."""
        there = [stack for stack in STACKS if any(site.stack == stack for site in sites)]
        if there and self._stack not in there:
            self._stack = there[0]
        for index, stack in enumerate(STACKS):
            self.stacks.button(index).setVisible(stack in there)
        if self._stack in STACKS:
            self.stacks.choose(STACKS.index(self._stack))
        self.stacks.setVisible(len(there) > 1)
        return [i for i, site in enumerate(sites) if site.stack == self._stack]

    def _row_of(self, state: State) -> int:
        ref = state.selection.site
        return next((row for row, site in enumerate(self._sites) if site.ref == ref), -1)

    def render_hover(self, pointed: Pointed) -> None:
        row = next((row for row, site in enumerate(self._sites) if site.ref == pointed.site), -1)
        self.atlas.set_hover(row, pointed.head if row >= 0 else -1)

    def _on_selected(self, row: int, head: int) -> None:
        if row < len(self._sites) and head < self._sites[row].heads:
            self.dispatch(SelectHead(self._sites[row].ref, head))

    def _on_menu(self, row: int, head: int, where: QPoint) -> None:
        if row < len(self._sites) and head < self._sites[row].heads:
            self.open_head_menu(self._sites[row].ref, head, where)

    def _on_hovered(self, row: int, head: int) -> None:
        inside = 0 <= row < len(self._sites)
        self.hover.point(Pointed(site=self._sites[row].ref, head=head) if inside else NOTHING)


_POOLED = {"max": "largest", "mean": "mean"}


def without_margin(images: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both without the heads, rows and columns that no site of this stack has: those of a longer text are NaN."""
    if not images.size:
        return images, mean
    there = ~np.isnan(images)
    heads, rows, columns = (int(there.any(axis=tuple(d for d in range(4) if d != kept)).sum()) for kept in (1, 2, 3))
    return images[:, :heads, :rows, :columns], mean[:, :rows, :columns]
