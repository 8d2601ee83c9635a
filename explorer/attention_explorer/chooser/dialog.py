"""The dialog in which a checkpoint is chosen. It says what each one is, and opens none by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.chooser.checkpoint_view import CheckpointView
from attention_explorer.chooser.choices import Choices
from attention_explorer.chooser.drops import checkpoint_in
from attention_explorer.chooser.gguf_list import GgufList
from attention_explorer.chooser.hub_box import HubBox
from attention_explorer.chooser.hub_client import HubClient
from attention_explorer.theme import Theme
from attention_explorer.widgets import asking
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.elided_label import ElidedLabel
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.small_screens import fitted, room_for
from attention_models.files.hub_cache import cache_location
from attention_models.files.memory import in_bytes
from attention_models.files.names import SCHEME, is_hub
from attention_models.files.text_parts import whole_of
from attention_models.protocol.describing import Described
from attention_models.protocol.hub import HubListing

SIZE, LEAST = QSize(1100, 660), QSize(760, 480)
LIST_WIDTH = 330
PROGRESS_STEPS = 1000
REST = 250  # ms on a GGUF file before it is described: some megabytes of header are fetched
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
        self.setMinimumSize(LEAST.boundedTo(room_for(self)))
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

        self.hub_box = HubBox(is_offline)
        self.hub_box.asked.connect(self.look_up)
        self.hub_box.offline_changed.connect(self.offline_changed)

        self.view = CheckpointView()
        self.ggufs = GgufList()
        self.ggufs.chosen.connect(self._on_gguf)
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST)
        self._rest.timeout.connect(self._ask)
        self.text_button = _button("&Text half", "Describe the half of this model that reads texts")
        self.text_button.clicked.connect(self.choose_text_half)
        self.download_button = _button("&Download", "Fetch what is missing of it into the cache")
        self.download_button.clicked.connect(self.download)
        self.doing = ElidedLabel()
        self.doing.elide_mode = Qt.TextElideMode.ElideMiddle  # how much has come stands at its end
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
        self.resize(SIZE.boundedTo(room_for(self)))

        hub.changed.connect(self.on_hub)
        self.hub_box.show_cache(cache_location())
        self._show()

    def _lay_out(self) -> None:
        left = QVBoxLayout()
        left.setSpacing(8)
        left.addWidget(self.choices, 1)
        left.addLayout(_row(self.folder_button, self.file_button, None, self.remove_button, self.clear_button))
        left.addWidget(self.hub_box)
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
        right.addWidget(self.ggufs)
        right.addWidget(self.progress)
        right.addLayout(
            _row(self.doing, self.text_button, self.cancel_button, self.download_button, stretch=self.doing)
        )
        card.set_content(page)
        self._card = card

        halves = QWidget()
        body = QHBoxLayout(halves)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(14)
        body.addWidget(box)
        body.addWidget(card, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 14, 14, 12)
        column.setSpacing(12)
        column.addWidget(fitted(halves, LEAST - QSize(28, 60), self), 1)
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
        chosen = asking.folder(self, "Choose a checkpoint's folder", self._folder)
        if chosen:
            self.add(chosen)

    def browse_file(self) -> None:
        chosen = asking.file_to_open(self, "Choose a GGUF file", self._folder, GGUF_FILTER)
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
        if self.hub_box.text:
            self.ggufs.clear()
            self._ask()

    def _ask(self) -> None:
        self._rest.stop()
        self._forget()
        self._hub.look_up(self.hub_box.text, self.hub_box.is_offline)

    def _forget(self) -> None:
        self.choices.choose("")
        self._reference, self._listing, self._described = "", None, None

    def _on_gguf(self, reference: str) -> None:
        """Another file of the repository is looked up once the choice rests on it."""
        if reference != self._reference:
            self._hub.cancel()
            self._forget()
            self._rest.start()
            self._name(reference)
            self._show()

    def _name(self, reference: str) -> None:
        self.hub_box.name.setText(reference.removeprefix(SCHEME))

    def choose_text_half(self) -> None:
        """Put the text half of what is described on the list, and choose it."""
        info = None if self._described is None else self._described.info
        if info is not None and info.text_part:
            self.add(info.text_part)

    def download(self) -> None:
        if self.download_button.isVisible() and self.download_button.isEnabled():
            self._hub.fetch(self.hub_box.is_offline)

    def cancel(self) -> None:
        """Stop what the hub is asked. What has come is counted again, and can be continued."""
        was_fetching = self._hub.is_fetching
        self._hub.cancel()
        if was_fetching and self._listing is not None:
            self._listing = None
            self._hub.look_up(self.hub_box.text, self.hub_box.is_offline)
        self.hub_box.name.setFocus()

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
        if described.request.reference == self._reference:
            self._described = described
            self._show()

    def _on_chosen(self, reference: str) -> None:
        if self._hub.is_fetching or self._hub.is_asking:
            self._hub.cancel()
        self._rest.stop()
        self.ggufs.clear()
        if is_hub(reference):
            self._name(whole_of(reference) or reference)  # where it is not here any more it can be looked up
        self._describe(reference, None)

    def _describe(self, reference: str, listing: HubListing | None) -> None:
        self._reference, self._listing, self._described = reference, listing, None
        self._show()
        self.describe_asked.emit(reference, listing)

    def on_hub(self) -> None:
        """The hub has answered, or is further on."""
        hub = self._hub
        if hub.listing is not None:
            self.hub_box.show_cache(hub.listing.cache)
        if hub.fetched is not None and self._listing is not None:
            self.choices.add(hub.fetched.reference)  # chooses it, and so describes what is there now
            self._listing = None
            self.open_button.setFocus()
            return
        is_new = hub.listing is not None and hub.listing is not self._listing
        if is_new and not (hub.is_asking or hub.is_fetching or hub.fetched) and not self.choices.reference:
            assert hub.listing is not None
            self._show_listing(hub.listing)
            return
        self._show()

    def _show_listing(self, listing: HubListing) -> None:
        self.ggufs.show_listing(listing)
        if listing.files:
            self._describe(listing.reference, listing)
            return
        self._listing = listing
        if self.ggufs.reference:
            if self.hub_box.name.hasFocus():
                self.ggufs.rows.setFocus()  # the next key chooses another
            self._name(self.ggufs.reference)
            self._ask()
        else:
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
        if hub.is_asking or self._rest.isActive():
            self.view.show_sentence(self.hub_box.text, "Asking what it is …")
        elif hub.sentence and not self.choices.reference:
            self.view.show_sentence(self.hub_box.text, hub.sentence, is_refusal=True)
        elif described is not None:
            self.view.show_described(described, listing)
        elif self._reference:
            self.view.show_sentence(self._reference, "Reading what it is …")
        elif self.ggufs.isVisibleTo(self):
            self.view.show_sentence(self.hub_box.text, "Choose one of the GGUF files below.")
        else:
            self.view.show_sentence("", "Choose a checkpoint on the left, or type the name of one on Hugging Face.")
        refused = described is None or bool(described.refusal)
        self.open_button.setEnabled(not refused and not missing and not busy)
        info = None if described is None else described.info
        self.text_button.setVisible(info is not None and bool(info.text_part) and not missing and not busy)
        self.download_button.setText(f"&Download {in_bytes(missing)}" if missing else "&Download")
        self.download_button.setVisible(bool(missing) and not busy)
        self.download_button.setEnabled(not refused)
        self.cancel_button.setVisible(busy)
        self.progress.setVisible(busy)
        self._show_progress()
        self.hub_box.look_up_button.setEnabled(not busy)
        self.ggufs.rows.setEnabled(not hub.is_fetching)
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

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.focusWidget() is self.hub_box.name:
                self.look_up()
            elif self.focusWidget() is self.choices:
                self.accept_choice()
            elif self.focusWidget() is self.ggufs.rows:
                self.download()
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
