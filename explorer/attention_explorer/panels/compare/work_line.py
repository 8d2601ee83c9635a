"""What is being done for B, how far it is, and a button that calls it off."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QWidget

from attention_explorer.widgets.page import wrapped
from attention_models.protocol.request import Progress

_PATIENCE = 300  # ms: what is done sooner is not announced


class WorkLine(QWidget):
    """Hidden while nothing is done, and for the first moments of what is."""

    cancelled = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.doing, self.bar = wrapped(role="dim"), QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(6)
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Do not run B; A stays as it is")
        self.cancel.clicked.connect(self.cancelled)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.doing, 1)
        row.addWidget(self.bar, 1)
        row.addWidget(self.cancel)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(_PATIENCE)
        self._patience.timeout.connect(self.show)
        self.hide()

    def show_work(self, busy: bool, progress: Progress | None) -> None:
        """Say what is under way; `progress` where the engine has said how far it is."""
        self.doing.setText(f"{progress.label} …" if progress is not None else "B is being run …")
        fraction = None if progress is None else progress.fraction
        self.bar.setRange(0, 0 if fraction is None else 1000)
        if fraction is not None:
            self.bar.setValue(round(1000 * fraction))
        if not busy:
            self._patience.stop()
            self.hide()
        elif self.isHidden() and not self._patience.isActive():
            self._patience.start()
