"""Widgets in a row."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QWidget


def beside(*widgets: QWidget) -> QWidget:
    """A row of `widgets`; fields and lists take the room that is left."""
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget, 1 if isinstance(widget, (QLineEdit, QComboBox)) else 0)
    return row
