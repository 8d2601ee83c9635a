"""Brings the dialog, the session, the hub and the settings together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from attention_explorer.chooser.dialog import CheckpointDialog
from attention_explorer.chooser.hub_client import HubClient, open_hub
from attention_explorer.compute.bridge import Bridge
from attention_explorer.compute.quiet_import import quiet_import
from attention_explorer.compute.worker import EngineLike
from attention_explorer.look.theme import Theme
from attention_explorer.presets import presets
from attention_explorer.session.intents import OpenCheckpoint
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.settings import Settings
from attention_explorer.widgets.dialogs import open_in_front
from attention_models.files.catalogue import SHIPPED
from attention_models.protocol.hub import HubListing
from attention_models.protocol.loading import Described, DescribeRequest
from attention_models.protocol.request import Failure, Result

# Asks what a checkpoint is, of whoever can say it at once: the engine, or a thread beside it.


PATIENCE = 300  # ms that the engine is waited for


def open_describer() -> EngineLike:
    """The real one. Imported in its thread: it imports what the engine does."""
    with quiet_import():
        from attention_models.opening.describing_engine import DescribingEngine

    return DescribingEngine()


class Describer(QObject):
    """Lives in the GUI thread. The newest question is answered, whatever the engine is at.

    What ships with the program the engine tells at once, where it is free. All else is tried by a process, which a
    thread of its own waits for.
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
        self._asked: DescribeRequest | None = None  # and not answered
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(PATIENCE)
        self._patience.timeout.connect(self._ask_elsewhere)
        session.changed.connect(self._on_changed)

    def ask(self, reference: str, listing: HubListing | None) -> None:
        """Let `described` tell what `reference` is. What was asked before is called off."""
        placement = self._session.state.placement
        self._call_off()
        self._asked = DescribeRequest(reference=reference, listing=listing, placement=placement)
        if reference in SHIPPED:
            self._patience.start()
            self._session.request(self._asked)
        else:
            self._ask_elsewhere()

    def stop(self, seconds: float) -> bool:
        """Call off what was asked for good. Returns whether the thread has ended."""
        self._call_off()
        return self._bridge.stop(seconds)

    def _ask_elsewhere(self) -> None:
        if self._asked is not None:
            self._bridge.post(self._asked)

    def _call_off(self) -> None:
        self._asked = None
        self._patience.stop()
        self._session.call_off(DescribeRequest.lane)
        self._bridge.call_off(DescribeRequest.lane)

    def _tell(self, described: Described) -> None:
        self._call_off()
        self.described.emit(described)

    def _on_changed(self, old: State, new: State) -> None:
        described = new.results.of(Described)
        if described is not None and described is not old.results.of(Described):
            self._tell(described)

    def _on_arrived(self, result: Result) -> None:
        if isinstance(result, Failure) and isinstance(result.request, DescribeRequest):
            result = Described(request=result.request, refusal=result.sentence)
        if isinstance(result, Described):
            self._tell(result)


class Chooser(QObject):
    """Shows the dialog over a window, at most one at a time. Its thread starts with the first question to a hub."""

    recent_changed = Signal()
    """`Settings.recent` is another list now."""

    def __init__(
        self,
        session: Session,
        settings: Settings,
        hub_factory: Callable[[], EngineLike] = open_hub,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._settings = settings
        self.hub = HubClient(hub_factory, self)
        self.dialog: CheckpointDialog | None = None
        self._describer = Describer(session, parent=self)
        self._describer.described.connect(self._on_described)

    def show(self, window: QWidget, theme: Theme) -> None:
        """Open the dialog, with what is open now chosen."""
        if self.dialog is not None:
            self.dialog.raise_()
            return
        recent = next((r for r in self._settings.recent if Path(r).exists()), "")
        folder = str(Path(recent).parent) if recent else presets()[0].checkpoints or str(Path.home())
        dialog = CheckpointDialog(self.hub, self._settings.recent, self._settings.offline, folder, window)
        self.dialog = dialog
        dialog.set_theme(theme)
        dialog.describe_asked.connect(self._describer.ask)
        dialog.open_asked.connect(lambda reference: self._session.dispatch(OpenCheckpoint(reference)))
        dialog.recent_changed.connect(self._on_recent)
        dialog.offline_changed.connect(lambda on: setattr(self._settings, "offline", on))
        dialog.finished.connect(self._on_finished)
        open_in_front(dialog)
        dialog.start(self._session.state.document.checkpoint)

    def set_theme(self, theme: Theme) -> None:
        if self.dialog is not None:
            self.dialog.set_theme(theme)

    def stop(self, seconds: float) -> bool:
        """Call off what is asked. Returns whether the threads for it have ended."""
        ended = [one.stop(seconds) for one in (self.hub, self._describer)]
        return all(ended)

    def _on_described(self, described: Described) -> None:
        if self.dialog is not None:
            self.dialog.show_described(described)

    def _on_recent(self, recent: list[str]) -> None:
        self._settings.recent = list(recent)
        self.recent_changed.emit()

    def _on_finished(self) -> None:
        if self.dialog is not None:
            self.hub.changed.disconnect(self.dialog.on_hub)
            self.dialog.deleteLater()
            self.dialog = None
