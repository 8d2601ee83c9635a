"""Asks what a checkpoint is, of whoever can say it at once: the engine, or a thread beside it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from explorer.compute.bridge import Bridge
from explorer.compute.quiet_import import quiet_import
from explorer.compute.worker import EngineLike
from explorer.session.session import Session
from explorer.session.state import State
from models.files.catalogue import SHIPPED
from models.protocol.describing import Described, DescribeRequest
from models.protocol.hub import HubListing
from models.protocol.request import Failure, Result


def open_describer() -> EngineLike:
    """The real one. Imported in its thread: it imports what the engine does."""
    with quiet_import():
        from models.opening.describing_engine import DescribingEngine

    return DescribingEngine()


class Describer(QObject):
    """Lives in the GUI thread. The newest question is answered, whatever the engine is at.

    The engine knows what ships with the program by heart. All else is tried by a process, which a thread of its own
    waits for.
    """

    described = Signal(object)
    """A `Described`."""

    def __init__(
        self, session: Session, engine_factory: Callable[[], EngineLike] = open_describer, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._bridge = Bridge(engine_factory, self)
        self._bridge.arrived.connect(self._on_arrived)
        session.changed.connect(self._on_changed)

    def ask(self, reference: str, listing: HubListing | None) -> None:
        state = self._session.state
        request = DescribeRequest(reference=reference, listing=listing, placement=state.placement)
        self._session.call_off(DescribeRequest.lane)
        self._bridge.call_off(DescribeRequest.lane)
        if reference in SHIPPED and not state.busy:
            self._session.request(request)
        else:
            self._bridge.post(request)

    def stop(self, seconds: float) -> bool:
        """Call off what was asked for good. Returns whether the thread has ended."""
        return self._bridge.stop(seconds)

    def _on_changed(self, old: State, new: State) -> None:
        described = new.results.of(Described)
        if described is not None and described is not old.results.of(Described):
            self.described.emit(described)

    def _on_arrived(self, result: Result) -> None:
        if isinstance(result, Failure) and isinstance(result.request, DescribeRequest):
            result = Described(request=result.request, refusal=result.sentence)
        if isinstance(result, Described):
            self.described.emit(result)
