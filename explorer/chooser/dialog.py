"""The dialog in which a checkpoint is chosen. It says what each one is, and opens none by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from explorer.chooser.choices import Choices
from explorer.chooser.hub_client import HubClient
from explorer.drops import checkpoint_in
from explorer.theme import Theme
from explorer.widgets.card import Card
from explorer.widgets.checkpoint_view import CheckpointView
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.page import wrapped
from models.describe_requests import Described
from models.hub_cache import cache_location
from models.hub_names import SCHEME, is_hub
from models.hub_requests import HubListing
from models.memory import in_bytes

SIZE = QSize(1100, 660)
LIST_WIDTH = 330
PROGRESS_STEPS = 1000
GGUF_FILTER = "GGUF (*.gguf)"


class CheckpointDialog(QDialog):
    """Emits what a person asks for; the window answers with `show_described`."""

    describe_asked = Signal(str, object)
    """A reference, and a `HubListing` where it is on a hub (None elsewhere)."""
    open_asked = Signal(str)
    recent_changed = Signal(list)
    offline_changed = Signal(bool)

    def __init__(
        self,
        hub: HubClient,
        recent: Sequence[str] = (),
        is_offline: bool = False,
        folder: str = "",
        parent: QWidget | None = None,
    ) -> None:
        """`folder` is where browsing begins."""
        super().__init__(parent)
        self.setWindowTitle("Open a checkpoint")
        self.setAcceptDrops(True)
        self.setMinimumSize(760, 480)
        self._hub = hub
        self._recent = list(recent)
        self._folder = folder
        self._reference = ""
        self._listing: HubListing | None = None
        self._described: Described | None = None

        self.choices = Choices()
        self.choices.set_recent(self._recent)
        self.choices.chosen.connect(self._on_chosen)
        self.choices.removed.connect(self._remove)
        self.choices.itemDoubleClicked.connect(lambda _item: self.accept_choice())
        self.folder_button = _button("&Folder…", "Choose a folder that holds config.json and model.safetensors")
        self.folder_button.clicked.connect(self.browse_folder)
        self.file_button = _button("&GGUF file…", "Choose a GGUF file")
        self.file_button.clicked.connect(self.browse_file)
        self.remove_button = _button("&Remove", "Take this one off the list (Delete); the files stay")
        self.remove_button.clicked.connect(lambda: self._remove(self.choices.reference))
        self.clear_button = _button("C&lear", "Take all that were opened lately off the list; the files stay")
        self.clear_button.clicked.connect(lambda: self._set_recent([]))

        self.name = QLineEdit()
        self.name.setPlaceholderText("owner/name")
        self.name.setAccessibleName("Name on Hugging Face")
        self.name.setToolTip("As on the model's page; owner/name@revision for a branch, a tag or a commit")
        self.name.setClearButtonEnabled(True)
        self.look_up_button = _button("Loo&k up", "Ask what it is and how large, before anything is fetched (Enter)")
        self.look_up_button.clicked.connect(self.look_up)
        self.offline = QCheckBox("&Stay offline")
        self.offline.setToolTip("Ask no hub, and open only what is on this computer (also: HF_HUB_OFFLINE=1)")
        self.offline.setChecked(is_offline)
        self.offline.toggled.connect(self.offline_changed)
        self.cache = ElidedLabel()
        self.cache.elide_mode = Qt.TextElideMode.ElideMiddle
        self.cache.setProperty("role", "dim")
        self.cache.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

        self.view = CheckpointView()
        self.download_button = _button("&Download", "Fetch what is missing of it into the cache")
        self.download_button.clicked.connect(self.download)
        self.doing = ElidedLabel()
        self.doing.setProperty("role", "dim")
        self.doing.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(6)
        self.progress.setAccessibleName("Download")
        self.cancel_button = _button("Ca&ncel", "Stop fetching; what came so far is kept for the next time")
        self.cancel_button.clicked.connect(self.cancel)
        self.close_button = _button("Close", "Open nothing (Escape)")
        self.close_button.clicked.connect(self.reject)
        self.open_button = _button("&Open", "Open what is described (Enter)")
        self.open_button.setProperty("role", "primary")
        self.open_button.clicked.connect(self.accept_choice)
        self._lay_out()
        self.resize(SIZE.boundedTo(self.screen().availableSize()))

        hub.changed.connect(self.on_hub)
        self._show_cache(cache_location())
        self._show()

    def _lay_out(self) -> None:
        left = QVBoxLayout()
        left.setSpacing(8)
        left.addWidget(self.choices, 1)
        left.addLayout(_row(self.folder_button, self.file_button, None, self.remove_button, self.clear_button))
        on_hub = QWidget()
        column = QVBoxLayout(on_hub)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        label = QLabel("&Hugging Face")
        label.setBuddy(self.name)
        label.setProperty("role", "title")
        column.addWidget(label)
        column.addLayout(_row(self.name, self.look_up_button))
        column.addLayout(_row(self.offline, self.cache, stretch=self.cache))
        left.addWidget(on_hub)
        box = QWidget()
        box.setLayout(left)
        left.setContentsMargins(0, 0, 0, 0)
        box.setMinimumWidth(LIST_WIDTH)
        box.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)

        card = Card()
        page = QWidget()
        right = QVBoxLayout(page)
        right.setContentsMargins(0, 0, 0, 0)
        right.addWidget(self.view, 1)
        right.addWidget(self.progress)
        right.addLayout(_row(self.doing, self.cancel_button, self.download_button, stretch=self.doing))
        card.set_content(page)
        self._card = card

        body = QHBoxLayout()
        body.setSpacing(14)
        body.addWidget(box)
        body.addWidget(card, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 14, 14, 12)
        column.setSpacing(12)
        column.addLayout(body, 1)
        hint = wrapped("A folder or a GGUF file can be dropped here too.", "dim")
        column.addLayout(_row(hint, self.close_button, self.open_button, stretch=hint))

    # what a person does

    def set_theme(self, theme: Theme) -> None:
        self.view.set_theme(theme)

    def start(self, reference: str) -> None:
        """Begin with what is open now."""
        self.choices.choose(reference)
        if not self.choices.reference and reference:
            self.choices.add(reference)
        self.choices.setFocus()

    def browse_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Choose a checkpoint's folder", self._folder)
        if chosen:
            self.add(chosen)

    def browse_file(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(self, "Choose a GGUF file", self._folder, GGUF_FILTER)
        if chosen:
            self.add(chosen)

    def add(self, reference: str) -> None:
        """Choose a folder or a file that need not be on the list."""
        if not is_hub(reference):
            self._folder = str(Path(reference).parent)
        self.choices.add(reference)
        self.choices.setFocus()

    def look_up(self) -> None:
        """Ask what the hub has under the name that was typed."""
        text = self._hub_text()
        if text:
            self.choices.choose("")
            self._reference, self._listing, self._described = "", None, None
            self._hub.look_up(text, self.offline.isChecked())

    def download(self) -> None:
        if self.download_button.isEnabled():
            self._hub.fetch(self.offline.isChecked())

    def cancel(self) -> None:
        """Stop what the hub is asked. What has come is counted anew, and offered to be gone on with."""
        was_fetching = self._hub.is_fetching
        self._hub.cancel()
        if was_fetching and self._listing is not None:
            self._listing = None
            self._hub.look_up(self._hub_text(), self.offline.isChecked())
        self.name.setFocus()

    def _hub_text(self) -> str:
        return self.name.text().strip()

    def accept_choice(self) -> None:
        """Open what is described, where nothing speaks against it."""
        if self.open_button.isEnabled():
            self.open_asked.emit(self._reference)
            self.accept()

    def done(self, result: int) -> None:
        self._hub.cancel()
        super().done(result)

    # what comes back

    def show_described(self, described: Described) -> None:
        """The answer to `describe_asked`; one to an earlier question is ignored."""
        if described.reference == self._reference:
            self._described = described
            self._show()

    def _on_chosen(self, reference: str) -> None:
        if self._hub.is_fetching or self._hub.is_asking:
            self._hub.cancel()
        if is_hub(reference):
            self.name.setText(reference.removeprefix(SCHEME))  # where it is not here any more it can be looked up
        self._describe(reference, None)

    def _describe(self, reference: str, listing: HubListing | None) -> None:
        self._reference, self._listing, self._described = reference, listing, None
        self._show()
        self.describe_asked.emit(reference, listing)

    def on_hub(self) -> None:
        """The hub has answered, or is further on."""
        hub = self._hub
        if hub.listing is not None:
            self._show_cache(hub.listing.cache)
        if hub.fetched is not None and self._listing is not None:
            self.choices.add(hub.fetched.reference)  # chooses it, and so describes what is there now
            self._listing = None
            self.open_button.setFocus()
            return
        is_new = hub.listing is not None and hub.listing is not self._listing
        if is_new and not (hub.is_asking or hub.is_fetching or hub.fetched) and not self.choices.reference:
            assert hub.listing is not None
            self._describe(hub.listing.reference, hub.listing)
            return
        self._show()

    def _remove(self, reference: str) -> None:
        self._set_recent([other for other in self._recent if other != reference])

    def _set_recent(self, recent: list[str]) -> None:
        self._recent = recent
        self.choices.set_recent(recent)
        self.recent_changed.emit(recent)
        if not self.choices.reference:
            self._reference, self._described = "", None
            self._show()

    # what is shown

    def _show(self) -> None:
        hub, described, listing = self._hub, self._described, self._listing
        busy = hub.is_asking or hub.is_fetching
        missing = listing.missing if listing is not None else 0
        if hub.sentence and not self.choices.reference:
            self.view.show_sentence(self._hub_text(), hub.sentence, is_refusal=True)
        elif hub.is_asking:
            self.view.show_sentence(self._hub_text(), "Asking what it is …")
        elif described is not None:
            self.view.show_described(described, listing)
        elif self._reference:
            self.view.show_sentence(self._reference, "Reading what it is …")
        else:
            self.view.show_sentence("", "Choose a checkpoint on the left, or type the name of one on Hugging Face.")
        refused = described is None or bool(described.refusal)
        self.open_button.setEnabled(not refused and not missing and not busy)
        self.download_button.setText(f"&Download {in_bytes(missing)}" if missing else "&Download")
        self.download_button.setVisible(bool(missing) and not busy)
        self.download_button.setEnabled(not refused)
        self.cancel_button.setVisible(busy)
        self.progress.setVisible(busy)
        self._show_progress()
        self.look_up_button.setEnabled(not busy)
        self.remove_button.setEnabled(self.choices.is_recent)
        self.clear_button.setEnabled(bool(self._recent))

    def _show_progress(self) -> None:
        progress = self._hub.progress
        fraction = progress.fraction if progress is not None else None
        self.progress.setRange(0, 0 if fraction is None else PROGRESS_STEPS)
        if fraction is not None:
            self.progress.setValue(round(PROGRESS_STEPS * fraction))
        self.doing.setText(progress.label if progress is not None else "")
        self.doing.setToolTip(self.doing.text())

    def _show_cache(self, cache: str) -> None:
        self.cache.setText(f"cache: {cache}")
        self.cache.setToolTip(f"What is fetched lies in {cache}. Set HF_HOME to have it elsewhere")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.focusWidget() is self.name:
                self.look_up()
            elif self.focusWidget() is self.choices:
                self.accept_choice()
            return
        super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if checkpoint_in(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        reference = checkpoint_in(event.mimeData())
        if reference is not None:
            event.acceptProposedAction()
            self.add(reference)


def _button(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(tip)
    button.setAutoDefault(False)  # Enter means something else in each half of the dialog
    return button


def _row(*widgets: QWidget | None, stretch: QWidget | None = None) -> QHBoxLayout:
    """Widgets side by side; None is a gap that grows."""
    row = QHBoxLayout()
    row.setSpacing(6)
    for widget in widgets:
        if widget is None:
            row.addStretch(1)
        else:
            row.addWidget(widget, 1 if widget is stretch else 0)
    return row
