"""What a page of text and widgets is built of: labels that wrap, in an area that scrolls up and down only."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDial,
    QFrame,
    QLabel,
    QPushButton,
    QScrollArea,
    QSlider,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.widgets.labels import SaidLabel


def wrapped(text: str = "", role: str = "") -> QLabel:
    """A label that breaks its lines and never asks for width."""
    label = _Wrapped(text)
    label.setWordWrap(True)
    if role:
        label.setProperty("role", role)
    return label


class _Wrapped(SaidLabel):
    def minimumSizeHint(self) -> QSize:
        return QSize(40, super().minimumSizeHint().height())


class _KeepingWidth(QScrollArea):
    """Reserves the room of its scrollbar, so that nothing moves aside when one comes."""

    def __init__(self) -> None:
        super().__init__()
        self.verticalScrollBar().rangeChanged.connect(self._keep_width)
        self._keep_width(0, 0)

    def _keep_width(self, low: int, high: int) -> None:
        self.setViewportMargins(0, 0, 0 if high > low else self.verticalScrollBar().sizeHint().width(), 0)


def scrolling(page: QWidget, keeps_width: bool = False) -> QScrollArea:
    """An area as wide as `page`, which scrolls where the page is too tall.

    It `keeps_width` where what is in it must not move while a person presses it.
    """
    area = _KeepingWidth() if keeps_width else QScrollArea()
    area.setWidget(page)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside takes the keyboard, and shows it
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


def page_of(*parts: QWidget) -> QWidget:
    """A page to scroll: parts under each other, none taller than it has to be."""
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 2, 6, 4)
    column.setSpacing(8)
    for part in parts:
        column.addWidget(part)
    column.addStretch(1)
    return page


class WheelScrolls(QObject):
    """While it lives, the wheel scrolls past the lists, number fields and sliders of an application.

    One that has the keyboard takes the wheel, as a person who has clicked it expects. Any other would change unseen
    under a pointer that a page scrolls by, or take the keyboard for it.
    """

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        for widget in app.allWidgets():
            self._leave_keyboard(widget)
        app.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(watched, _CHANGED_BY_WHEEL):
            return False  # first: every event of the program comes by
        kind = event.type()
        if kind == QEvent.Type.Polish:
            self._leave_keyboard(watched)
        if kind != QEvent.Type.Wheel or watched.hasFocus():
            return False
        event.ignore()  # Qt offers it to what is around it
        return True

    @staticmethod
    def _leave_keyboard(widget: QObject) -> None:
        """Qt gives the keyboard to these at the first notch, before anybody can tell the wheel from a click."""
        if isinstance(widget, _CHANGED_BY_WHEEL) and widget.focusPolicy() == Qt.FocusPolicy.WheelFocus:
            widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)


_CHANGED_BY_WHEEL = (QComboBox, QAbstractSpinBox, QSlider, QDial)


class PageOrInvitation(QStackedWidget):
    """A page, or in its place why it has nothing to show, and a button that opens what would fill it.

    The page scrolls as a whole, unless its parts do.
    """

    asked = Signal()
    """The button was clicked."""

    def __init__(self, page: QWidget, button: str, parent: QWidget | None = None, *, scrolls: bool = True) -> None:
        super().__init__(parent)
        self.reason = wrapped(role="dim")
        self.reason.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.button = QPushButton(button)
        self.button.setProperty("role", "primary")
        self.button.clicked.connect(self.asked)
        self.addWidget(self._invitation())
        self.addWidget(scrolling(page) if scrolls else page)

    def invite(self, reason: str, *, can_open: bool = True) -> None:
        """Show `reason`, with the button where opening something else would help."""
        self.reason.setText(reason)
        self.button.setVisible(can_open)
        self.setCurrentIndex(0)

    def show_page(self) -> None:
        self.setCurrentIndex(1)

    def _invitation(self) -> QWidget:
        place = QWidget()
        column = QVBoxLayout(place)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(12)
        column.addStretch(1)
        column.addWidget(self.reason)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(2)
        return place
