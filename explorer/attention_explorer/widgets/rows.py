"""Widgets in a row, in lines, or under each other, without margins."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLayout, QLineEdit, QVBoxLayout, QWidget

from attention_explorer.widgets.flow_layout import FlowLayout


def in_row(*widgets: QWidget) -> QWidget:
    """A row of `widgets`; fields and lists take the room that is left."""
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget, 1 if isinstance(widget, (QLineEdit, QComboBox)) else 0)
    return row


def flowing(*widgets: QWidget, gap: int = 6) -> QWidget:
    """Beside each other; what has no room goes to the next line."""
    row = QWidget()
    lines = FlowLayout(row, gap=gap)
    for widget in widgets:
        lines.addWidget(widget)
    return row


def named(label: str | QLabel, field: QWidget) -> QWidget:
    """A field after its name."""
    shown = QLabel(label) if isinstance(label, str) else label
    shown.setBuddy(field)
    return flowing(shown, field)


def below(*widgets: QWidget) -> QWidget:
    """Under each other."""
    column = QWidget()
    layout = QVBoxLayout(column)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget)
    return column


def clear(layout: QLayout) -> None:
    """Take all widgets out of `layout`, and away."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()  # it goes only when the event loop comes to it
            widget.deleteLater()
