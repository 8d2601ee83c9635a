"""What the teacher alone sees while an audience looks on: notes, what comes next, and how long it has been."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, Qt, QTime, QTimer
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.window.audience.tools import smaller_text
from attention_explorer.window.lesson.column import MarkdownText


class TeacherNotes(QWidget):
    """Draws what it is given, and counts the time."""

    def __init__(self) -> None:
        super().__init__()
        self.notes = MarkdownText()
        self.next = wrapped("", "title")
        self.state = QLabel("Frozen")
        self.state.setProperty("role", "mark")
        policy = self.state.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # else the panels move when it comes
        self.state.setSizePolicy(policy)
        self.state.hide()
        self.clock = QLabel()
        self.clock.setObjectName("clock")
        self.clock.setToolTip("Since the audience's window was opened, and the time of day")
        self.again = QPushButton("From 0:00")
        self.again.setToolTip("Let the clock begin anew")
        self.again.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.again.clicked.connect(self.restart)
        page = QWidget()
        inner = QVBoxLayout(page)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.addWidget(self.notes)
        inner.addStretch(1)
        side = QVBoxLayout()
        for widget in (self.clock, self.again, self.next, self.state):
            side.addWidget(widget)
        side.addStretch(1)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 6, 10, 6)
        row.setSpacing(16)
        row.addWidget(scrolling(page), 3)
        row.addLayout(side, 1)
        self._since = QElapsedTimer()
        self._tick = QTimer(self)
        self._tick.setInterval(1000)
        self._tick.timeout.connect(self._show_time)
        self.restart()

    def restart(self) -> None:
        self._since.start()
        self._tick.start()
        self._show_time()

    def stop(self) -> None:
        self._tick.stop()

    def say(self, notes: str, following: str, state: str) -> None:
        """`following` is the title of what comes next; `state` what the audience sees that the teacher does not."""
        self.notes.say(notes)
        self.next.setText(f"Next: {following}" if following else "")
        if state:
            self.state.setText(state)
        self.state.setVisible(bool(state))

    def fit_font(self) -> None:
        """The application's text has another size."""
        self.setStyleSheet(smaller_text("QLabel#clock { font-size: $large; font-weight: 600 }"))

    def _show_time(self) -> None:
        seconds = self._since.elapsed() // 1000
        self.clock.setText(f"{spelled(seconds)}   {QTime.currentTime().toString('HH:mm')}")


def spelled(seconds: int) -> str:
    """As clocks say it: 7:05, and 1:07:05 from an hour on."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
