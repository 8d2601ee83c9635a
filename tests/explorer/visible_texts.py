"""Every text that a window shows, whoever draws it: Qt's own widgets, and what is painted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QGroupBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QTabBar,
    QTextEdit,
    QWidget,
)


def texts_in(widget: QWidget) -> set[str]:
    """The texts of Qt's own widgets that can be seen in one, itself included; the rest is painted anew meanwhile."""
    widget.grab()
    texts = set[str]()
    for part in (widget, *widget.findChildren(QWidget)):
        if part.isVisible():
            texts.update(_of(part))
    return texts


@contextmanager
def painted() -> Iterator[list[str]]:
    """What is drawn meanwhile by a painter from Python, as our own widgets paint their words."""
    draw, seen = QPainter.drawText, list[str]()

    def watched(self: QPainter, *args: object) -> object:
        seen.extend(each for each in args if isinstance(each, str))
        return draw(self, *args)  # type: ignore[call-overload]

    QPainter.drawText = watched  # type: ignore[method-assign, assignment]
    try:
        yield seen
    finally:
        QPainter.drawText = draw  # type: ignore[method-assign]


def _of(widget: QWidget) -> Iterator[str]:
    match widget:
        case QLabel() | QAbstractButton():
            yield widget.text()
        case QGroupBox():
            yield widget.title()
        case QComboBox():
            yield from (widget.itemText(i) for i in range(widget.count()))
        case QTabBar():
            yield from (widget.tabText(i) for i in range(widget.count()))
        case QHeaderView():
            model = widget.model()
            sections = range(widget.count())
            yield from (str(model.headerData(i, widget.orientation(), Qt.ItemDataRole.DisplayRole)) for i in sections)
        case QLineEdit() | QTextEdit():
            yield widget.placeholderText()
