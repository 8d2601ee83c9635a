"""The role of a widget that is on screen already: the style sheet draws it by that."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


def set_role(widget: QWidget, role: str | None) -> None:
    """Give it a role of `theme.stylesheet`, or none."""
    if widget.property("role") != role:
        widget.setProperty("role", role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
