"""Where a name on a hub is typed, and whether one may be asked at all."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QLineEdit, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from attention_explorer.widgets.elided_label import ElidedLabel


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
