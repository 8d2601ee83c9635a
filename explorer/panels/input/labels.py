"""The labels and buttons of the input panel."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from explorer.widgets.said_label import SaidLabel


def button(text: str, key: str, tooltip: str, action: object) -> QPushButton:
    """A button that says its key."""
    made = QPushButton(f"{text}  ·  {key}")
    made.setAccessibleName(text)
    made.setToolTip(tooltip)
    made.clicked.connect(action)
    return made


def title(text: str, buddy: QWidget) -> QLabel:
    """The bold name of a field."""
    label = QLabel(text)
    label.setProperty("role", "title")
    label.setBuddy(buddy)
    return label


def dim() -> QLabel:
    """A dim label for what may hold a token."""
    label = SaidLabel()
    label.setProperty("role", "dim")
    return label


def mark(tooltip: str) -> QPushButton:
    """A word in a frame that can be pressed, whose place is kept while it is hidden."""
    made = QPushButton()
    made.setProperty("role", "mark")
    made.setToolTip(tooltip)
    policy = made.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    made.setSizePolicy(policy)
    return made
