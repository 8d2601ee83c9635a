"""The dialog in which a checkpoint is chosen. It says what each one is, and opens none by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.chooser.checkpoint_view import CheckpointView
from attention_explorer.chooser.drops import checkpoint_in
from attention_explorer.chooser.hub_client import HubClient
from attention_explorer.look.theme import Theme
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.screens import fitted, room_for
from attention_models.files.catalogue import shipped
from attention_models.files.gguf import FEWEST_BITS, suggested
from attention_models.files.hub_cache import cache_location
from attention_models.files.memory import in_bytes
from attention_models.files.names import SCHEME, is_hub, parse, whole_of
from attention_models.protocol.hub import HubFile, HubListing
from attention_models.protocol.loading import Described

MOST_ROWS, FEWEST_ROWS = 5, 3  # on screen at once
_FRAME = 16  # pixels of the list that are no rows
_REFERENCE = Qt.ItemDataRole.UserRole


class GgufList(QWidget):
    """Hidden where there is nothing to choose. Up and Down choose; a click on what is chosen asks for it again."""

    chosen = Signal(str)
    """A reference like hf://owner/name:file.gguf; without a file for the safetensors checkpoint beside the files."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.heading = QLabel()
        self.heading.setProperty("role", "title")
        self.rows = QTreeWidget()
        self.rows.setAccessibleName("GGUF files of this repository")
        self.rows.setHeaderHidden(True)
        self.rows.setRootIsDecorated(False)
        self.rows.setUniformRowHeights(True)
        self.rows.setColumnCount(3)
        self.rows.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.rows.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.rows.header()
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(0)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        self.rows.currentItemChanged.connect(self._on_current)
        self.rows.itemClicked.connect(self._on_current)
        self.heading.setBuddy(self.rows)
        self.note = wrapped(role="dim")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.heading)
        column.addWidget(self.note)
        column.addWidget(self.rows)
        self.hide()

    @property
    def reference(self) -> str:
        """What is chosen; "" where nothing is."""
        item = self.rows.currentItem()
        return str(item.data(0, _REFERENCE)) if item is not None else ""

    def clear(self) -> None:
        self.rows.blockSignals(True)
        self.rows.clear()
        self.rows.blockSignals(False)
        self.hide()

    def show_listing(self, listing: HubListing) -> None:
        """List what there is. What `listing` is of is chosen, and where it is of nothing yet, what is suggested."""
        if not listing.ggufs:
            self.clear()
            return
        name, beside = parse(listing.reference), listing.safetensors
        suggestion = "" if beside else suggested((file.name, file.size) for file in listing.ggufs)
        self.rows.blockSignals(True)
        self.rows.clear()
        if beside:
            self._add(name.with_file("").reference, "safetensors", in_bytes(beside), "")
        for file in listing.ggufs:
            reference = name.with_file(file.name).reference
            self._add(reference, file.name, in_bytes(file.size), _remark(file, suggestion))
        if beside or name.file or suggestion:
            self._choose(name.with_file(name.file or suggestion).reference)
        self.rows.blockSignals(False)
        self.heading.setText("Also as GG&UF" if beside else "GG&UF files")
        self.note.setText(_note(len(listing.ggufs) > 1 and bool(suggestion), listing.parts))
        self.note.setVisible(bool(self.note.text()))
        self._fit()
        self.show()

    def _add(self, reference: str, title: str, size: str, remark: str) -> None:
        item = QTreeWidgetItem([title, size, remark])
        item.setData(0, _REFERENCE, reference)
        item.setToolTip(0, title)
        item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.rows.addTopLevelItem(item)

    def _choose(self, reference: str) -> None:
        for row in range(self.rows.topLevelItemCount()):
            item = self.rows.topLevelItem(row)
            if item is not None and item.data(0, _REFERENCE) == reference:
                self.rows.setCurrentItem(item)
                self.rows.scrollToItem(item)

    def _fit(self) -> None:
        row = max(1, self.rows.sizeHintForRow(0))
        count = self.rows.topLevelItemCount()
        self.rows.setMinimumHeight(row * min(count, FEWEST_ROWS) + _FRAME)
        self.rows.setMaximumHeight(row * min(count, MOST_ROWS) + _FRAME)

    def _on_current(self) -> None:
        if self.reference:
            self.chosen.emit(self.reference)


def _remark(file: HubFile, suggestion: str) -> str:
    remarks = ["suggested"] if file.name == suggestion else []
    if file.here:
        remarks.append("here" if file.here == file.size else f"{in_bytes(file.here)} here")
    return ", ".join(remarks)


def _note(suggests: bool, parts: int) -> str:
    sentences = []
    if suggests:
        sentences.append(f"Suggested is the smallest whose name says at least {FEWEST_BITS} bits a weight.")
    if parts:
        sentences.append(
            f"{parts} more {'is part' if parts == 1 else 'are parts'} of split models (-00001-of-00003), which can "
            "not be opened."
        )
    return " ".join(sentences)


ROOM = 12  # pixels above and below a line together


class Choices(QListWidget):
    """Up and down choose; Delete takes one that was opened lately off the list. Headings cannot be chosen."""

    chosen = Signal(str)
    """The reference of the current entry."""
    removed = Signal(str)
    """A reference that a person took off the list."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Checkpoints")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._shipped = shipped()
        self._recent: list[str] = []
        self._added: list[str] = []
        self.currentItemChanged.connect(self._on_current)
        self._fill("")

    @property
    def reference(self) -> str:
        """What is chosen; "" where nothing is."""
        row = self.currentRow()
        return str(self.item(row).data(_REFERENCE)) if row >= 0 else ""

    @property
    def is_recent(self) -> bool:
        """Whether what is chosen can be taken off the list."""
        return self.reference in self._recent

    def set_recent(self, recent: Sequence[str]) -> None:
        """Those opened lately, the last one first."""
        self._recent = list(recent)
        self._fill(self.reference)

    def add(self, reference: str) -> None:
        """Put what a person just chose at the top, unless it is listed, and choose it."""
        listed = {card.name for card in self._shipped} | set(self._recent) | set(self._added)
        if reference not in listed:
            self._added.insert(0, reference)
        self._fill(reference)

    def choose(self, reference: str) -> None:
        """Choose an entry; nothing is chosen where there is none of that name."""
        for row in range(self.count()):
            if reference and self.item(row).data(_REFERENCE) == reference:
                self.setCurrentRow(row)
                return
        self.setCurrentRow(-1)

    def _fill(self, reference: str) -> None:
        self.blockSignals(True)
        self.clear()
        if self._added:
            self._heading("Just chosen")
            for added in self._added:
                self._entry(_short(added), added, added)
        self._heading("Included")
        for card in self._shipped:
            self._entry(card.title, card.name, card.sentences)
        if self._recent:
            self._heading("Opened lately")
            for recent in self._recent:
                self._entry(_short(recent), recent, recent)
        self.blockSignals(False)
        self.choose(reference)

    def _heading(self, text: str) -> None:
        item = QListWidgetItem(text)
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        font = self.font()
        font.setBold(True)
        item.setFont(font)
        item.setData(_REFERENCE, "")
        self._add(item)

    def _entry(self, text: str, reference: str, tip: str) -> None:
        item = QListWidgetItem(f"   {text}")
        item.setData(_REFERENCE, reference)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, text)
        item.setToolTip(tip)
        self._add(item)

    def _add(self, item: QListWidgetItem) -> None:
        item.setSizeHint(QSize(0, self.fontMetrics().height() + ROOM))
        self.addItem(item)

    def _on_current(self) -> None:
        if self.reference:
            self.chosen.emit(self.reference)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete and self.is_recent:
            self.removed.emit(self.reference)
            return
        super().keyPressEvent(event)


def _short(reference: str) -> str:
    """The last two parts of a path, as many a folder is called “model”; the repository of a name on a hub."""
    if is_hub(reference):
        return reference.removeprefix(SCHEME)
    return "/".join(reference.replace("\\", "/").rstrip("/").split("/")[-2:]) or reference


class HubBox(QWidget):
    """A line for the name, a button that asks, the switch to stay offline, and where the cache is."""

    asked = Signal()
    """The button was pressed."""
    offline_changed = Signal(bool)

    def __init__(self, is_offline: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = QLineEdit()
        self.name.setPlaceholderText("owner/name or owner/name:file.gguf")
        self.name.setAccessibleName("Name on Hugging Face")
        self.name.setToolTip(
            "As on the model's page; owner/name@revision for a branch, a tag or a commit; owner/name:file.gguf for one "
            "GGUF file"
        )
        self.name.setClearButtonEnabled(True)
        self.look_up_button = QPushButton("Loo&k up")
        self.look_up_button.setToolTip("Ask what it is and how large, before anything is fetched (Enter)")
        self.look_up_button.setAutoDefault(False)  # Enter means something else in each half of the dialog
        self.look_up_button.clicked.connect(self.asked)
        self.offline = QCheckBox("&Stay offline")
        self.offline.setToolTip("Ask no hub, and open only what is on this computer (also: HF_HUB_OFFLINE=1)")
        self.offline.setChecked(is_offline)
        self.offline.toggled.connect(self.offline_changed)
        self.cache = ElidedLabel()
        self.cache.elide_mode = Qt.TextElideMode.ElideMiddle
        self.cache.setProperty("role", "dim")
        self.cache.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        label = QLabel("&Hugging Face")
        label.setBuddy(self.name)
        label.setProperty("role", "title")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(label)
        for first, second, growing in ((self.name, self.look_up_button, 0), (self.offline, self.cache, 1)):
            row = QHBoxLayout()
            row.setSpacing(6)
            row.addWidget(first, 1 - growing)
            row.addWidget(second, growing)
            column.addLayout(row)

    @property
    def text(self) -> str:
        """The name that was typed."""
        return self.name.text().strip()

    @property
    def is_offline(self) -> bool:
        return self.offline.isChecked()

    def show_cache(self, cache: str) -> None:
        self.cache.setText(f"cache: {cache}")
        self.cache.setToolTip(f"What is fetched lies in {cache}. Set HF_HOME to have it elsewhere")


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
        chosen = dialogs.folder(self, "Choose a checkpoint's folder", self._folder)
        if chosen:
            self.add(chosen)

    def browse_file(self) -> None:
        chosen = dialogs.file_to_open(self, "Choose a GGUF file", self._folder, GGUF_FILTER)
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
