"""What is changed in the model now: a list with a switch and a way out for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.widgets.flow_layout import FlowLayout
from attention_explorer.widgets.said_label import SaidLabel
from attention_explorer.widgets.token_text import isolated


@dataclass(frozen=True)
class ListedText:
    """What one line says, and whether it is switched on."""

    text: str
    on: bool


class InterventionList(QWidget):
    """One line for each intervention, with a check box and a button that removes it; below them, clear all.

    Delete or Backspace on a line removes it. Signals carry the place in the list.
    """

    switched = Signal(int, bool)
    removed = Signal(int)
    cleared = Signal()
    compared = Signal()
    """The model before all these is to be laid beside what they made of it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Interventions")
        self.empty = SaidLabel()
        self.empty.setProperty("role", "dim")
        self.empty.setWordWrap(True)
        self.clear_button = QPushButton("Clear all")
        self.clear_button.setToolTip("Take every intervention away: the model as it is")
        self.clear_button.clicked.connect(self.cleared)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        self._column.addWidget(self.empty)
        self.compare_button = QPushButton("Before these as B")
        self.compare_button.setToolTip("Lay the run without these interventions beside this one, in Compare")
        self.compare_button.clicked.connect(self.compared)
        buttons = FlowLayout(gap=6)
        for button in (self.compare_button, self.clear_button):
            buttons.addWidget(button)
        self._column.addLayout(buttons)
        self.lines: list[_Line] = []
        self.set_rows(())

    def set_empty_text(self, text: str) -> None:
        """What stands here while nothing is changed."""
        self.empty.setText(text)

    def set_rows(self, rows: Sequence[ListedText]) -> None:
        """Show `rows`. Lines that stay keep the keyboard; when the last one goes, the one before it takes it."""
        had_focus = any(line.holds_focus() for line in self.lines)
        while len(self.lines) > len(rows):
            line = self.lines.pop()
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
        while len(self.lines) < len(rows):
            self._add_line()
        for line, row in zip(self.lines, rows, strict=True):
            line.show_row(row)
        self.empty.setVisible(not rows)
        self.clear_button.setVisible(len(rows) > 1)
        self.compare_button.setVisible(any(row.on for row in rows))
        if had_focus and self.lines and not any(line.holds_focus() for line in self.lines):
            self.lines[-1].box.setFocus(Qt.FocusReason.TabFocusReason)

    def _add_line(self) -> None:
        index = len(self.lines)
        line = _Line()
        line.box.clicked.connect(lambda on: self.switched.emit(index, on))
        line.remove.clicked.connect(lambda: self.removed.emit(index))
        self.lines.append(line)
        self._column.insertWidget(index + 1, line)


class _Line(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._text = self._shown = ""
        self.box = QCheckBox()
        self.box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.remove = QToolButton()
        self.remove.setText("Remove")
        self.remove.setProperty("role", "flat")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.box, 1)
        row.addWidget(self.remove)

    def show_row(self, row: ListedText) -> None:
        self._text = isolated(row.text)
        self._fit()
        self.box.setAccessibleName(row.text)
        self.box.setChecked(row.on)
        self.box.setToolTip(f"{self._text}: {'on' if row.on else 'off, and changes nothing'}")
        self.remove.setAccessibleName(f"Remove {row.text}")
        self.remove.setToolTip(f"Take this off the list: {self._text}")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """As much of the text as there is room for; the tooltip has all of it."""
        room = self.box.width() - self.box.sizeHint().width() + self.box.fontMetrics().horizontalAdvance(self._shown)
        self._shown = self.box.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideMiddle, room)
        self.box.setText(self._shown.replace("&", "&&"))  # a single one would mark a key

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.remove.click()
        else:
            super().keyPressEvent(event)

    def holds_focus(self) -> bool:
        return self.box.hasFocus() or self.remove.hasFocus()
