"""What a page of text and widgets is built of: labels that wrap, in an area that scrolls up and down only."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget


def wrapped(text: str = "", role: str = "") -> QLabel:
    """A label that breaks its lines and never asks for width."""
    label = _Wrapped(text)
    label.setTextFormat(Qt.TextFormat.PlainText)  # a key or a token may look like mark-up
    label.setWordWrap(True)
    if role:
        label.setProperty("role", role)
    return label


class _Wrapped(QLabel):
    def minimumSizeHint(self) -> QSize:
        return QSize(40, super().minimumSizeHint().height())


def scrolling(page: QWidget) -> QScrollArea:
    """An area as wide as `page`, which scrolls where the page is too tall."""
    area = QScrollArea()
    area.setWidget(page)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return area


def bring(area: QScrollArea, page: QWidget, first: QWidget, last: QWidget, part: int | None = None) -> None:
    """Scroll no further than it takes to show `page` from `first` to `last`, or what fits, beginning with `first`.

    Of `last` the upper `part` pixels are enough.
    """
    bar = area.verticalScrollBar()
    top = first.mapTo(page, first.rect().topLeft()).y()
    height = last.height() if part is None else min(part, last.height())
    bottom = last.mapTo(page, last.rect().topLeft()).y() + height
    bar.setValue(min(top, max(bar.value(), bottom - area.viewport().height())))


def invitation(text: QLabel, button: QPushButton) -> QWidget:
    """What a panel shows in place of its content: why there is none, and a button that mends it."""
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(12, 12, 12, 12)
    column.setSpacing(12)
    column.addStretch(1)
    column.addWidget(text)
    column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
    column.addStretch(2)
    return page
