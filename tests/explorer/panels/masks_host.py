"""The Mask and scale panel with the head map and the next-token bars beside it, on the real engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PySide6.QtWidgets import QHBoxLayout, QWidget

from attention_explorer.compute.bridge import Bridge, connect
from attention_explorer.panels.base import Panel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.hover import Hover
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, State
from tests.explorer.real_window import destroy, wait_until


class Host(QWidget):
    """Three panels around one session."""

    def __init__(self, document: Document, clock: Callable[[], float]) -> None:
        super().__init__()
        self.session = Session(State(document), clock=clock)
        self.hover = Hover(self)
        self.bridge = Bridge(parent=self)
        connect(self.session, self.bridge)
        self.map = HeadMapPanel(self.session, self.hover)
        self.masks = MaskScalePanel(self.session, self.hover)
        self.next = NextTokenPanel(self.session, self.hover)
        row = QHBoxLayout(self)
        for panel, stretch in ((self.map, 5), (self.masks, 4), (self.next, 3)):
            row.addWidget(panel, stretch)

    @property
    def panels(self) -> tuple[Panel, ...]:
        return self.map, self.masks, self.next

    @property
    def state(self) -> State:
        return self.session.state

    def is_settled(self) -> bool:
        """Whether all that is shown is of the newest text and interventions, or a notice says why it cannot be."""
        if self.bridge.busy or (self.state.ran is None and self.state.notice is None):
            return False
        return self.state.up_to_date and not any(panel.is_waiting() for panel in self.panels)

    def settle(self) -> None:
        wait_until(lambda: self.is_settled() or (self.state.notice is not None and not self.bridge.busy))


@contextmanager
def opened_host(document: Document, clock: Callable[[], float] = lambda: 0.0) -> Iterator[Host]:
    """A host that has run `document`; closed at the end."""
    host = Host(document, clock)
    host.resize(1280, 760)
    host.show()
    host.session.start()
    try:
        host.settle()
        yield host
    finally:
        host.hide()
        host.bridge.stop()
        destroy(host)
