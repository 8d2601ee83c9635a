"""Brings the dialog, the session, the hub and the settings together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from attention_explorer.chooser.describer import Describer
from attention_explorer.chooser.dialog import CheckpointDialog
from attention_explorer.chooser.hub_client import HubClient, open_hub
from attention_explorer.compute.worker import EngineLike
from attention_explorer.presets import presets
from attention_explorer.session.intents import OpenCheckpoint
from attention_explorer.session.session import Session
from attention_explorer.settings import Settings
from attention_explorer.theme import Theme
from attention_explorer.widgets.in_front import open_in_front
from attention_models.protocol.describing import Described


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
