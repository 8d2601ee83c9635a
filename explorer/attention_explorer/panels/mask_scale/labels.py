"""Labels and lines, as all parts of the panel have them."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from attention_explorer.widgets.flow_layout import FlowLayout
from attention_explorer.widgets.said_label import SaidLabel


def heading(text: str) -> QLabel:
    """The bold name of what follows."""
    label = SaidLabel(text)
    label.setProperty("role", "title")
    return label


def plain(role: str = "dim", wraps: bool = True) -> QLabel:
    """A label for a sentence or a number."""
    label = SaidLabel()
    label.setProperty("role", role)
    label.setWordWrap(wraps)
    return label


def flow(*widgets: QWidget) -> FlowLayout:
    """Side by side, and below each other where there is no room."""
    line = FlowLayout()
    for widget in widgets:
        line.addWidget(widget)
    return line


def column(parent: QWidget) -> QVBoxLayout:
    """Lines of `parent`, to be filled."""
    lines = QVBoxLayout(parent)
    lines.setContentsMargins(0, 0, 0, 0)
    lines.setSpacing(6)
    return lines
