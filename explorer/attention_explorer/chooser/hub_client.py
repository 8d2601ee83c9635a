"""What the window knows of a hub: a thread of its own that looks up and fetches, and how far it is."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from attention_explorer.compute.bridge import Bridge
from attention_explorer.compute.quiet_import import quiet_import
from attention_explorer.compute.worker import EngineLike
from attention_models.protocol.hub import FetchRequest, HubFetched, HubListing, LookUpRequest
from attention_models.protocol.request import Failure, Progress, Result


def open_hub() -> EngineLike:
    """The real one. Imported in its thread: huggingface_hub takes a moment."""
    with quiet_import():
        from attention_models.hub.engine import HubEngine

    return HubEngine()


class HubClient(QObject):
    """Asks a hub, one thing at a time; a newer question calls off the one before. Lives in the GUI thread."""

    changed = Signal()
    """One of the attributes is another one now."""

    def __init__(self, engine_factory: Callable[[], EngineLike] = open_hub, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.listing: HubListing | None = None
        """What was looked up last."""
        self.fetched: HubFetched | None = None
        """What of it has come whole."""
        self.sentence = ""
        """Why the last question has no answer; "" where it has one."""
        self.progress: Progress | None = None
        self.is_asking = False
        self.is_fetching = False
        self._bridge = Bridge(engine_factory, self)
        self._bridge.arrived.connect(self._on_arrived)

    def look_up(self, text: str, offline: bool) -> None:
        """Ask what there is under the name that a person typed."""
        self.listing = self.fetched = None
        self._begin(asking=True)
        self._bridge.post(LookUpRequest(text=text, offline=offline))

    def fetch(self, offline: bool) -> None:
        """Fetch what was looked up; it goes on where an earlier attempt was called off."""
        if self.listing is None:
            return
        self._begin(fetching=True)
        self._bridge.post(FetchRequest(listing=self.listing, offline=offline))

    def cancel(self) -> None:
        """Call off what is going on. What was fetched stays, for the next time."""
        if self.is_asking or self.is_fetching:
            self._bridge.call_off(LookUpRequest.lane)
            self._begin()

    def stop(self, seconds: float) -> bool:
        """Call off everything for good. Returns whether the thread has ended."""
        return self._bridge.stop(seconds)

    def _begin(self, asking: bool = False, fetching: bool = False) -> None:
        self.sentence, self.progress = "", None
        self.is_asking, self.is_fetching = asking, fetching
        self.changed.emit()

    @Slot(object)
    def _on_arrived(self, result: Result) -> None:
        if isinstance(result, Progress):
            self.progress = result
            self.changed.emit()
            return
        if isinstance(result, HubListing):
            self.listing = result
        elif isinstance(result, HubFetched):
            self.fetched = result
        sentence = result.sentence if isinstance(result, Failure) else ""
        self.progress, self.is_asking, self.is_fetching, self.sentence = None, False, False, sentence
        self.changed.emit()
