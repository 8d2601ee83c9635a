"""The dialog on a hub that answers as told, and what it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.chooser.dialog import CheckpointDialog
from attention_explorer.chooser.hub_client import HubClient
from attention_models.protocol.hub import HubListing
from tests.explorer.chooser.fake_hub import FakeHub, described
from tests.explorer.real_window import destroy, look_put_back, press


class Desk:
    """A dialog, and what it asked for."""

    def __init__(self, hub: FakeHub, recent: Sequence[str]) -> None:
        self.hub = hub
        self.client = HubClient(lambda: hub)
        self.dialog = CheckpointDialog(self.client, recent)
        self.asked: list[tuple[str, HubListing | None]] = []
        self.opened: list[str] = []
        self.recent: list[list[str]] = []
        self.offline: list[bool] = []
        self.dialog.describe_asked.connect(lambda *asked: self.asked.append(asked))
        self.dialog.open_asked.connect(self.opened.append)
        self.dialog.recent_changed.connect(self.recent.append)
        self.dialog.offline_changed.connect(self.offline.append)
        self.dialog.show()
        self.dialog.activateWindow()
        self.dialog.start("story-gpt")

    def answer(self, refusal: str = "", understood: bool = True, text_part: str = "") -> None:
        """Describe what was asked for last."""
        self.dialog.show_described(described(self.asked[-1][0], refusal, understood, text_part))

    def type_name(self, name: str) -> None:
        self.dialog.hub_box.name.setFocus()
        QTest.keyClicks(self.dialog.hub_box.name, name)
        press(self.dialog.hub_box.name, Qt.Key.Key_Return)


@contextmanager
def opened_desk(hub: FakeHub, recent: Sequence[str] = ()) -> Iterator[Desk]:
    with look_put_back():
        desk = Desk(hub, recent)
        yield desk
        desk.dialog.close()
        assert desk.client.stop(10)
        destroy(desk.dialog)
